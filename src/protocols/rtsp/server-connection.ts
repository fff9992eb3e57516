import type { Socket } from 'node:net';
import { RtspError } from './error.ts';
import { header, reasonOf, writeResponse, type Fields, type RtspRequest } from './message.ts';
import { RtspReader } from './reader.ts';

/** Answer of a server to one request. */
export interface RtspAnswer {
  readonly status: number;
  readonly fields?: Fields;
  readonly body?: string;
  /** Called when the answer was written, before anything else is. */
  readonly sent?: () => void;
}

export interface ServerConnectionEvents {
  /** Answers one request; the next is passed on after that. An error ends the connection. */
  request(request: RtspRequest): RtspAnswer | Promise<RtspAnswer>;
  /** A packet between the requests. */
  media(channel: number, data: Buffer): void;
  /** An error that is not the client's fault; `end` follows. */
  fault(error: unknown): void;
  /** The last event. @param level of the reason in the log */
  end(reason: string, level: 'info' | 'warn'): void;
}

/** Clients send nothing but messages and whole packets: other data ends the connection. */
const LIMITS = { headBytes: 16 * 1024, bodyBytes: 64 * 1024, garbageBytes: 0 };
/** Requests that wait for the answer to the one before. */
const MAX_WAITING = 16;
/** Limit of unsent answers; media has a limit of its own. */
const MAX_UNSENT_ANSWERS = 256 * 1024;
/** Time for a client to read the last data. */
const LAST_WORDS_MS = 1000;
const SERVER = 'Kiln';
const BAD_REQUEST = 400;

/** Requests and answers of one client (RFC 2326), one after the other, with media between them. Owns its socket. */
export class RtspServerConnection {
  /** Called when all data is sent. */
  drained: () => void = () => {};
  readonly #socket: Socket;
  readonly #events: ServerConnectionEvents;
  readonly #reader: RtspReader;
  readonly #waiting: RtspRequest[] = [];
  /** Bytes of answers in a row that nothing shows to have been read. */
  #unread = 0;
  #isBusy = false;
  #ended = false;

  constructor(socket: Socket, events: ServerConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#reader = new RtspReader(LIMITS, {
      response: () => this.end('it sent an answer to no request', 'warn'),
      request: (request) => this.#request(request),
      media: (channel, data) => events.media(channel, data),
      garbage: () => {},
    });
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('drain', () => this.drained());
    socket.on('error', (error) => this.end(`connection lost: ${error.message}`));
    socket.on('end', () => this.end('the client closed the connection'));
    socket.on('close', () => this.end('the connection was lost'));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Bytes that the client has not received yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Sends data between the answers: whole packets with their heads. */
  write(data: Buffer): void {
    if (!this.#ended) this.#socket.write(data);
  }

  /** Has TCP ask whether the client is there after so long without a byte, in milliseconds. */
  keepAlive(ms: number): void {
    this.#socket.setKeepAlive(true, ms);
  }

  /** Ends the connection. What was written is still sent, for a second. Idempotent. @param reason passed on */
  end(reason: string, level: 'info' | 'warn' = 'info'): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#reader.close();
    this.#waiting.length = 0;
    const socket = this.#socket;
    socket.end();
    // what the client sends from now on is not read, but its end is to be noticed
    socket.resume();
    const late = setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
    socket.once('close', () => clearTimeout(late));
    this.#events.end(reason, level);
  }

  #receive(bytes: Buffer): void {
    if (this.#ended) return;
    try {
      this.#reader.push(bytes, performance.now());
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ends the connection for an error, which is the client's fault or ours. */
  fail(error: unknown): void {
    if (this.#ended) return;
    if (error instanceof RtspError) {
      const status = error.status ?? BAD_REQUEST;
      this.#socket.write(writeResponse(status, reasonOf(status), { Server: SERVER }));
      return this.end(error.message, 'warn');
    }
    this.#events.fault(error);
    this.end('internal error', 'warn');
  }

  #request(request: RtspRequest): void {
    if (this.#waiting.length >= MAX_WAITING) throw new RtspError('too many requests at once');
    this.#waiting.push(request);
    this.#next();
  }

  #next(): void {
    while (!this.#isBusy && !this.#ended) {
      const request = this.#waiting.shift();
      if (request === undefined) return;
      const answer = this.#events.request(request);
      if (!(answer instanceof Promise)) {
        this.#answer(request, answer);
        continue;
      }
      this.#isBusy = true;
      answer.then(
        (settled) => this.#settle(() => this.#answer(request, settled)),
        (error: unknown) => this.#settle(() => this.fail(error)),
      );
    }
  }

  #settle(step: () => void): void {
    this.#isBusy = false;
    try {
      step();
      this.#next();
    } catch (error) {
      this.fail(error);
    }
  }

  #answer({ headers }: RtspRequest, { status, fields, body, sent }: RtspAnswer): void {
    if (this.#ended) return;
    const length = body === undefined ? undefined : String(Buffer.byteLength(body));
    const head = writeResponse(status, reasonOf(status), {
      CSeq: header(headers, 'cseq'),
      Server: SERVER,
      ...fields,
      'Content-Length': length,
    });
    const answer = `${head}${body ?? ''}`;
    this.#unread = this.#socket.writableLength === 0 ? 0 : this.#unread + answer.length;
    if (this.#unread > MAX_UNSENT_ANSWERS) return this.end('the client does not read the answers', 'warn');
    this.#socket.write(answer);
    sent?.();
  }
}
