import { randomBytes } from 'node:crypto';
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, BlockList, DropArgument, Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { CertificateStore } from '../tls/certificates.ts';
import type { RefusalCounts, RefusalReason } from '../access/refusal-counts.ts';
import { RefusalLog } from '../access/refusal-log.ts';
import { canonicalAddress } from '../lib/address.ts';
import { BY_SCHEMAS } from '../lib/by-schema.ts';
import { createTlsFront } from '../tls/tls-front.ts';
import type { Logger } from '../log/log.ts';
import type { HttpRequest, HttpResponse } from '../protocols/http.ts';
import { acceptSockets, includes, listenAddress, listenTcp, type Peer, type TcpListener } from '../protocols/tcp.ts';
import { createHttp2Side } from './http2.ts';
import { LeanConnection } from './lean-http/connection.ts';
import { LIMITS } from './limits.ts';
import { logFailures } from './request-log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    readonly viaProxy?: boolean;
  }
  interface FastifyInstance {
    /** Called in turn with each request, before the router, until one returns true: it has answered the request, or will. */
    readonly interceptors?: Interceptor[];
  }
}

type Interceptor = (
  request: HttpRequest,
  response: HttpResponse,
  context: {
    /** Host that the client asked, without its port. */
    readonly hostname: string;
    /** Headers of every response. */
    readonly headers: Readonly<Record<string, string>>;
  },
) => boolean;

interface TlsOptions {
  readonly certificates: CertificateStore;
  /** Offers HTTP/2 beside HTTP/1.1. */
  readonly http2: boolean;
}

export interface HttpPortOptions {
  /** Proxies that begin each connection with a PROXY protocol header; those in both networks may. */
  readonly proxyNetworks?: BlockList;
  /** Proxies whose `X-Forwarded-For`, `-Host`, `-Proto` and `-Port` are believed. */
  readonly forwardedNetworks?: BlockList;
  /** Speaks TLS, behind the PROXY protocol header where there is one. */
  readonly tls?: TlsOptions;
  /** Counts connections that are refused. */
  readonly refusals?: RefusalCounts;
  readonly log: Logger;
}

/** One HTTP port: register plugins on `app`, then listen. */
export interface HttpPort {
  /**
   * `request.ip` is the real client, `request.viaProxy` whether a proxy that is believed forwarded the request,
   * `request.id` the caller's X-Request-Id when that is sane.
   */
  readonly app: FastifyInstance;
  /**
   * Listens on every host (as Server.xml names them) with one port number, 0 for any free one.
   * @returns the port
   */
  listen(hosts: readonly string[], port: number): Promise<number>;
  /** Refuses new requests, lets running ones end for `graceMs`, then cuts what is left. Idempotent. */
  close(graceMs?: number): Promise<void>;
}

