import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/** Only this user may read or change the files. */
export const FILE_MODE = 0o600;
const MAX_OPEN = 512;
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Files that lines are added to. They stay open, except those that were used longest ago when there are too many. */
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

  /** Adds a line to a file, which is no link; it is created if need be. @throws errors of the system: the line may be cut off then */
  async append(path: string, line: string): Promise<void> {
    const file = this.#files.get(path) ?? open(path, FLAGS, FILE_MODE);
    this.#files.delete(path);
    this.#files.set(path, file);
    const [oldest] = this.#files.keys();
    if (this.#files.size > this.#limit && oldest !== undefined) void this.close(oldest);
    try {
      await (await file).writeFile(line);
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

/** Journals and states of all streams in which players rewind. */
export const appended = new AppendFiles(MAX_OPEN);
