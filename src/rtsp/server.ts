import type { BlockList, Socket } from 'node:net';
import type { Logger } from '../log/log.ts';
import { listenTcp, type OnSocket, type Peer, type TcpListener } from '../protocols/tcp.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import { createTlsFront, type TlsFront } from '../tls/tls-front.ts';

export interface RtspServerOptions {
  readonly host: string;
  /** Absent: none in the clear. */
  readonly port: number | undefined;
  /** Port of RTSPS. */
  readonly tlsPort: number | undefined;
  readonly certificates: CertificateStore;
  readonly proxyNetworks?: BlockList;
  readonly log: Logger;
  /** Reason to reject another client; undefined while there is room. */
  readonly objection: () => string | undefined;
  readonly onClient: (socket: Socket, peer: Peer, isSecure: boolean) => void;
  readonly onRefused: (reason: string, peer: Peer, kind?: 'tls') => void;
}

/** TLS handshakes that may be under way at once. */
const MAX_HANDSHAKES = 512;

/** Ports of RTSP at one address: in the clear, over TLS, or both. */
export class RtspServer {
  readonly #options: RtspServerOptions;
  readonly #listeners: TcpListener[] = [];
  #front: TlsFront | undefined;
  readonly #handshaking = new Set<Peer>();

  /** @throws the system's error, or ListenError, when a port cannot be opened */
  static async listen(options: RtspServerOptions): Promise<RtspServer> {
    const server = new RtspServer(options);
    const { port, tlsPort } = options;
    try {
      if (port !== undefined) await server.#listen(port, (socket, peer) => options.onClient(socket, peer, false));
      if (tlsPort !== undefined) await server.#listen(tlsPort, server.#secured(), () => server.#tooManyHandshakes);
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  private constructor(options: RtspServerOptions) {
    this.#options = options;
  }

  /** Stops listening. Idempotent. */
  async close(): Promise<void> {
    for (const listener of this.#listeners.splice(0)) await listener.close();
    this.#front?.close();
  }

  get #tooManyHandshakes(): string | undefined {
    return this.#handshaking.size < MAX_HANDSHAKES ? undefined : 'too many TLS handshakes are open';
  }

  async #listen(port: number, take: OnSocket, also = (): string | undefined => undefined): Promise<void> {
    const { host, proxyNetworks, log, objection, onRefused } = this.#options;
    const listener = await listenTcp({ host, port, proxyNetworks, log }, (socket, peer) => {
      const refused = objection() ?? also();
      if (refused === undefined) return take(socket, peer);
      onRefused(refused, peer);
      socket.on('error', () => {}).destroy();
    });
    this.#listeners.push(listener);
  }

  #secured(): OnSocket {
    const { certificates, onClient, onRefused } = this.#options;
    const front = createTlsFront({
      certificates,
      onSecure: (socket, peer) => {
        this.#handshaking.delete(peer);
        onClient(socket, peer, true);
      },
      onFailure: (reason, peer) => peer && onRefused(reason, peer, 'tls'),
    });
    this.#front = front;
    return (socket, peer) => {
      this.#handshaking.add(peer);
      socket.once('close', () => this.#handshaking.delete(peer));
      front.accept(socket, peer);
    };
  }
}
