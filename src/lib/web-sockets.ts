import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';

/** Connections that may be open at once. */
export const MAX_WEB_SOCKETS = 10_000;
/** A connection that has not answered one ping when the next is due is gone. */
const PING_MS = 15_000;
const GRACE_MS = 1000;
/** Close code of a server that ends (RFC 6455 section 7.4.1). */
const GOING_AWAY = 1001;

/** WebSocket connections of HTTP servers. Those whose peer has vanished are ended. */
export class WebSockets {
  readonly #wss: WebSocketServer;
  readonly #silent = new Set<WebSocket>();
  readonly #timer = setInterval(() => this.#ping(), PING_MS).unref();

  /** @param maxPayload longest message of a peer, in bytes */
  constructor(maxPayload: number) {
    this.#wss = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  }

  get size(): number {
    return this.#wss.clients.size;
  }

  /** Answers a request for an upgrade: one that is malformed with an error. @param opened called at once, or never */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, opened: (webSocket: WebSocket) => void): void {
    this.#wss.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('pong', () => this.#silent.delete(webSocket));
      webSocket.once('close', () => this.#silent.delete(webSocket));
      opened(webSocket);
    });
  }

  /** Closes all connections, and cuts them soon after. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const socket of this.#wss.clients) {
      socket.close(GOING_AWAY, 'the server is closing');
      setTimeout(() => socket.terminate(), GRACE_MS).unref();
    }
    this.#wss.close();
  }

  #ping(): void {
    for (const socket of this.#wss.clients) {
      if (this.#silent.has(socket)) {
        socket.terminate();
      } else {
        this.#silent.add(socket);
        socket.ping();
      }
    }
  }
}

/** Answers a request for an upgrade with a status, and lets go of the connection. */
export function refuseUpgrade(socket: Duplex, status: number, headers: Readonly<Record<string, string>> = {}): void {
  // the end of the client is seen only by reading, and may never come
  socket.on('error', () => socket.destroy()).resume();
  setTimeout(() => socket.destroy(), GRACE_MS).unref();
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n${more.join('')}\r\n`,
  );
}
