import { RtmpError } from '../../protocols/rtmp/error.ts';

/** Beyond this, in all sessions together, those end that hold more than their share of it. */
const MAX_BYTES = 256 * 1024 * 1024;
const SHARE_BYTES = 256 * 1024;

/** What one session holds of messages that are not complete yet, of what all do. */
export class PartialShare {
  readonly #all: { bytes: number };
  #bytes = 0;
  #released = false;

  /** @param all of the server; changed here */
  constructor(all: { bytes: number }) {
    this.#all = all;
  }

  /** @param bytes that it holds now @throws RtmpError when that is too much */
  hold(bytes: number): void {
    if (bytes === this.#bytes || this.#released) return;
    this.#set(bytes);
    if (this.#all.bytes > MAX_BYTES && bytes > SHARE_BYTES)
      throw new RtmpError('too many unfinished messages in all sessions');
  }

  /** It holds nothing, for good. Idempotent. */
  release(): void {
    this.#released = true;
    this.#set(0);
  }

  #set(bytes: number): void {
    this.#all.bytes += bytes - this.#bytes;
    this.#bytes = bytes;
  }
}
