import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ranked, type Cluster, type NodeIdentity } from '#cluster';
import { isEnabled } from '../config/enables.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { urlWithoutReport } from '../quality/carried-report.ts';
import { httpAccess, type Via } from './http-request.ts';
import { publicUrlOf, takesViewers, type SentModule } from './public-nodes.ts';
import { withoutParameter, withParameter } from './policy/signed-url.ts';
import { urlWithPort, type AccessRequest } from './request.ts';

/** Says which server a client asked before another node sent it here. */
const PARAMETER = 'redirectedFrom';
const MAC_BYTES = 16;
/** Scheme and authority. */
const ORIGIN = /^https?:\/\/[^/?#]+/i;
const PORT = /:\d*$/;
/** One MAC, or two while the secret is being changed, and the origin. */
const VALUE = /^([\w-]{22}(?:\.[\w-]{22})?)\.(https?:\/\/[^/?#]+)$/i;

/** A request over HTTP, as a framework presents it. */
interface HttpRequest extends Via {
  readonly raw: IncomingMessage;
  /** Path and query. */
  readonly url: string;
  readonly hostname: string;
}

/** Request of a client: the one to the first node, if that has redirected it here. */
export interface Arrival extends Pick<AccessRequest, 'url' | 'isPortAssumed' | 'client' | 'hostName' | 'bearer'> {
  /** Query of the URL, without `?` and without a report of the player. */
  readonly search: string;
  readonly isRedirected: boolean;
}

/** A stream that a viewer asks for. */
export interface Wanted {
  readonly module: SentModule;
  readonly app: string;
  /** Output stream. */
  readonly stream: string;
  /** Path of the request. */
  readonly path: string;
}

export interface RedirectsOptions {
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly registry: Pick<Registry, 'resolve'>;
  readonly directory: {
    known(application: Application, output: string): { readonly owner: NodeIdentity } | undefined;
  };
  /** Secrets of the cluster, one or two while it is being changed; none for a node that is alone. */
  readonly secrets: readonly string[];
}

/**
 * Redirects viewers from a full node to one that has room and has a public URL. Their request is part of the new URL, under a MAC: the
 * virtual host and the signature depend on the requested host, which must not be free to choose. A redirected viewer is served here.
 */
export class Redirects {
  readonly #options: RedirectsOptions;
  readonly #keys: readonly Buffer[];

  constructor(options: RedirectsOptions) {
    this.#options = options;
    this.#keys = options.secrets.map((secret) => createHmac('sha256', secret).update('redirects').digest());
  }

  /** Reads the first request of a client. */
  arrival(request: HttpRequest): Arrival {
    const { raw, hostname } = request;
    const path = urlWithoutReport(request.url);
    const access = httpAccess(raw, request);
    const origin = path.includes(PARAMETER) ? this.#originIn(path) : undefined;
    if (origin === undefined) return { ...access, hostName: hostname, search: searchOf(path), isRedirected: false };
    const asked = withoutParameter(path, PARAMETER);
    return {
      ...urlWithPort(`${origin}${asked}`, raw.socket.localPort ?? 0),
      client: access.client,
      bearer: access.bearer,
      hostName: origin.slice(origin.indexOf('//') + 2).replace(PORT, ''),
      search: searchOf(asked),
      isRedirected: true,
    };
  }

  /** URL of a node with room for a viewer; undefined where it is to be served here. */
  better(arrival: Arrival, { module, app, stream, path }: Wanted): string | undefined {
    const { cluster, registry, directory } = this.#options;
    const rows = cluster.nodes();
    if (arrival.isRedirected || rows.find(({ id }) => id === cluster.self.id)?.full !== true) return undefined;
    const isSecure = arrival.url.startsWith('https:');
    const application = registry.resolve(arrival.hostName)?.applications.get(app);
    if (application === undefined) return undefined;
    // browsers send a token to no other origin (Fetch standard, HTTP-redirect fetch)
    const protocol = module === 'hls' ? 'hlsv3' : module;
    const { jwt } = application.vhost.config;
    if (arrival.bearer !== undefined && isEnabled(jwt?.enables, { direction: 'outgoing', protocol })) return undefined;
    const able = rows.filter((row) => row.id !== cluster.self.id && takesViewers(row, module, isSecure));
    const owner = directory.known(application, stream)?.owner.id;
    // all full nodes choose alike: one node comes to relay the stream, and not each of them
    const [first] = ranked(`${application.internalName}/${stream}`, able);
    const row = able.find(({ id }) => id === owner) ?? able.find(({ id }) => id === first);
    const origin = ORIGIN.exec(arrival.url)?.[0];
    const target = row && publicUrlOf(row);
    if (target === undefined || origin === undefined || !path.startsWith('/')) return undefined;
    const from = arrival.isPortAssumed === true ? origin.replace(PORT, '') : origin;
    return `${target}${withParameter(withoutParameter(urlWithoutReport(path), PARAMETER), PARAMETER, this.#signed(from))}`;
  }

  /** Schemes of the URLs that viewers may be sent to, as a Content-Security-Policy names them. */
  get schemes(): readonly string[] {
    const urls = this.#options.cluster.nodes().map(publicUrlOf);
    return [...new Set(urls.flatMap((url) => (url === undefined ? [] : [new URL(url).protocol])))].sort();
  }

  #signed(origin: string): string {
    const macs = this.#keys.map((key) => macOf(key, origin).toString('base64url'));
    return [...macs, encodeURIComponent(origin)].join('.');
  }

  #originIn(path: string): string | undefined {
    const [, given = '', origin] = VALUE.exec(new URLSearchParams(searchOf(path)).get(PARAMETER) ?? '') ?? [];
    if (origin === undefined) return undefined;
    const macs = given.split('.').map((mac) => Buffer.from(mac, 'base64url'));
    return this.#keys.some((key) => macs.some((mac) => timingSafeEqual(macOf(key, origin), mac))) ? origin : undefined;
  }
}

function macOf(key: Buffer, origin: string): Buffer {
  return createHmac('sha256', key).update(origin).digest().subarray(0, MAC_BYTES);
}

function searchOf(path: string): string {
  const at = path.indexOf('?');
  return at < 0 ? '' : path.slice(at + 1);
}
