import type { IncomingMessage, Server } from 'node:http';
import type { BlockList } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Access } from '../../access/access.ts';
import { httpAccess } from '../../access/http-request.ts';
import type { RefusalReason } from '../../access/refusal-counts.ts';
import { MAX_WEB_SOCKETS, refuseUpgrade, WebSockets } from '../../lib/web-sockets.ts';
import { forwarded } from './forwarded.ts';
import { directionOf, type PeerRequest } from './request.ts';

const MAX_MESSAGE = 128 * 1024;
/** Characters of a rejected path that are logged. */
const MAX_ASKED = 300;

type OnSocket = (socket: WebSocket, request: PeerRequest) => void;

/** WebSocket connections under `/app/stream[/playlist]`, on any number of ports. */
export class Upgrades {
  readonly #proxies: BlockList | undefined;
  readonly #access: Pick<Access, 'report'>;
  readonly #sockets = new WebSockets(MAX_MESSAGE);
  readonly #servers = new Map<Server, (request: IncomingMessage, socket: Duplex, head: Buffer) => void>();

  /**
   * @param proxies networks whose `X-Forwarded-For` is trusted
   * @param access logs rejected requests
   */
  constructor(proxies: BlockList | undefined, access: Pick<Access, 'report'>) {
    this.#proxies = proxies;
    this.#access = access;
  }

  /** Handles the upgrades of an HTTP server until `close`. @param isOthers whether one is for another module */
  attach(server: Server, onSocket: OnSocket, isOthers: (request: IncomingMessage) => boolean = () => false): void {
    if (this.#servers.has(server)) return;
    const listener = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      if (!isOthers(request)) this.#upgrade(request, socket, head, onSocket);
    };
    this.#servers.set(server, listener);
    server.on('upgrade', listener);
    server.once('close', () => this.#servers.delete(server));
  }

  /** Closes all connections. Idempotent. */
  close(): void {
    for (const [server, listener] of this.#servers) server.off('upgrade', listener);
    this.#servers.clear();
    this.#sockets.close();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, onSocket: OnSocket): void {
    const peer = peerRequest(request, this.#proxies);
    if (peer === undefined) {
      this.#refused(request, 'its path names no stream', 'unread');
      return refuseUpgrade(socket, 404);
    }
    if (this.#sockets.size >= MAX_WEB_SOCKETS) {
      this.#refused(request, `${MAX_WEB_SOCKETS} connections are open`, 'tooManyConnections');
      return refuseUpgrade(socket, 503);
    }
    this.#sockets.accept(request, socket, head, (webSocket) => onSocket(webSocket, peer));
  }

  #refused(request: IncomingMessage, reason: string, kind: RefusalReason): void {
    const { url = '', socket } = request;
    const { remoteAddress, remotePort } = socket;
    const { ip: address } = forwarded(request, this.#proxies);
    const [path = '', query = ''] = url.split('?', 2);
    this.#access.report(
      {
        direction: directionOf(new URLSearchParams(query)),
        protocol: 'webrtc',
        address,
        ...(address === remoteAddress && { port: remotePort }),
        asked: path.slice(0, MAX_ASKED),
      },
      reason,
      kind,
    );
  }
}

/** Reads the names in a request for an upgrade; undefined where its path names no stream. */
export function peerRequest(request: IncomingMessage, proxies: BlockList | undefined): PeerRequest | undefined {
  const { url = '', headers, socket } = request;
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const names = path.split('/').slice(1).map(decode);
  if (names.length < 2 || names.length > 3 || names.some((name) => name === undefined || name === '')) return undefined;
  const [app, stream, playlist] = names as [string, string, string?];
  const { host = '' } = headers;
  return {
    ...httpAccess(request, forwarded(request, proxies), 'ws'),
    hostName: hostName(host),
    origin: `${'encrypted' in socket ? 'wss' : 'ws'}://${host}`,
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