const GRACE_MS = 5000;
const HEADERS = { server: 'Kiln' };
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Makes a port that holds out against slow, oversized and malformed requests, and that knows the real client
 * behind PROXY protocol and X-Forwarded-For.
 */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { proxyNetworks, forwardedNetworks, tls, log } = options;
  // Who may name the client in X-Forwarded-For gains nothing from leaving the header out.
  const accepting = { proxyNetworks, headerless: forwardedNetworks, log };
  const sockets = new Set<Socket>();
  const lean = new Set<LeanConnection>();
  const more: TcpListener[] = [];
  let dropPending = (): void => {};
  let closeFront = (): void => {};
  let deliver = (_socket: Socket, _peer: Peer): void => {};
  let closing: Promise<void> | undefined;
  const refusals = new RefusalLog(log);
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  type Stranger = Pick<Peer, 'remoteAddress' | 'remotePort'>;
  const refused = (kind: RefusalReason, reason: string, { remoteAddress, remotePort }: Stranger): void => {
    const client = { protocol: 'http', address: canonicalAddress(remoteAddress), port: remotePort } as const;
    options.refusals?.add(client, kind);
    refusals.add(client, reason);
  };
  const refuseOneMore = (peer: Stranger): void =>
    refused('tooManyConnections', `${LIMITS.connections} connections are open`, peer);

  const interceptors: Interceptor[] = [];
  const app = Fastify({
    serverFactory: (route) => {
      const handler: RequestListener = (request, response) => {
        if (!isIntercepted(request, response)) route(request, response);
      };
      const server: Server = createServer(
        {
          maxHeaderSize: LIMITS.headerBytes,
          headersTimeout: LIMITS.headersMs,
          requestTimeout: LIMITS.requestMs,
          connectionsCheckingInterval: LIMITS.checkMs,
          keepAliveTimeout: LIMITS.keepAliveMs,
          noDelay: true,
          // Others that clients offer, HTTP/2 in the clear above all, may be passed over (RFC 9110 section 7.8).
          shouldUpgradeCallback: ({ headers }) =>
            headers.upgrade?.toLowerCase() === 'websocket' && server.listenerCount('upgrade') > 0,
        },
        handler,
      );
      server.maxHeadersCount = LIMITS.headers;
      server.maxConnections = LIMITS.connections;
      server.on('drop', ({ remoteAddress, remotePort }: DropArgument = {}) => {
        if (remoteAddress !== undefined && remotePort !== undefined) refuseOneMore({ remoteAddress, remotePort });
      });
      server.setTimeout(LIMITS.idleMs);
      const serve = takeOverConnections(server);
      const start = (socket: Socket, peer: Peer): void => {
        // requests that interceptors answer do without node:http
        if (tls === undefined && interceptors.length > 0 && closing === undefined) return startLean(socket, peer);
        setPeer(socket, peer);
        serve(socket);
      };
      const startLean = (socket: Socket, peer: Peer): void => {
        const connection = new LeanConnection(socket, leanPort, () => lean.delete(connection));
        lean.add(connection);
        sockets.delete(socket);
        track(connection.socket);
        setPeer(connection.socket, peer);
      };
      const leanPort = {
        answer: isIntercepted,
        handOver: serve,
        refuseLate: (socket: Socket) =>
          answerMalformed(Object.assign(new Error('no request'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
      };
      const accept = tls === undefined ? start : secured(handler, tls, start);
      deliver = (socket, peer) => {
        // the server counts the connections of its own address only
        if (sockets.size >= LIMITS.connections) {
          refuseOneMore(peer);
          return void socket.destroy();
        }
        track(socket);
        accept(socket, peer);
      };
      dropPending = acceptSockets(server, accepting, deliver);
      return server;
    },
    ...logFailures(log),
    trustProxy: forwardedNetworks !== undefined && ((address: string) => includes(forwardedNetworks, address)),
    genReqId: requestIds(),
    // a busy machine may take longer for the routes than the limit of the framework, ten seconds
    pluginTimeout: 0,
    bodyLimit: LIMITS.bodyBytes,
    routerOptions: { maxParamLength: LIMITS.pathNameLength },
    schemaController: BY_SCHEMAS,
    clientErrorHandler: answerMalformed,
    frameworkErrors: answerUnroutable,
  });
  app.decorateRequest('viaProxy', {
    getter(): boolean {
      return includes(forwardedNetworks, this.raw.socket.remoteAddress ?? '');
    },
  });
  app.decorate('interceptors', interceptors);
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(HEADERS);
    done();
  });
  if (tls?.http2) app.addHook('onSend', dropConnectionHeader);

  return {
    app: app as unknown as FastifyInstance,
    listen: async ([first = '*', ...others], wanted) => {
      await app.listen(listenAddress(first, wanted));
      const { port } = app.server.address() as AddressInfo;
      for (const host of others) more.push(await listenTcp({ host, port, ...accepting }, deliver));
      return port;
    },
    close: (graceMs = GRACE_MS) => (closing ??= close(graceMs)),
  };

  function isIntercepted(request: HttpRequest, response: HttpResponse): boolean {
    const { headers } = request;
    // the framework knows whom to believe, and refuses requests while it closes
    const isPlain = forwardedNetworks === undefined || headers['x-forwarded-host'] === undefined;
    if (interceptors.length === 0 || !isPlain || closing !== undefined) return false;
    const context = { hostname: hostnameOf(request), headers: HEADERS };
    return interceptors.some((intercept) => intercept(request, response, context));
  }

  /** Puts TLS in front of HTTP/1.1, with HTTP/2 beside it for clients that want it. */
  function secured(handler: RequestListener, given: TlsOptions, start: typeof deliver): typeof deliver {
    const http2 = createHttp2Side(handler, log);
    const front = createTlsFront({
      certificates: given.certificates,
      protocols: given.http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      onSecure: (socket, peer) => {
        if (socket.alpnProtocol !== 'h2') return start(socket, peer);
        setPeer(socket, peer);
        http2.serve(socket);
      },
      onFailure: (reason, peer) => {
        if (peer !== undefined) refused('tls', reason, peer);
      },
    });
    closeFront = () => {
      front.close();
      http2.close();
    };
    return front.accept;
  }

  async function close(graceMs: number): Promise<void> {
    dropPending();
    closeFront();
    for (const connection of lean) connection.close();
    for (const listener of more) await listener.close();
    const cut = setTimeout(() => sockets.forEach((socket) => socket.destroy()), graceMs);
    await app.close();
    // the server does not wait for connections that it has not accepted, or that were replaced
    await Promise.all(Array.from(sockets, (socket) => new Promise((resolve) => socket.once('close', resolve))));
    clearTimeout(cut);
    refusals.close();
  }
}

