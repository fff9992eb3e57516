import { BoundedMap } from '../lib/bounded-map.ts';
import { unlessAborted } from '../lib/unless-aborted.ts';

/** Reads bytes from one position up to another. */
export type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** A file that is read in blocks. */
export interface BlockFile {
  /** Distinguishes it from others. */
  readonly key: string;
  readonly size: number;
  readonly read: ReadRange;
}

/** Blocks of files that were read last: small pieces that are near each other, or that many ask for, are read at once. */
export class Blocks {
  /** Bytes of a block. */
  readonly bytes: number;
  /** By the key of the file and their position. */
  readonly #kept: BoundedMap<string, Promise<Buffer>>;

  /** @param limit of blocks that are kept */
  constructor(bytes: number, limit: number) {
    this.bytes = bytes;
    this.#kept = new BoundedMap(limit);
  }

  /**
   * Reads bytes from one position up to another. A block is read once for all who ask: those that leave do not end it.
   * @returns the caller's copy
   * @throws what the file's `read` throws; the reason of the signal
   */
  async read(file: BlockFile, start: number, end: number, signal?: AbortSignal): Promise<Buffer> {
    const { bytes } = this;
    const pieces: Promise<Buffer>[] = [];
    for (let at = start - (start % bytes); at < end; at += bytes) {
      const [from, to] = [Math.max(0, start - at), end - at];
      pieces.push(this.#block(file, at).then((block) => block.subarray(from, to)));
    }
    const all = Promise.all(pieces);
    const found = await (signal === undefined ? all : unlessAborted(all, signal));
    signal?.throwIfAborted();
    return Buffer.concat(found ?? []);
  }

  /** Forgets what was read. */
  clear(): void {
    this.#kept.clear();
  }

  #block({ key: of, size, read }: BlockFile, at: number): Promise<Buffer> {
    const key = `${of} ${at}`;
    const block = this.#kept.get(key) ?? read(at, Math.min(size, at + this.bytes));
    this.#kept.set(key, block);
    // those that wait for it learn why
    block.catch(() => this.#kept.get(key) === block && this.#kept.delete(key));
    return block;
  }
}
