import type { BlockList, Socket } from 'node:net';
import type { Access } from '../../access/access.ts';
import type { CertificateStore } from '../../tls/certificates.ts';
import { createTlsFront, type TlsFront } from '../../tls/tls-front.ts';
import type { Logger } from '../../log/log.ts';
import { SessionTable, type TableSession } from '../../lib/session-table.ts';
import { listenTcp, type OnSocket, type Peer, type TcpListener } from '../../protocols/tcp.ts';
import { HandOver, type HandOverOptions } from './hand-over.ts';
import type { RtmpPlayers } from './playing.ts';
import { RtmpSession } from './session.ts';

export interface RtmpServerOptions {
  readonly access: Access;
  readonly log: Logger;
  readonly host: string;
  /** 0: any free one; absent: none in the clear. */
  readonly port?: number;
  /** Port of RTMPS, 0 for any free one. */
  readonly tls?: { readonly port: number; readonly certificates: CertificateStore };
  readonly proxyNetworks?: BlockList;
  /** `Modules/ERTMP`: Enhanced RTMP is offered and accepted. */
  readonly extended: boolean;
  /** Clients may publish. */
  readonly publishes: boolean;
  /** Absent where clients may not play. */
  readonly players?: RtmpPlayers | undefined;
  readonly handOver: Pick<HandOverOptions, 'registry' | 'hasSuccessor'>;
}

const LIMITS = { sessions: 4096, waiting: 512, purpose: 'publish' };
/** Where clients may play. */
const PLAY_LIMITS = { sessions: 16_384, waiting: 512, purpose: 'publish or play' };

/** Accepts RTMP clients at one address, to publish, to play, or for both: in the clear, over TLS, or both. */
export class RtmpServer {
  readonly #options: RtmpServerOptions;
  readonly #log: Logger;
  readonly #sessions: SessionTable<TableSession>;
  /** Incomplete messages of all sessions. */
  readonly #partial = { bytes: 0 };
  readonly #publishers = new Set<RtmpSession>();
  readonly #handOver: HandOver;
  /** Connections whose TLS handshake is under way. */
  readonly #handshakes = new Map<Peer, TableSession>();
  #listener: TcpListener | undefined;
  #tlsListener: TcpListener | undefined;
  #tlsFront: TlsFront | undefined;
  #closed: Promise<void> | undefined;

  /** @throws the system's error when an address cannot be listened on */
  static async listen(options: RtmpServerOptions): Promise<RtmpServer> {
    const server = new RtmpServer(options);
    const { port, tls } = options;
    try {
      if (port !== undefined)
        server.#listener = await server.#listen(port, (socket, peer) => server.#begin(socket, peer, false));
      if (tls !== undefined) server.#tlsListener = await server.#listen(tls.port, server.#secured(tls.certificates));
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  private constructor(options: RtmpServerOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'rtmp' });
    this.#sessions = new SessionTable(options.players === undefined ? LIMITS : PLAY_LIMITS);
    this.#handOver = new HandOver({ ...options.handOver, publishers: () => this.#publishers });
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  get tlsPort(): number {
    return this.#tlsListener?.port ?? 0;
  }

  /** Open connections, those in their handshake included. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** Stops listening and ends every session. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      this.#handOver.close();
      await this.#listener?.close();
      await this.#tlsListener?.close();
      this.#tlsFront?.close();
      this.#sessions.closeAll('the server is closing');
    })();
    return this.#closed;
  }

  #listen(port: number, take: OnSocket): Promise<TcpListener> {
    const { host, proxyNetworks } = this.#options;
    return listenTcp({ host, port, proxyNetworks, log: this.#log }, (socket, peer) => {
      const objection = this.#closed === undefined ? this.#sessions.objection : 'the server is closing';
      if (objection === undefined) return take(socket, peer);
      this.#refused(objection, peer);
      socket.on('error', () => {}).destroy();
    });
  }

  #begin(socket: Socket, peer: Peer, secure: boolean): void {
    const { access, extended, publishes, players } = this.#options;
    const session: RtmpSession = new RtmpSession(socket, peer, {
      access,
      log: this.#log,
      publishes,
      players,
      extended,
      secure,
      partial: this.#partial,
      onPublishing: (publishing) => {
        this.#sessions.setWaiting(session, !publishing);
        if (publishing) this.#publishers.add(session);
        else this.#publishers.delete(session);
      },
      onPlaying: (playing) => this.#sessions.setWaiting(session, !playing),
      onClose: () => this.#sessions.delete(session),
    });
    this.#sessions.add(session);
  }

  /** A connection counts as a session from the first byte of its TLS handshake on. */
  #secured(certificates: CertificateStore): OnSocket {
    const refuse = (reason: string, peer: Peer | undefined): void => {
      if (peer !== undefined) this.#refused(reason, peer, 'tls');
    };
    const front = createTlsFront({
      certificates,
      onSecure: (socket, peer) => {
        this.#handshakeEnded(peer);
        this.#begin(socket, peer, true);
      },
      onFailure: refuse,
    });
    this.#tlsFront = front;
    return (socket, peer) => {
      const handshake: TableSession = {
        close: (reason) => {
          refuse(reason, peer);
          socket.destroy();
        },
      };
      this.#handshakes.set(peer, handshake);
      socket.once('close', () => this.#handshakeEnded(peer));
      front.accept(socket, peer);
      if (!socket.destroyed) this.#sessions.add(handshake);
    };
  }

  #refused(reason: string, { remoteAddress: address, remotePort: port }: Peer, kind?: 'tls'): void {
    this.#options.access.report({ direction: 'incoming', protocol: 'rtmp', address, port }, reason, kind);
  }

  /** The handshake is complete, or the connection has ended. */
  #handshakeEnded(peer: Peer): void {
    const handshake = this.#handshakes.get(peer);
    if (handshake === undefined) return;
    this.#handshakes.delete(peer);
    this.#sessions.delete(handshake);
  }
}
