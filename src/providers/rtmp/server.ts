import type { BlockList } from 'node:net';
import type { Registry } from '../../core/registry.ts';
import type { Logger } from '../../log.ts';
import type { StreamNames } from '../../origins/stream-names.ts';
import { SessionTable } from '../../protocols/session-table.ts';
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

const LIMITS = { sessions: 4096, waiting: 512, purpose: 'publish' };

/** Takes RTMP publishers on one port. */
export class RtmpServer {
  readonly #sessions = new SessionTable<RtmpSession>(LIMITS);
  #listener: TcpListener | undefined;
  #closed: Promise<void> | undefined;

  /** @throws the system's error when the address cannot be listened on */
  static async listen(options: RtmpServerOptions): Promise<RtmpServer> {
    const server = new RtmpServer();
    const log = options.log.child({ module: 'rtmp' });
    const { registry, names, host, port, proxyNetworks, extended } = options;
    const partial = { bytes: 0 };
    server.#listener = await listenTcp({ host, port, proxyNetworks, log }, (socket, peer) => {
      const objection = server.#closed === undefined ? server.#sessions.objection : 'the server is closing';
      if (objection !== undefined) {
        log.warn({ remote: peer.remoteAddress }, `RTMP connection refused: ${objection}`);
        socket.on('error', () => {}).destroy();
        return;
      }
      const session: RtmpSession = new RtmpSession(socket, peer, {
        registry, names, log, extended, partial,
        onPublishing: (publishing) => server.#sessions.setWaiting(session, !publishing),
        onClose: () => server.#sessions.delete(session),
      });
      server.#sessions.add(session);
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
      this.#sessions.closeAll('the server is closing');
    })();
    return this.#closed;
  }
}
