import type { Socket } from 'node:net';
import type { HttpRequest, HttpResponse } from '../../protocols/http.ts';
import { LIMITS } from '../limits.ts';
import { withReusedReads } from '../../protocols/reused-reads.ts';
import { parseRequest, type Fields } from './request.ts';
import { LeanResponse } from './response.ts';

/** Services of the port for its connections. */
export interface LeanPort {
  /** Answers a request now or later; false for those that are for `node:http`. */
  answer(request: HttpRequest, response: HttpResponse): boolean;
  /** Gives a connection without listeners to `node:http`. */
  handOver(socket: Socket): void;
  /** Refuses a connection that has sent no request in time. */
  refuseLate(socket: Socket): void;
}

/** Requests under way. A stream holds fewer for one connection, so that one too many is refused rather than delayed. */
const MAX_OPEN = 8;
/** Unread bytes above which the socket is paused. */
const MAX_HELD = LIMITS.headerBytes;
/** Bytes of a longer head are not kept for the connection. */
const MAX_KNOWN = 2048;
/** Idle connections stay open this much longer than Keep-Alive says, as with `node:http`. */
const KEEP_ALIVE_SLACK_MS = 1000;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Serves plain requests on a connection without `node:http`. The first request that is incomplete, malformed, unusual or not taken by
 * `LeanPort.answer` is handed over to `node:http` from its first byte on, with the rest of the connection.
 */
export class LeanConnection {
  readonly socket: Socket;
  readonly #port: LeanPort;
  readonly #onEnd: () => void;
  /** Responses that are not sent completely, in the order of their requests. */
  readonly #open: LeanResponse[] = [];
  /** Bytes that wait for the responses to requests before them. */
  #held: Buffer | undefined;
  #known: Fields | undefined;
  #timeoutMs = 0;
  #state: 'new' | 'reading' | 'leaving' | 'closing' | 'handed over' = 'new';

  /**
   * @param socket which nothing listens to; `this.socket` takes its place
   * @param onEnd called when the connection has closed or was handed over
   */
  constructor(socket: Socket, port: LeanPort, onEnd: () => void) {
    this.#port = port;
    this.#onEnd = onEnd;
    this.socket = withReusedReads(socket, this.#take)
      .on('error', ignore)
      .on('close', this.#closed)
      .on('timeout', this.#late)
      .on('end', this.#ended)
      .on('drain', this.#proceed);
    this.socket.allowHalfOpen = socket.allowHalfOpen;
    this.#limit(LIMITS.headersMs);
  }

  get writableLength(): number {
    return this.socket.writableLength;
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Ends the connection after the answers under way. */
  close(): void {
    this.#state = 'closing';
    if (this.#open.length === 0) this.socket.destroy();
  }

  flush(): void {
    for (const response of this.#open) {
      if (!response.isEnded) return;
      if (!response.isWritten) this.#write(response);
    }
  }

  /** @param bytes others after the call */
  readonly #take = (bytes: Buffer): boolean | void => {
    // node:http reads from the handle itself, except behind an upgrade
    if (this.#state === 'handed over') return this.socket.push(Buffer.from(bytes));
    if (this.#held === undefined) this.#read(bytes);
    else this.#hold(Buffer.concat([this.#held, bytes]));
  };

  #read(bytes: Buffer): void {
    if (this.#state === 'new') this.#state = 'reading';
    for (let at = 0, end = 0; at < bytes.length; at = end) {
      if (this.#isFull()) return this.#hold(Buffer.from(bytes.subarray(at)));
      end = bytes.indexOf(HEAD_END, at) + HEAD_END.length;
      const isWhole = end >= HEAD_END.length && this.#state === 'reading';
      if (!isWhole || !this.#answer(bytes.toString('latin1', at, end)))
        return this.#leave(Buffer.from(bytes.subarray(at)));
      if (this.socket.destroyed) return;
    }
    // an answer that is written at once leaves the connection idle
    if (this.socket.writableLength > 0 || this.#open.at(-1)?.isWritten === false) this.#limit(LIMITS.idleMs);
  }

  #answer(head: string): boolean {
    const request = parseRequest(head, this.socket, this.#known);
    if (request === undefined) return false;
    const response = new LeanResponse(this);
    this.#open.push(response);
    if (this.#port.answer(request, response)) {
      if (head.length <= MAX_KNOWN) this.#known = request.fields;
      return true;
    }
    this.#open.pop();
    return false;
  }

  #isFull(): boolean {
    return this.#open.length >= MAX_OPEN || this.socket.writableNeedDrain;
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes;
    if (bytes.length > MAX_HELD) this.socket.pause();
  }

  /** Continues with bytes that wait, if there is room for more answers. */
  readonly #proceed = (): void => {
    const held = this.#held;
    if (held === undefined || this.#isFull() || this.socket.destroyed) return;
    if (this.#state === 'leaving') {
      if (this.#open.length === 0) this.#handOver(held);
      return;
    }
    this.#held = undefined;
    this.socket.resume();
    this.#read(held);
  };

  /** @param bytes the request for `node:http`, and all after it */
  #leave(bytes: Buffer): void {
    this.#state = 'leaving';
    if (this.#open.length === 0) this.#handOver(bytes);
    else this.#hold(bytes);
  }

  #handOver(bytes: Buffer): void {
    this.#state = 'handed over';
    this.#held = undefined;
    const socket = this.socket
      .off('error', ignore)
      .off('close', this.#closed)
      .off('timeout', this.#late)
      .off('end', this.#ended)
      .off('drain', this.#proceed)
      .off('data', this.#take);
    this.#onEnd();
    if (socket.isPaused()) socket.resume();
    this.#port.handOver(socket);
    socket.emit('data', bytes);
  }

  #write(response: LeanResponse): void {
    response.isWritten = true;
    const socket = this.socket;
    // it closes soon
    if (!socket.writable) return;
    const { head, body } = response;
    const last = body.length - 1;
    const written = (error?: Error | null): void => {
      if (!error) this.#finished(response);
    };
    socket.cork();
    socket.write(head, 'latin1', last < 0 ? written : undefined);
    for (const [index, chunk] of body.entries()) socket.write(chunk, index === last ? written : undefined);
    socket.uncork();
  }

  #finished(response: LeanResponse): void {
    this.#open.shift();
    response.finish();
    if (this.#held !== undefined) return this.#proceed();
    if (this.#open.length > 0) return;
    if (this.#state === 'closing') this.socket.destroySoon();
    else this.#limit(LIMITS.keepAliveMs + KEEP_ALIVE_SLACK_MS);
  }

  /** Limits the time without a byte either way. */
  #limit(ms: number): void {
    if (this.#timeoutMs === ms) return;
    this.#timeoutMs = ms;
    this.socket.setTimeout(ms);
  }

  readonly #late = (): void => {
    if (this.#state === 'new') this.#port.refuseLate(this.socket);
    else this.socket.destroy();
  };

  readonly #ended = (): void => void this.socket.end();

  readonly #closed = (): void => {
    this.#onEnd();
    for (const response of this.#open.splice(0)) response.close();
  };
}

function ignore(): void {}
