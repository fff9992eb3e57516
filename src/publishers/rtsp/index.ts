import type { BlockList, Socket } from 'node:net';
import type { Access } from '../../access/access.ts';
import type { ApplicationConfig, RtspBindConfig } from '../../config/model.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Registry } from '../../core/registry.ts';
import { SessionTable } from '../../lib/session-table.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { RequestUrl } from '../../protocols/rtsp/request-url.ts';
import type { Peer } from '../../protocols/tcp.ts';
import type { CertificateStore } from '../../tls/certificates.ts';
import type { Users } from './admission.ts';
import type { DatagramPorts } from './datagram-ports.ts';
import { RtspFeed } from './feed.ts';
import { offeredTracks } from './selection.ts';
import { RtspServer } from './server.ts';
import { RtspSession } from './session.ts';
import type { Playable } from './viewer.ts';

export interface RtspPublisherOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly certificates: CertificateStore;
  readonly log: Logger;
  readonly ip: readonly string[];
  readonly bind: RtspBindConfig;
  readonly proxyNetworks?: BlockList;
}

const LIMITS = { sessions: 4096, waiting: 512, purpose: 'play' };
const CHECK_MS = 1000;

/** Serves streams to RTSP players. Its ports open when an application has the module. */
export class RtspPublisher {
  readonly #options: RtspPublisherOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #sessions = new SessionTable<RtspSession>(LIMITS);
  readonly #playing = new Set<RtspSession>();
  /** Inner key: the tracks, and their delay. */
  readonly #feeds = new Map<OutputStream, Map<string, RtspFeed>>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();
  #servers: RtspServer[] = [];
  #opening: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /** @throws the system's error, or ListenError, when a port cannot be opened */
  static async listen(options: RtspPublisherOptions): Promise<RtspPublisher> {
    const publisher = new RtspPublisher(options);
    try {
      if (publisher.#isWanted) await publisher.#open();
    } catch (error) {
      await publisher.close();
      throw error;
    }
    return publisher;
  }

  private constructor(options: RtspPublisherOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'rtsp' });
    this.#faults = new FaultLog(this.#log);
  }

  /** Whether its ports are open. */
  get isOpen(): boolean {
    return this.#servers.length > 0;
  }

  /** Stops listening and disconnects every player. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      clearInterval(this.#timer);
      await this.#opening?.catch(() => {});
      this.#sessions.closeAll('the server is closing');
      for (const server of this.#servers) await server.close();
      this.#faults.close();
    })();
    return this.#closed;
  }

  get #isWanted(): boolean {
    for (const { applications, template } of this.#options.registry.vhosts.values()) {
      if (template?.publishers.rtsp !== undefined) return true;
      for (const { config } of applications.values()) if (config.publishers.rtsp !== undefined) return true;
    }
    return false;
  }

  #open(): Promise<void> {
    this.#opening = (async () => {
      const { ip, bind, certificates, proxyNetworks } = this.#options;
      const { port, tlsPort, udpPort = [] } = bind;
      for (const host of ip) {
        const server = await RtspServer.listen({
          host,
          port,
          tlsPort,
          udpPort,
          certificates,
          proxyNetworks,
          log: this.#log,
          objection: () => (this.#closed === undefined ? this.#sessions.objection : 'the server is closing'),
          onClient: (socket, peer, datagrams) => this.#take(socket, peer, datagrams),
          onRefused: (reason, { remoteAddress: address, remotePort }, kind) =>
            this.#options.access.report(
              { direction: 'outgoing', protocol: 'rtsp', address, port: remotePort },
              reason,
              kind,
            ),
        });
        this.#servers.push(server);
      }
    })();
    return this.#opening;
  }

  #take(socket: Socket, peer: Peer, datagrams: DatagramPorts | undefined): void {
    const { access } = this.#options;
    const session: RtspSession = new RtspSession(socket, peer, {
      log: this.#log,
      datagrams,
      usersOf: (url) => this.#usersOf(url),
      admit: (request) =>
        access.admitSession(request, (output, { config }, playlist) => {
          const tracks = offeredTracks(output, playlist);
          // encoders that rest have time to start until it plays
          if (output.resting) output.emit('wanted');
          return { output, tracks, delayMs: config.publishers.rtsp?.delayBufferTimeMs ?? 0 };
        }),
      rejected: (request, reason) => access.report(request, reason),
      feed: (playable) => this.#feedOf(playable),
      onPlaying: () => {
        this.#sessions.setWaiting(session, false);
        this.#playing.add(session);
      },
      onClose: () => {
        this.#sessions.delete(session);
        this.#playing.delete(session);
      },
    });
    this.#sessions.add(session, peer.remoteAddress);
  }

  #usersOf({ host, app }: RequestUrl): Users | undefined {
    const vhost = this.#options.registry.resolve(host);
    const config: ApplicationConfig | undefined = vhost?.applications.get(app)?.config ?? vhost?.template;
    return config?.users?.user;
  }

  #feedOf({ output, tracks, delayMs }: Playable): RtspFeed {
    const key = [delayMs, ...tracks.map(({ id }) => id)].join(' ');
    const feeds = this.#feeds.get(output) ?? new Map<string, RtspFeed>();
    const feed =
      feeds.get(key) ??
      new RtspFeed(output, tracks, {
        delayMs,
        faults: this.#faults,
        onEnd: () => {
          feeds.delete(key);
          if (feeds.size === 0) this.#feeds.delete(output);
        },
      });
    feeds.set(key, feed);
    this.#feeds.set(output, feeds);
    return feed;
  }

  #check(): void {
    for (const session of this.#playing) session.check();
    if (this.#opening !== undefined || this.#closed !== undefined || !this.#isWanted) return;
    this.#open().catch((err: unknown) =>
      this.#log.error(
        { err },
        'the ports of RTSP could not be opened; the server has to be restarted when they are free',
      ),
    );
  }
}
