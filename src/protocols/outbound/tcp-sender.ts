import type { Socket } from 'node:net';
import { Watchdog } from '../../lib/watchdog.ts';

export interface TcpSenderEvents {
  /** There is room again after a `send` that returned false. */
  readonly writable: () => void;
  /** Called once, when the connection has ended or the peer takes nothing; not after `close()` or `finish()`. */
  readonly failed: (reason: string) => void;
}

/** Bytes of one write to the socket. Progress is known only when a whole write is done. */
const BATCH_BYTES = 64 * 1024;
/** Queued bytes from which on the caller has to wait. */
const FULL_BYTES = 256 * 1024;

/** Sends over a connection at the peer's pace, in pieces that are not copied. */
export class TcpSender {
  readonly #socket: Socket;
  readonly #sendTimeoutMs: number;
  readonly #events: TcpSenderEvents;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #writing = 0;
  #sentBytes = 0;
  #isFull = false;
  #isEnding = false;
  #closed = false;
  #watchdog: Watchdog;

  /** @param sendTimeoutMs longest time without progress while data is queued */
  constructor(socket: Socket, sendTimeoutMs: number, events: TcpSenderEvents) {
    this.#socket = socket;
    this.#sendTimeoutMs = sendTimeoutMs;
    this.#events = events;
    this.#watchdog = this.#watch();
    socket.on('error', (error: NodeJS.ErrnoException) =>
      this.#fail(`the connection failed: ${error.code ?? error.message}`),
    );
    socket.on('close', () => this.#fail('the other side closed the connection'));
  }

  /** Bytes written to the system. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** @returns false when the queue is full: `writable` is called once there is room */
  send(pieces: readonly Buffer[]): boolean {
    if (this.#closed || this.#isEnding) return true;
    for (const piece of pieces) {
      this.#queue.push(piece);
      this.#queuedBytes += piece.length;
    }
    if (this.#writing === 0) this.#next();
    this.#isFull = this.#queuedBytes >= FULL_BYTES;
    return !this.#isFull;
  }

  /** Ends the connection once everything is sent. */
  finish(): void {
    if (this.#closed || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#writing === 0) this.#end();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#watchdog.close();
    this.#queue = [];
    this.#socket.destroy();
  }

  #next(): void {
    let count = 0;
    let bytes = 0;
    for (; count < this.#queue.length && bytes < BATCH_BYTES; count++) bytes += (this.#queue[count] as Buffer).length;
    if (count === 0) return;
    const batch = this.#queue.splice(0, count);
    const last = batch.pop() as Buffer;
    const surplus = bytes - BATCH_BYTES;
    if (surplus > 0) this.#queue.unshift(last.subarray(last.length - surplus));
    this.#writing = Math.min(bytes, BATCH_BYTES);
    this.#queuedBytes -= this.#writing;
    this.#watchdog.heard();
    this.#socket.cork();
    for (const piece of batch) this.#socket.write(piece);
    this.#socket.write(surplus > 0 ? last.subarray(0, last.length - surplus) : last, this.#onWritten);
    this.#socket.uncork();
  }

  readonly #onWritten = (error?: Error | null): void => {
    // an `error` event gives the reason
    if (this.#closed || error) return;
    this.#sentBytes += this.#writing;
    this.#writing = 0;
    this.#watchdog.heard();
    this.#next();
    if (this.#writing === 0 && this.#isEnding) return this.#end();
    if (!this.#isFull || this.#queuedBytes >= FULL_BYTES) return;
    this.#isFull = false;
    this.#events.writable();
  };

  #watch(): Watchdog {
    return new Watchdog(this.#sendTimeoutMs, () => {
      if (this.#writing > 0) this.#fail(`the other side took nothing for ${this.#sendTimeoutMs} ms`);
      else this.#watchdog = this.#watch();
    });
  }

  #end(): void {
    this.#watchdog.close();
    this.#socket.end();
    // the peer may go on sending, so that the socket is never idle
    const late = setTimeout(() => this.close(), this.#sendTimeoutMs);
    this.#socket.once('close', () => clearTimeout(late));
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    const wasEnding = this.#isEnding;
    this.close();
    if (!wasEnding) this.#events.failed(reason);
  }
}
