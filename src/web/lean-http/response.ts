import { STATUS_CODES } from 'node:http';
import type { HttpResponse } from '../../protocols/http.ts';
import { LIMITS } from '../limits.ts';

/** A header as it may be sent (RFC 9110 sections 5.1 and 5.5). */
const FIELD = /^[\w!#$%&'*+.^`|~-]+: [\t\x20-\x7e\x80-\xff]*$/;

/** Connection that sends responses in the order of their requests. */
interface Sink {
  /** Sends the responses that are complete. */
  flush(): void;
  readonly writableLength: number;
  destroy(): void;
}

/** A response that is sent as a whole, with the same head as from `node:http`. */
export class LeanResponse implements HttpResponse {
  destroyed = false;
  isEnded = false;
  isWritten = false;
  head = '';
  readonly body: Buffer[] = [];
  readonly #sink: Sink;
  readonly #onFinish: (() => void)[] = [];
  readonly #onClose: (() => void)[] = [];

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  get headersSent(): boolean {
    return this.head !== '';
  }

  get writableLength(): number {
    if (this.isWritten) return this.#sink.writableLength;
    return this.body.reduce((sum, { length }) => sum + length, this.head.length);
  }

  writeHead(status: number, headers: Readonly<Record<string, string | number>>): this {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    for (const name in headers) {
      const field = `${name}: ${headers[name]}`;
      if (!FIELD.test(field)) throw new Error(`the header ${name} has forbidden characters`);
      head += `${field}\r\n`;
    }
    const timeout = Math.floor(LIMITS.keepAliveMs / 1000);
    this.head = `${head}Date: ${date()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${timeout}\r\n\r\n`;
    return this;
  }

  /** Has no effect: a response is sent at once anyway. */
  cork(): void {}
  uncork(): void {}

  write(chunk: Buffer): void {
    this.body.push(chunk);
  }

  end(chunk?: Buffer): void {
    if (chunk !== undefined) this.body.push(chunk);
    this.isEnded = true;
    this.#sink.flush();
  }

  once(event: 'finish' | 'close', listener: () => void): void {
    (event === 'finish' ? this.#onFinish : this.#onClose).push(listener);
  }

  destroy(): void {
    this.#sink.destroy();
  }

  /** Reports that the response was sent. */
  finish(): void {
    for (const listener of this.#onFinish) listener();
    this.close();
  }

  /** Reports the end of the response, sent or not. Idempotent. */
  close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    for (const listener of this.#onClose) listener();
  }
}

let dateOf = 0;
let dateText = '';

/** Value of the header Date, made once a second. */
function date(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateOf) {
    dateOf = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
