import type { Socket } from 'node:net';

/** More than this at once, and the one that has been there longest goes: a node proves who it is with its first call. */
const MAX = 512;

/** Connections of those who have not proved yet that they belong to the cluster: they do not keep out who does. */
export class Strangers {
  readonly #max: number;
  /** By where it comes from: under TLS a call comes by another socket than the connection. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max = MAX) {
    this.#max = max;
  }

  /** A connection has come. */
  add(socket: Socket): void {
    const from = originOf(socket);
    this.#sockets.set(from, socket);
    socket.once('close', () => this.#sockets.get(from) === socket && this.#sockets.delete(from));
    if (this.#sockets.size > this.#max) [...this.#sockets.values()][0]?.destroy();
  }

  /** It is one of a node. */
  proved(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): void {
    this.#sockets.delete(originOf(socket));
  }
}

function originOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}
