import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { addAll } from '../../../lib/files/write-all.ts';

/** Only this user may read or change the files. */
export const FILE_MODE = 0o600;
const MAX_OPEN = 512;
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Files that are added to. They stay open, except those that were used longest ago when there are too many. */
export class AppendFiles {
  readonly #limit: number;
  /** By path, the one that was used last at the end. */
  readonly #files = new Map<string, Promise<FileHandle>>();

  /** @param limit of open files */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#files.size;
  }

  /** Adds to a file, which is no link, by one call; it is created if need be. @throws errors of the system: what was added may be cut off then */
  async append(path: string, ...pieces: readonly (string | Buffer)[]): Promise<void> {
    await this.#append(path, undefined, pieces);
  }

  /** As `append`, to a file that has so many bytes: one that was changed by others is left alone. @throws as `append`; Error for such a file */
  async appendAt(path: string, at: number, ...pieces: readonly (string | Buffer)[]): Promise<void> {
    await this.#append(path, at, pieces);
  }

  async #append(path: string, at: number | undefined, pieces: readonly (string | Buffer)[]): Promise<void> {
    const file = this.#files.get(path) ?? openAt(path, at);
    this.#files.delete(path);
    this.#files.set(path, file);
    const [oldest] = this.#files.keys();
    if (this.#files.size > this.#limit && oldest !== undefined) void this.close(oldest);
    try {
      const buffers = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
      await addAll(await file, buffers);
    } catch (error) {
      await this.close(path);
      throw error;
    }
  }

  /** Closes a file when its lines are written: the next one opens it again. Idempotent. Never rejects. */
  async close(path: string): Promise<void> {
    const file = this.#files.get(path);
    this.#files.delete(path);
    // nothing was kept back that a failure could lose, and who wrote to it knows whether it was opened
    await file?.then((opened) => opened.close()).catch(() => undefined);
  }
}

async function openAt(path: string, at: number | undefined): Promise<FileHandle> {
  const file = await open(path, FLAGS, FILE_MODE);
  try {
    if (at !== undefined && (await file.stat()).size !== at) throw new Error(`it was changed by others: ${path}`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Media, journals and states of all streams in which players rewind. */
export const appended = new AppendFiles(MAX_OPEN);
