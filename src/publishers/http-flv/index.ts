import type { BlockList } from 'node:net';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Access, SessionGrant } from '../../access/access.ts';
import { goneSignal, httpAccess } from '../../access/http-request.ts';
import { publisherConfig, type PlayRequest } from '../../access/request.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { StartCaches } from '../../core/start-caches.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import { readMediaName, type MediaName } from '../../lib/media-name.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { playlistOf } from '../flv/choice.ts';
import { exchangeOf, type Exchange } from '../hls/answer/exchange.ts';
import { CrossDomainRules } from '../hls/http/cors.ts';
import { answerError } from '../hls/http/http-error.ts';
import { NOT_CACHED } from '../hls/http/respond.ts';
import { flvStart, HttpFeeds, TYPES, type HttpPlayable } from './feeds.ts';
import { responseLink, type MediaLink } from './link.ts';
import { MediaSockets, type AdmittedPeer } from './sockets.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import { fileRoutes, type FileParams } from './routes.ts';
import { HttpViewer } from './viewer.ts';

export interface HttpFlvPublisherOptions {
  readonly registry: Registry;
  /** Knows the streams of other nodes. */
  readonly directory: Pick<StreamDirectory, 'known'>;
  readonly access: Access;
  /** For applications without CrossDomains. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
  /** FLV may have the codecs of Enhanced RTMP. */
  readonly extended: boolean;
  /** Networks whose `X-Forwarded-For` is trusted. */
  readonly proxies?: BlockList | undefined;
  readonly log: Logger;
}

/** Stream, or playlist of it, that a viewer asks for in a container. */
export interface Asked {
  readonly app: string;
  readonly stream: string;
  readonly playlist?: string | undefined;
  readonly container: MediaName['container'];
}

const CHECK_MS = 1000;

/** Serves streams as FLV and MPEG-TS without end over HTTP: `/app/stream.flv`, `/app/stream/playlist.flv`, `.ts`. */
export class HttpFlvPublisher {
  readonly routes: FastifyPluginAsync;
  /** Whether an upgrade to WebSocket is for media. */
  readonly takesSocket: MediaSockets['takes'];
  readonly #options: HttpFlvPublisherOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #caches: StartCaches;
  readonly #feeds: HttpFeeds;
  readonly #crossDomains: CrossDomainRules;
  readonly #sockets: MediaSockets;
  readonly #viewers = new Set<HttpViewer>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();

