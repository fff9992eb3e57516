import type { BlockList } from 'node:net';
import type { Access, SessionGrant } from '../../access/access.ts';
import { urlWithPort, type PlayRequest } from '../../access/request.ts';
import { internalName, type Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { OvtUrl } from '../../protocols/ovt/url.ts';
import { SessionTable } from '../../lib/session-table.ts';
import { includes, listenTcp, type Peer, type TcpListener } from '../../protocols/tcp.ts';
import { OvtPlayer } from './player.ts';
import { OvtSession, type Found, type Played } from './session.ts';

export interface OvtServerOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly log: Logger;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly proxyNetworks?: BlockList;
  /** Networks that may connect: OVT has neither passwords nor encryption. */
  readonly networks: BlockList;
}

const LIMITS = { sessions: 1024, waiting: 128, purpose: 'play' };
const RANGE_32 = 2 ** 32;

/** Serves streams to OVT edges on one port. */
export class OvtServer {
  readonly #options: OvtServerOptions;
  readonly #log: Logger;
  readonly #sessions = new SessionTable<OvtSession>(LIMITS);
  #listener: TcpListener | undefined;
  #lastId = 0;
  #closed: Promise<void> | undefined;

  /** @throws the system's error when it cannot listen on the address */
  static async listen(options: OvtServerOptions): Promise<OvtServer> {
    const server = new OvtServer(options);
    await server.#listen();
    return server;
  }

  private constructor(options: OvtServerOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'ovt' });
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Stops listening and ends every session. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#listener?.close();
      this.#sessions.closeAll('the server is closing');
    })();
    return this.#closed;
  }

  async #listen(): Promise<void> {
    const { host, port, proxyNetworks, networks } = this.#options;
    this.#listener = await listenTcp({ host, port, proxyNetworks, log: this.#log }, (socket, peer) => {
      const { remoteAddress, remotePort } = peer;
      const refused = this.#objection(includes(networks, remoteAddress));
      if (refused !== undefined) {
        const from = { address: remoteAddress, port: remotePort };
        this.#options.access.report({ direction: 'outgoing', protocol: 'ovt', ...from }, refused);
        socket.on('error', () => {}).destroy();
        return;
      }
      const log = this.#log.child({ remote: `${remoteAddress}:${remotePort}` });
      const gone = new AbortController();
      this.#lastId = (this.#lastId + 1) % RANGE_32;
      const session: OvtSession = new OvtSession(socket, {
        kind: 'ovt',
        log,
        id: this.#lastId,
        forms: 'framed',
        find: (url) => this.#find(requestOf(url, peer, gone.signal)),
        play: (url, player) => this.#play(requestOf(url, peer, gone.signal), player),
        onPlaying: () => this.#sessions.setWaiting(session, false),
        onClose: () => {
          gone.abort();
          this.#sessions.delete(session);
        },
      });
      this.#sessions.add(session);
    });
  }

  #objection(allowed: boolean): string | undefined {
    if (!allowed) return 'its address is in none of the networks of Bind/Publishers/OVT/Networks';
    if (this.#closed !== undefined) return 'the server is closing';
    return this.#sessions.objection;
  }

  /** @throws ovtStreamNotFound, and what Access.admitSession() does */
  async #find(request: PlayRequest): Promise<Found> {
    // the request belongs to no session yet
    const query = new URLSearchParams(request.query);
    query.delete('session');
    const { found, end } = await this.#admit({ ...request, query });
    end('the stream is described');
    return found;
  }

  /** @throws ovtStreamNotFound, and what Access.admitSession() does */
  async #play(request: PlayRequest, session: OvtSession): Promise<Played> {
    const grant = await this.#admit(request);
    try {
      grant.enter();
    } catch (error) {
      grant.refuse(error);
      throw error;
    }
    const account = new OvtPlayer(grant.id, grant.found.output, (reason) => session.close(reason), grant.end);
    grant.limit((reason) => session.close(reason));
    return { ...grant.found, account };
  }

  /** @throws ovtStreamNotFound, and what Access.admitSession() does */
  async #admit(request: PlayRequest): Promise<SessionGrant<Found>> {
    const { registry, access } = this.#options;
    try {
      return await access.admitSession(request, foundIn);
    } catch (error) {
      if (!(error instanceof KilnError) || !NOT_THERE.has(error.code)) throw error;
      const { hostName, app, stream } = request;
      const vhost = registry.resolve(hostName);
      throw kilnError(
        'ovtStreamNotFound',
        `${vhost === undefined ? hostName : internalName(vhost.name, app)}/${stream}`,
      );
    }
  }
}

function foundIn(output: OutputStream, application: Application): Found {
  return { application, output, delayMs: application.config.publishers.ovt?.delayBufferTimeMs ?? 0 };
}

function requestOf(
  { host, app, stream, query, href }: OvtUrl,
  { remoteAddress: address, remotePort: port, localPort }: Peer,
  signal: AbortSignal,
): PlayRequest {
  return {
    direction: 'outgoing',
    protocol: 'ovt',
    hostName: host,
    app,
    stream,
    query,
    ...urlWithPort(href, localPort),
    client: { address, port, realAddress: address, localPort },
    signal,
  };
}

/** Errors for which the protocol has a code of its own (docs/compatibility.md#ovt). */
const NOT_THERE: ReadonlySet<string> = new Set(['vhostNotFound', 'applicationNotFound', 'streamNotFound']);
