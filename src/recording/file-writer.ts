import type { FileHandle } from 'node:fs/promises';
import type { Patch } from '../containers/file-muxer.ts';
import type { Disk } from '../core/disks.ts';
import { writeAll } from '../lib/files/write-all.ts';

/** This much is written without waiting for more. */
const MIN_BYTES = 256 * 1024;
/** Most buffers of one call. */
const MAX_PIECES = 1024;

export interface FileWriterOptions {
  /** Longest wait for more, so that small pieces are written together. */
  readonly waitMs: number;
  /** Called once, when the disk fails or is too slow; nothing more is written. */
  readonly onFailure: (error: Error) => void;
}

/** Appends to a new file without waiting for the disk, and without copying. */
export class FileWriter {
  readonly #opening: Promise<FileHandle>;
  readonly #disk: Disk;
  readonly #options: FileWriterOptions;
  #queue: Buffer[] = [];
  #queued = 0;
  #written = 0;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failure: Error | undefined;

  /** @param opening the file, empty */
  constructor(opening: Promise<FileHandle>, disk: Disk, options: FileWriterOptions) {
    this.#opening = opening;
    this.#disk = disk;
    this.#options = options;
    opening.catch((error: unknown) => this.#fail(error as Error));
  }

  /** Bytes appended, whether written or waiting. */
  get bytes(): number {
    return this.#written + this.#queued;
  }

  append(pieces: readonly Buffer[]): void {
    if (this.#failure !== undefined) return;
    let bytes = 0;
    for (const piece of pieces) {
      this.#queue.push(piece);
      bytes += piece.length;
    }
    this.#count(bytes);
    const { waitMs } = this.#options;
    if (this.#queued === 0) return;
    if (this.#disk.isOverloaded) this.#fail(new Error('the disk is too slow'));
    else if (this.#queued >= MIN_BYTES || waitMs === 0) void this.#flush();
    else this.#timer ??= setTimeout(() => void this.#flush(), waitMs).unref();
  }

  /**
   * Writes the waiting data and the patches, and flushes the file to the disk.
   * @throws errors that prevented a write; the file is closed then, too
   */
  async end(patches: readonly Patch[]): Promise<void> {
    const handle = await this.#opening;
    try {
      await this.#flush();
      if (this.#failure !== undefined) throw this.#failure;
      await this.#disk.take(async () => {
        if (patches.length > 0) {
          // the data must be on disk before any record of it
          await handle.datasync();
          for (const { at, data } of patches) await writeAll(handle, data, at);
        }
        await handle.sync();
      });
    } finally {
      clearTimeout(this.#timer);
      await this.#disk.take(() => handle.close());
    }
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#write();
    return this.#writing;
  }

  async #write(): Promise<void> {
    try {
      const handle = await this.#opening;
      while (this.#queue.length > 0 && this.#failure === undefined) {
        const pieces = this.#queue.slice(0, MAX_PIECES);
        const { bytesWritten } = await this.#disk.take(() => handle.writev(pieces, this.#written));
        this.#take(bytesWritten);
      }
    } catch (error) {
      this.#fail(error as Error);
    }
    // in the same turn as the last check of the queue: later appends need another write
    this.#writing = undefined;
  }

  /** Removes written bytes from the start of the queue: a disk that is almost full writes a part of the data. */
  #take(bytes: number): void {
    this.#written += bytes;
    // after a failure the queue is already dropped
    if (this.#failure !== undefined) return;
    this.#count(-bytes);
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
    this.#disk.drop(this.#queued);
    this.#queued = 0;
    this.#options.onFailure(error);
  }

  #count(bytes: number): void {
    this.#queued += bytes;
    this.#disk.count(bytes);
  }
}
