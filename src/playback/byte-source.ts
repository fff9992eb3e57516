import { constants } from 'node:fs';
import { lstat, open, type FileHandle } from 'node:fs/promises';

/** Why a file cannot be read, or is no longer the one that was recorded. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
}

/** Bytes of a finished recording, wherever it is kept. They never change. */
export interface ByteSource {
  readonly size: number;
  /**
   * @returns exactly that many bytes, which are the caller's
   * @throws SourceError where they cannot be read; the reason of the signal
   */
  read(offset: number, length: number, signal?: AbortSignal): Promise<Buffer>;
  /** Reads as many bytes as the memory of the caller has. Absent where they come in memory of their own. @throws as `read` */
  readInto?(offset: number, into: Buffer, signal?: AbortSignal): Promise<void>;
}

/** Reads bytes of a source into memory of the caller. @throws as `ByteSource.read` */
export async function readInto(source: ByteSource, offset: number, into: Buffer, signal?: AbortSignal): Promise<void> {
  if (source.readInto !== undefined) return await source.readInto(offset, into, signal);
  (await source.read(offset, into.length, signal)).copy(into);
}

/** Path of a recorded file, and what identifies it. */
export interface FilePlace {
  /** Absolute, with links resolved. */
  readonly filePath: string;
  readonly inode: number;
  readonly size: number;
}

/** A recorded file of this node. */
export class LocalFile implements ByteSource {
  readonly size: number;
  /** Differs when the file has changed. */
  readonly stamp: string;
  readonly #path: string;
  readonly #inode: number;
  readonly #handle: FileHandle;

  private constructor({ filePath, inode, size }: FilePlace, modifiedMs: number, handle: FileHandle) {
    this.#path = filePath;
    this.#inode = inode;
    this.size = size;
    this.stamp = `${inode} ${size} ${modifiedMs}`;
    this.#handle = handle;
  }

  /** @throws SourceError for a file that is gone, a link, or another one than was recorded */
  static async open(place: FilePlace): Promise<LocalFile> {
    const { filePath, inode, size } = place;
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(filePath, flags).catch((error: unknown) => {
      throw failure(filePath, error);
    });
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new SourceError(`it is no regular file: ${filePath}`);
      if (found.ino !== inode) throw new SourceError(`another file has its name: ${filePath}`);
      if (found.size !== size)
        throw new SourceError(`its size has changed from ${size} to ${found.size} bytes: ${filePath}`);
      return new LocalFile(place, found.mtimeMs, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Buffer> {
    signal?.throwIfAborted();
    this.#demandIn(offset, length);
    const bytes = Buffer.allocUnsafeSlow(length);
    await this.readInto(offset, bytes, signal);
    return bytes;
  }

  async readInto(offset: number, into: Buffer, signal?: AbortSignal): Promise<void> {
    const { length } = into;
    signal?.throwIfAborted();
    this.#demandIn(offset, length);
    for (let done = 0; done < length;) {
      const { bytesRead } = await this.#handle
        .read(into, done, length - done, offset + done)
        .catch((error: unknown) => {
          throw failure(this.#path, error);
        });
      if (bytesRead === 0) throw new SourceError(`it has become shorter: ${this.#path}`);
      done += bytesRead;
      signal?.throwIfAborted();
    }
  }

  #demandIn(offset: number, length: number): void {
    if (offset < 0 || length < 0 || offset + length > this.size)
      throw new SourceError(`bytes ${offset} to ${offset + length} of ${this.size} were asked for: ${this.#path}`);
  }

  /** Whether the file still has its name. */
  readonly isThere = async (): Promise<boolean> => {
    const found = await lstat(this.#path).catch(() => undefined);
    return found?.ino === this.#inode;
  };

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#handle.close();
  }
}

function failure(path: string, error: unknown): SourceError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new SourceError(code === 'ENOENT' ? `it is gone: ${path}` : message, { cause: error });
}
