import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NodeIdentity, PeerHandler, PeerResponse, PeerStreamHandler } from '../types.ts';
import { bodyHash } from './mac.ts';
import { Nonces } from './nonces.ts';
import type { PeerTls } from './port.ts';
import { PROTOCOL, STREAM } from './stream.ts';
import { seal, unseal, type Answer, type Call, type Refusal } from './wire.ts';

/** How old a call may be, or how early by a clock that is not in step yet. */
const WINDOW_MS = 30_000;
const MAX_BODY = 32 * 1024 * 1024;
const NOTHING: PeerResponse = { status: 500, headers: {}, body: Buffer.alloc(0) };

export interface PeerServerOptions {
  readonly self: NodeIdentity;
  readonly secret: string;
  readonly tls: PeerTls | undefined;
  readonly now: () => number;
  readonly handler: PeerHandler;
}

/** Takes the calls of other nodes. Whoever does not know the secret gets nothing but 403. */
export class PeerServer {
  readonly #options: PeerServerOptions;
  readonly #nonces = new Nonces(2 * WINDOW_MS);
  readonly #server: Server;
  readonly #streams = new Set<Duplex>();
  #takesStreams: PeerStreamHandler | undefined;

  constructor(options: PeerServerOptions) {
    this.#options = options;
    const listener: RequestListener = (request, response) => void this.#take(request, response);
    const limits = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 15_000 };
    this.#server = options.tls === undefined ? createServer(limits, listener) : createTlsServer({ ...options.tls, ...limits }, listener);
    this.#server.on('upgrade', (request, socket, head) => this.#takeStream(request, socket, head));
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
    const { secret, handler } = this.#options;
    const call = unseal(secret, 'call', request.headers);
    if (call === undefined) return reject(response, 403);
    const refused = this.#objection(call);
    if (refused !== undefined) return this.#answer(response, call, NOTHING, refused);
    const body = await read(request);
    if (body === undefined || bodyHash(body) !== call.bodyHash) return reject(response, 400);
    const { method, path, headers, from } = call;
    // what a handler throws is its own business to tell: here it is an answer without a word
    const answer = await handler({ method, path, headers, body }, from).catch(() => NOTHING);
    this.#answer(response, call, answer);
  }

  #takeStream({ headers }: IncomingMessage, socket: Duplex, head: Buffer): void {
    // who has the stream hears of its end; before that nobody has to
    socket.on('error', () => socket.destroy());
    const call = unseal(this.#options.secret, 'call', headers);
    if (call === undefined) return void socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
    const refused = this.#objection(call);
    const take = call.method === STREAM && refused === undefined ? this.#takesStreams : undefined;
    const status = take === undefined ? 503 : 101;
    const answer = seal(this.#options.secret, 'answer', {
      status, headers: {}, nonce: call.nonce, bodyHash: '', ...(refused !== undefined && { refused }),
    });
    const lines = [
      take === undefined ? 'HTTP/1.1 503 Refused' : 'HTTP/1.1 101 Switching Protocols',
      ...(take === undefined ? ['connection: close', 'content-length: 0'] : ['connection: Upgrade', `upgrade: ${PROTOCOL}`]),
      ...Object.entries(answer).map(([name, value]) => `${name}: ${value}`),
    ];
    const text = `${lines.join('\r\n')}\r\n\r\n`;
    if (take === undefined) return void socket.end(text);
    socket.write(text);
    if (head.length > 0) socket.unshift(head);
    this.#streams.add(socket);
    socket.once('close', () => this.#streams.delete(socket));
    take(socket, call.path, call.from);
  }

  #objection({ to, time, nonce }: Call): Refusal | undefined {
    const { self, now } = this.#options;
    if (to.id !== self.id || to.incarnation !== self.incarnation) return 'another';
    if (Math.abs(now() - time) > WINDOW_MS) return 'time';
    if (!this.#nonces.use(nonce)) return 'repeated';
    return undefined;
  }

  #answer(response: ServerResponse, { nonce }: Call, { status, headers, body }: PeerResponse, refused?: Refusal): void {
    const answer: Answer = { status, headers, nonce, bodyHash: bodyHash(body), ...(refused !== undefined && { refused }) };
    response.writeHead(200, { ...seal(this.#options.secret, 'answer', answer), 'content-length': body.length });
    response.end(body);
  }
}

function reject(response: ServerResponse, status: number): void {
  response.writeHead(status, { connection: 'close' }).end();
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
