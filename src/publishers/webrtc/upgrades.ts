import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import type { ViewRequest } from './desk.ts';

const MAX_MESSAGE = 128 * 1024;
const MAX_CONNECTIONS = 10_000;
/** A connection that has not answered one ping when the next is due is gone. */
const PING_MS = 15_000;
const GOING_AWAY = 1001;
const GRACE_MS = 1000;

/** WebSocket connections under `/app/stream[/playlist]`, whatever port they come in on. */
export class Upgrades {
  readonly #onSocket: (socket: WebSocket, view: ViewRequest) => void;
  readonly #wss = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE, perMessageDeflate: false });
  readonly #servers = new Set<Server>();
  readonly #silent = new Set<WebSocket>();
  readonly #timer = setInterval(() => this.#ping(), PING_MS).unref();

  constructor(onSocket: (socket: WebSocket, view: ViewRequest) => void) {
    this.#onSocket = onSocket;
  }

  /** Takes the upgrades of an HTTP server until `close`. */
  attach(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.on('upgrade', this.#onUpgrade);
    server.once('close', () => this.#servers.delete(server));
  }

  /** Closes all connections. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const server of this.#servers) server.off('upgrade', this.#onUpgrade);
    this.#servers.clear();
    for (const socket of this.#wss.clients) {
      socket.close(GOING_AWAY, 'the server is going away');
      setTimeout(() => socket.terminate(), GRACE_MS).unref();
    }
    this.#wss.close();
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const view = viewOf(request);
    if (view === undefined || this.#wss.clients.size >= MAX_CONNECTIONS) {
      const status = view === undefined ? '404 Not Found' : '503 Service Unavailable';
      socket.on('error', () => socket.destroy());
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#wss.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('pong', () => this.#silent.delete(webSocket));
      webSocket.once('close', () => this.#silent.delete(webSocket));
      this.#onSocket(webSocket, view);
    });
  };

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

function viewOf({ url = '', headers, socket }: IncomingMessage): ViewRequest | undefined {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const names = path.split('/').slice(1).map(decode);
  if (names.length < 2 || names.length > 3 || names.some((name) => name === undefined || name === '')) return undefined;
  const [app, stream, playlist] = names as [string, string, string?];
  return {
    hostName: hostName(headers.host ?? ''),
    client: socket.remoteAddress ?? '',
    app,
    stream,
    ...(playlist === undefined ? {} : { playlist }),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark)),
  };
}

function decode(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/** The host of a `Host` header, without its port. */
function hostName(host: string): string {
  return host.replace(/:\d*$/, '');
}
