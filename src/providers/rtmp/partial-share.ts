import { RtmpError } from '../../protocols/rtmp/error.ts';

/** Beyond this, in all sessions together, those end that hold more than their share of it. */
const MAX_BYTES = 256 * 1024 * 1024;
const SHARE_BYTES = 256 * 1024;

/** Bytes of incomplete messages that one session holds, as a share of the total. */
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

  /** Gives the share back; later calls of `hold` have no effect. Idempotent. */
  release(): void {
    this.#released = true;
    this.#set(0);
  }

  #set(bytes: number): void {
    this.#all.bytes += bytes - this.#bytes;
    this.#bytes = bytes;
  }
}