/** Detaches the server's own reaction to a connection, to be called when the real client is known. */
function takeOverConnections(server: Server): (socket: Socket) => void {
  const serve = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  return (socket) => {
    for (const listener of serve) listener.call(server, socket);
  };
}

/** Host of a request without its port, as in `FastifyRequest.hostname`. */
function hostnameOf({ headers }: HttpRequest): string {
  const host = headers.host ?? String(headers[':authority'] ?? '');
  if (host.startsWith('[')) return host.slice(0, host.indexOf(']') + 1);
  const end = host.indexOf(':');
  return end < 0 ? host : host.slice(0, end);
}

/** Everything that asks the socket for its addresses, Fastify included, sees the real client. */
function setPeer(socket: Socket, peer: Peer): void {
  for (const [key, value] of Object.entries(peer)) Object.defineProperty(socket, key, { value, configurable: true });
}

/** Removes Fastify's header `connection`, which HTTP/2 does not allow (RFC 9113 section 8.2.2). */
function dropConnectionHeader(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  done();
}

/** The caller's id when it is sane; else a number behind a prefix that differs from process to process. */
function requestIds(): (request: IncomingMessage) => string {
  const prefix = randomBytes(4).toString('hex');
  let count = 0;
  return ({ headers }) => {
    const given = headers['x-request-id'];
    return typeof given === 'string' && REQUEST_ID.test(given) ? given : `${prefix}-${(++count).toString(36)}`;
  };
}

/** Body of an answer for what reaches no route, in the management API's form. */
function errorBody(status: number): string {
  return JSON.stringify({ message: `[HTTP] ${STATUS_CODES[status]} (${status})`, statusCode: status });
}

/** Answers what cannot be read as HTTP, unless another answer is under way: the connection is of no more use. */
function answerMalformed(
  error: NodeJS.ErrnoException,
  socket: Socket & { _httpMessage?: ServerResponse | null },
): void {
  if (!socket.writable || error.code === 'ECONNRESET' || socket._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const status = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }[error.code ?? ''] ?? 400;
  const body = errorBody(status);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nServer: Kiln\r\nConnection: close\r\n` +
      `Content-Type: application/json;charset=UTF-8\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/** Answers a path that cannot be decoded (400) or whose names are too long (414). */
function answerUnroutable(error: FastifyError, _request: FastifyRequest, reply: FastifyReply): void {
  const status = error.statusCode ?? 400;
  reply.code(status).header('server', 'Kiln').type('application/json;charset=UTF-8').send(errorBody(status));
}
