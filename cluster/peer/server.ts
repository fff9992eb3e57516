import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Rejections } from '../rejections.ts';
import type { NodeIdentity, PeerHandler, PeerResponse, PeerStreamHandler } from '../types.ts';
import { CallClock, WINDOW_MS } from './call-clock.ts';
import { Callers } from './certificate.ts';
import { bodyHash, type Secrets } from './mac.ts';
import { Nonces } from './nonces.ts';
import type { PeerTls } from './port.ts';
import { HELD, PROTOCOL, STREAM } from './stream.ts';
import { UnauthenticatedPeers } from './unauthenticated-peers.ts';
import { MAX_HEAD, seal, unseal, type Answer, type Call, type Refusal } from './wire.ts';

const MAX_BODY = 32 * 1024 * 1024;
/** Limit for all nodes together: a node opens one for each stream that it relays, or whose files it receives. */
const MAX_STREAMS = 16_384;
const KEEP_ALIVE_MS = 10_000;
/** How long a rejected client may take to read the answer. */
const PARTING_MS = 5000;
const LIMITS = {
  requestTimeout: 30_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 15_000,
  connectionsCheckingInterval: 2000,
  maxHeaderSize: MAX_HEAD,
};
/** Callers show their certificates. One without a valid certificate gets the reason in the answer, not a closed connection. */
const CALLER = { requestCert: true, rejectUnauthorized: false };
const NOTHING: PeerResponse = { status: 500, headers: {}, body: Buffer.alloc(0) };

export interface PeerServerOptions {
  readonly self: NodeIdentity;
  readonly secrets: Secrets;
  readonly tls: PeerTls | undefined;
  /** The cluster's time. */
  readonly now: () => number;
  readonly handler: PeerHandler;
  readonly rejections: Rejections;
  readonly onFault: (error: Error) => void;
}

/** Accepts calls of other nodes. Clients that do not know the secret get 403. */
export class PeerServer {
  readonly #options: PeerServerOptions;
  readonly #clock: CallClock;
  /** No call is valid for longer than a window. */
  readonly #nonces = new Nonces(2 * WINDOW_MS);
  readonly #server: Server;
  readonly #unauthenticated = new UnauthenticatedPeers();
  readonly #callers = new Callers();
  readonly #streams = new Set<Duplex>();
  #takesStreams: PeerStreamHandler | undefined;