  constructor(options: HttpFlvPublisherOptions) {
    const { registry, crossDomains, extended, log } = options;
    this.#options = options;
    this.#log = log.child({ module: 'flv' });
    this.#faults = new FaultLog(this.#log);
    this.#caches = new StartCaches(registry, 'flv', (_output, { config }) => config.publishers.flv !== undefined);
    this.#feeds = new HttpFeeds({ caches: this.#caches, extended, faults: this.#faults });
    this.#crossDomains = new CrossDomainRules('flv', crossDomains);
    this.#sockets = new MediaSockets({
      proxies: options.proxies,
      log: this.#log,
      isMedia: (peer) => this.#isMedia(peer),
      admit: (peer) => this.#admitPeer(peer),
    });
    this.takesSocket = this.#sockets.takes;
    const files = fileRoutes({
      serve: (asked, request, reply) => this.#answer(asked, request, exchangeOf(request, reply)),
      allow: (app, request, exchange) => this.#allow(this.#application(request, app), exchange),
    });
    this.routes = async (app) => {
      this.#sockets.attach(app.server);
      await app.register(files);
    };
  }

  /** Answers requests for `/:app/:stream` that are for media. @returns whether it does */
  readonly media = (request: FastifyRequest<{ Params: FileParams }>, reply: FastifyReply): boolean => {
    const { app, stream } = request.params;
    const named = readMediaName(stream);
    if (named === undefined || !this.#serves(this.#application(request, app), stream)) return false;
    this.#answer({ app, stream: named.name, container: named.container }, request, exchangeOf(request, reply));
    return true;
  };

  /** Ends every viewer. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const viewer of [...this.#viewers]) viewer.end('the server is closing');
    this.#sockets.close();
    this.#caches.close();
    this.#faults.close();
  }

  #isMedia({ hostName, app, stream, playlist }: PeerRequest): boolean {
    const application = this.#options.registry.resolve(hostName)?.applications.get(app);
    const last = playlist ?? stream;
    if (readMediaName(last) === undefined) return false;
    if (playlist === undefined) return this.#serves(application, stream);
    return application === undefined || publisherConfig(application.config, 'flv') !== undefined;
  }

  /** @throws what `#admit` does */
  async #admitPeer(peer: PeerRequest): Promise<AdmittedPeer> {
    const named = readMediaName(peer.playlist ?? peer.stream);
    const { name = '', container = 'flv' } = named ?? {};
    const names = peer.playlist === undefined ? { stream: name } : { playlist: name };
    const viewer: PlayRequest = { ...peer, ...names, direction: 'outgoing', protocol: 'flv' };
    const grant = await this.#admit(viewer, container, () => {});
    return {
      open: (link) => {
        const opened = this.#open(viewer, grant, container, link);
        return (reason) => opened.close(reason);
      },
      end: (reason) => grant.end(reason),
    };
  }

  /** @param found called with the application @throws what `Access.admitSession` does, codecsNotTaken, fileNotFound */
  #admit(
    viewer: PlayRequest,
    container: MediaName['container'],
    found: (application: Application) => void,
  ): Promise<SessionGrant<HttpPlayable>> {
    return this.#options.access.admitSession(viewer, (output, application, fileName) => {
      found(application);
      const playlist = playlistOf(output, fileName);
      this.#feeds.check(container, output, playlist);
      return { output, playlist, delayMs: application.config.publishers.flv?.delayBufferTimeMs ?? 0 };
    });
  }

  #application({ hostname }: FastifyRequest, app: string): Application | undefined {
    return this.#options.registry.resolve(hostname)?.applications.get(app);
  }

  /** Whether a name of the form `stream.flv` is for this publisher: a stream of that very name is played by others. */
  #serves(application: Application | undefined, name: string): boolean {
    if (application === undefined) return true;
    if (publisherConfig(application.config, 'flv') === undefined) return false;
    return application.output(name) === undefined && this.#options.directory.known(application, name) === undefined;
  }

  #allow(application: Application | undefined, exchange: Exchange): void {
    if (application?.config.publishers.flv !== undefined) this.#crossDomains.apply(application, exchange);
  }

  #answer(asked: Asked, request: FastifyRequest, exchange: Exchange): void {
    // a stream that is not there yet may soon be
    exchange.headers['cache-control'] = NOT_CACHED;
    this.#allow(this.#application(request, asked.app), exchange);
    this.#play(asked, request, exchange).catch((error: Error) => {
      const isSilent = 'status' in error && error.status === 401;
      answerError(error, exchange, isSilent);
    });
  }

  /** @throws what `#admit` does */
  async #play(asked: Asked, request: FastifyRequest, exchange: Exchange): Promise<void> {
    const { response } = exchange;
    const isHead = request.method === 'HEAD';
    const query = new URLSearchParams(request.url.split('?').slice(1).join('?'));
    // the name of a session is for the viewer that plays
    if (isHead) query.delete('session');
    const { app, stream, playlist, container } = asked;
    const viewer: PlayRequest = {
      direction: 'outgoing',
      protocol: 'flv',
      hostName: request.hostname,
      app,
      stream,
      playlist,
      query,
      ...httpAccess(request.raw, request),
      signal: goneSignal(response),
    };
    const grant = await this.#admit(viewer, container, (application) => this.#allow(application, exchange));
    if (isHead) {
      grant.end('the stream itself was not asked for');
      response.writeHead(200, { ...exchange.headers, 'content-type': TYPES[container] }).end();
      return;
    }
    const link = responseLink(exchange, TYPES[container]);
    const opened = this.#open(viewer, grant, container, link);
    response.once('close', () => opened.close('the viewer left'));
  }

  #open(
    { query, app, stream, playlist, client }: PlayRequest,
    grant: SessionGrant<HttpPlayable>,
    container: MediaName['container'],
    link: MediaLink,
  ): HttpViewer {
    const viewer: HttpViewer = new HttpViewer(grant, link, {
      fromLastKey: query.get('gop') !== '0',
      byPlaylist: playlist !== undefined,
      feed: () => this.#feeds.of(container, link.framing, grant.found),
      head: container === 'flv' ? (feed) => flvStart(link.framing, feed) : undefined,
      log: this.#log.child({ remote: `${client.realAddress}:${client.port}`, app, stream }),
      onClose: () => this.#viewers.delete(viewer),
    });
    this.#viewers.add(viewer);
    try {
      viewer.play();
    } catch (error) {
      this.#viewers.delete(viewer);
      grant.refuse(error);
      throw error;
    }
    return viewer;
  }

  #check(): void {
    const now = performance.now();
    for (const viewer of this.#viewers) viewer.check(now);
  }
}
