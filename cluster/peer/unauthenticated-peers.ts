import type { Socket } from 'node:net';

/** With more than this the oldest is closed: a node authenticates itself with its first call. */
const MAX = 512;

/** Connections that are not authenticated yet. Their number is limited, so they cannot keep nodes from connecting. */
export class UnauthenticatedPeers {
  readonly #max: number;
  /** By remote address and port: with TLS a call has another socket object than its connection. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max = MAX) {
    this.#max = max;
  }

  add(socket: Socket): void {
    const from = originOf(socket);
    this.#sockets.set(from, socket);
    socket.once('close', () => this.#sockets.get(from) === socket && this.#sockets.delete(from));
    if (this.#sockets.size > this.#max) [...this.#sockets.values()][0]?.destroy();
  }

  /** Takes out a connection that belongs to a node. */
  proved(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    this.#sockets.delete(originOf(socket));
  }
}

function originOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}
