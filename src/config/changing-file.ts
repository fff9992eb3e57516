import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { readSmallFile } from './small-file.ts';

/** Modification times this recent do not prove that a file is unchanged: a later change may leave them the same. */
const SETTLED_MS = 2000;

/** A file that is polled, and read only when it has changed. */
export class ChangingFile {
  readonly #path: string;
  readonly #mostBytes: number;
  /** Inode, times and size at the last read; undefined when they cannot show a change. */
  #mark: string | undefined;
  #digest: string | undefined;

  constructor(path: string, mostBytes: number) {
    this.#path = path;
    this.#mostBytes = mostBytes;
  }

  /**
   * Content of the file, or undefined if it is the same as at the last call that did not throw.
   * @throws what `stat` and `readSmallFile` throw; the next call then returns the content in any case
   */
  async changed(): Promise<Buffer | undefined> {
    try {
      const { ino, mtimeNs, ctimeNs, size, mtimeMs } = await stat(this.#path, { bigint: true });
      const mark = [ino, mtimeNs, ctimeNs, size].join(' ');
      if (mark === this.#mark) return undefined;
      const bytes = await readSmallFile(this.#path, this.#mostBytes);
      this.#mark = Date.now() - Number(mtimeMs) > SETTLED_MS ? mark : undefined;
      const before = this.#digest;
      this.#digest = createHash('sha256').update(bytes).digest('base64url');
      return this.#digest === before ? undefined : bytes;
    } catch (error) {
      this.#mark = undefined;
      this.#digest = undefined;
      throw error;
    }
  }
}