  constructor(options: PeerServerOptions) {
    this.#options = options;
    this.#clock = new CallClock(options.now);
    const { tls, onFault } = options;
    const listener: RequestListener = (request, response) => {
      this.#take(request, response).catch((error: Error) => {
        onFault(error);
        response.destroy();
      });
    };
    this.#server =
      tls === undefined
        ? createServer(LIMITS, listener)
        : createTlsServer({ ...tls, ...CALLER, ...LIMITS, handshakeTimeout: LIMITS.headersTimeout }, listener);
    this.#server.on('connection', (socket: Socket) => this.#unauthenticated.add(socket));
    this.#server.on('upgrade', (request, socket, head) => {
      try {
        this.#takeStream(request, socket, head);
      } catch (error) {
        onFault(error as Error);
        socket.destroy();
      }
    });
  }

  /** @returns the port */
  async listen(host: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(port, host, resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  serveStreams(handler: PeerStreamHandler | undefined): void {
    this.#takesStreams = handler;
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.destroy();
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { secrets, handler, onFault } = this.#options;
    const call = unseal(secrets, 'call', request.headers);
    if (call === undefined) return reject(response, 403);
    const refused = this.#certificateRefusal(call, request.socket) ?? this.#objection(call, request.socket);
    if (refused !== undefined) return this.#answer(response, call, NOTHING, refused);
    const body = await read(request);
    if (body === undefined || bodyHash(body) !== call.bodyHash) return reject(response, 400);
    const { method, path, headers, from } = call;
    const answer = await handler({ method, path, headers, body }, from).catch((error: Error) => {
      onFault(error);
      return NOTHING;
    });
    this.#answer(response, call, answer);
  }

  #takeStream({ headers, socket: connection }: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { remoteAddress, remotePort } = connection;
    // the handler of the stream notices its end; before it runs, nothing has to
    socket.on('error', () => socket.destroy());
    const call = unseal(this.#options.secrets, 'call', headers);
    if (call === undefined) return part(socket, 'HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
    const refused =
      this.#certificateRefusal(call, connection) ??
      this.#objection(call, { remoteAddress, remotePort }) ??
      (this.#streams.size >= MAX_STREAMS && call.path !== HELD ? 'busy' : undefined);
    const handler = call.path === HELD ? hold : this.#takesStreams;
    const take = call.method === STREAM && refused === undefined ? handler : undefined;
    const status = take === undefined ? 503 : 101;
    const answer = seal(this.#options.secrets, 'answer', {
      status,
      headers: {},
      nonce: call.nonce,
      bodyHash: '',
      ...this.#refusal(refused),
    });
    const lines = [
      take === undefined ? 'HTTP/1.1 503 Refused' : 'HTTP/1.1 101 Switching Protocols',
      ...(take === undefined
        ? ['connection: close', 'content-length: 0']
        : ['connection: Upgrade', `upgrade: ${PROTOCOL}`]),
      ...Object.entries(answer).map(([name, value]) => `${name}: ${value}`),
    ];
    const text = `${lines.join('\r\n')}\r\n\r\n`;
    if (take === undefined) return part(socket, text);
    socket.write(text);
    if (head.length > 0) socket.unshift(head);
    this.#streams.add(socket);
    socket.once('close', () => this.#streams.delete(socket));
    take(socket, call.path, call.from);
  }

  /** Checks that the certificate names the calling node, where nodes show certificates. */
  #certificateRefusal({ from }: Call, socket: Socket): Refusal | undefined {
    const { tls, rejections } = this.#options;
    if (tls?.ca === undefined) return undefined;
    const reason = this.#callers.objection(socket, from.id);
    if (reason === undefined) rejections.trust('certificates', from.id);
    else rejections.refuse('certificates', from.id, reason);
    return reason === undefined ? undefined : 'certificate';
  }

  #objection({ to, time, nonce }: Call, from: Parameters<UnauthenticatedPeers['proved']>[0]): Refusal | undefined {
    const { self } = this.#options;
    if (to.id !== self.id || (to.incarnation !== self.incarnation && to.incarnation !== '')) return 'another';
    if (!this.#clock.accepts(time)) return 'time';
    const used = this.#nonces.use(nonce);
    // a call that was recorded and repeated proves nothing
    if (used !== 'repeated') this.#unauthenticated.proved(from);
    return used;
  }

  /** Fields of the answer for a rejected call. */
  #refusal(refused: Refusal | undefined): Pick<Answer, 'refused' | 'time'> {
    return { ...(refused !== undefined && { refused }), ...(refused === 'time' && { time: this.#clock.now }) };
  }

  #answer(response: ServerResponse, { nonce }: Call, { status, headers, body }: PeerResponse, refused?: Refusal): void {
    const answer: Answer = {
      status,
      headers,
      nonce,
      bodyHash: bodyHash(body),
      ...this.#refusal(refused),
    };
    response.writeHead(200, { ...seal(this.#options.secrets, 'answer', answer), 'content-length': body.length });
    response.end(body);
  }
}

function hold(socket: Duplex): void {
  // ends the connection of a machine that is gone
  (socket as Socket).setKeepAlive(true, KEEP_ALIVE_MS);
  socket.once('end', () => socket.destroy()).resume();
}

function reject(response: ServerResponse, status: number): void {
  response.writeHead(status, { connection: 'close' }).end();
}

/** Ends a connection in bounded time: node:http has no timeouts for it any more. */
function part(socket: Duplex, text: string): void {
  const late = setTimeout(() => socket.destroy(), PARTING_MS);
  socket.once('close', () => clearTimeout(late));
  socket.end(text, () => socket.destroy());
}

/** @returns undefined when it is too long, or was cut off */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_BODY) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks, length);
}
