import type { BlockList } from 'node:net';
import type { Registry } from '../../core/registry.ts';
import type { Logger } from '../../log.ts';
import type { StreamNames } from '../../origins/stream-names.ts';
import { listenTcp, type TcpListener } from '../../protocols/tcp.ts';
import { RtmpSession } from './session.ts';

export interface RtmpServerOptions {
  readonly registry: Registry;
  /** Gives the streams their names. */
  readonly names: StreamNames;
  readonly log: Logger;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly proxyNetworks?: BlockList;
  /** `Modules/ERTMP`: Enhanced RTMP is offered and taken. */
  readonly extended: boolean;
}

const MAX_SESSIONS = 4096;
/** Sessions that do not publish yet; beyond it the oldest of them gives way. */
const MAX_WAITING = 512;

/** Takes RTMP publishers on one port. */
export class RtmpServer {
  readonly #sessions = new Set<RtmpSession>();
  /** In the order they came. */
  readonly #waiting = new Set<RtmpSession>();
  #listener: TcpListener | undefined;
  #closed: Promise<void> | undefined;

  /** @throws the system's error when the address cannot be listened on */
  static async listen(options: RtmpServerOptions): Promise<RtmpServer> {
    const server = new RtmpServer();
    const log = options.log.child({ module: 'rtmp' });
    const { registry, names, host, port, proxyNetworks, extended } = options;
    const partial = { bytes: 0 };
    server.#listener = await listenTcp({ host, port, proxyNetworks, log }, (socket, peer) => {
      if (server.#closed !== undefined || server.#sessions.size >= MAX_SESSIONS) {
        log.warn({ remote: peer.remoteAddress }, `RTMP connection refused: ${MAX_SESSIONS} are open`);
        socket.on('error', () => {}).destroy();
        return;
      }
      const session: RtmpSession = new RtmpSession(socket, peer, {
        registry, names, log, extended, partial,
        onPublishing: (publishing) => {
          if (publishing) server.#waiting.delete(session);
          else server.#waiting.add(session);
        },
        onClose: () => {
          server.#sessions.delete(session);
          server.#waiting.delete(session);
        },
      });
      server.#sessions.add(session);
      server.#waiting.add(session);
      if (server.#waiting.size > MAX_WAITING) server.#dropOldestWaiting();
    });
    return server;
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Connections that are open. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** Stops listening and ends every session. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#listener?.close();
      for (const session of [...this.#sessions]) session.close('the server is closing');
    })();
    return this.#closed;
  }

  #dropOldestWaiting(): void {
    for (const session of this.#waiting) {
      this.#waiting.delete(session);
      session.close('too many connections wait to publish', 'warn');
      return;
    }
  }
}
