import type { FileHandle } from 'node:fs/promises';
import type { Patch } from '../../containers/file-muxer.ts';

/** What waits for a disk that is too slow, at most. */
const MAX_QUEUED = 64 * 1024 * 1024;
/** Little is written at a time that comes often. */
const MIN_BYTES = 256 * 1024;
const MAX_WAIT_MS = 500;
/** Buffers of one call. */
const MAX_PIECES = 1024;

/** Appends to a new file, without waiting for the disk, and without copying what it writes. */
export class FileWriter {
  readonly #opening: Promise<FileHandle>;
  readonly #onFailure: (error: Error) => void;
  #queue: Buffer[] = [];
  #queued = 0;
  /** Bytes in the file. */
  #written = 0;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failure: Error | undefined;

  /**
   * @param opening the file, empty
   * @param onFailure is called once, when the disk fails or is too slow: nothing is written any more
   */
  constructor(opening: Promise<FileHandle>, onFailure: (error: Error) => void) {
    this.#opening = opening;
    this.#onFailure = onFailure;
    opening.catch((error: unknown) => this.#fail(error as Error));
  }

  /** Bytes that were given to it. */
  get bytes(): number {
    return this.#written + this.#queued;
  }

  append(pieces: readonly Buffer[]): void {
    if (this.#failure !== undefined) return;
    for (const piece of pieces) {
      this.#queue.push(piece);
      this.#queued += piece.length;
    }
    if (this.#queued > MAX_QUEUED) this.#fail(new Error('the disk is too slow'));
    else if (this.#queued >= MIN_BYTES) void this.#flush();
    else if (this.#queued > 0) this.#timer ??= setTimeout(() => void this.#flush(), MAX_WAIT_MS).unref();
  }

  /**
   * Writes what waits and the patches, and leaves the file on the disk, not only in the memory of the system.
   * @throws what has kept anything from being written; the file is closed then, too
   */
  async end(patches: readonly Patch[]): Promise<void> {
    const handle = await this.#opening;
    try {
      await this.#flush();
      if (this.#failure !== undefined) throw this.#failure;
      if (patches.length > 0) {
        // the index has to be there before anything says so
        await handle.datasync();
        for (const { at, data } of patches) await handle.write(data, 0, data.length, at);
      }
      await handle.sync();
    } finally {
      clearTimeout(this.#timer);
      await handle.close();
    }
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
    return this.#writing;
  }

  async #write(): Promise<void> {
    try {
      const handle = await this.#opening;
      while (this.#queue.length > 0 && this.#failure === undefined) {
        const pieces = this.#queue.slice(0, MAX_PIECES);
        const { bytesWritten } = await handle.writev(pieces, this.#written);
        this.#take(bytesWritten);
      }
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  /** Drops what was written from the start of the queue: a disk that is almost full takes parts. */
  #take(bytes: number): void {
    this.#written += bytes;
    this.#queued -= bytes;
    let rest = bytes;
    let whole = 0;
    for (const piece of this.#queue) {
      if (piece.length > rest) break;
      rest -= piece.length;
      whole += 1;
    }
    this.#queue.splice(0, whole);
    const [first] = this.#queue;
    if (first !== undefined && rest > 0) this.#queue[0] = first.subarray(rest);
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#queue = [];
    this.#queued = 0;
    this.#onFailure(error);
  }
}
