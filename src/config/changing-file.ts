import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { readSmallFile } from './small-file.ts';

/** A file that was changed so recently may be changed again without a trace in its times. */
const SETTLED_MS = 2000;

/** A file that is looked at again and again, and read when it has changed. */
export class ChangingFile {
  readonly #path: string;
  readonly #mostBytes: number;
  /** Tells states of the file apart by its times and its place; undefined when they cannot. */
  #mark: string | undefined;
  /** Of what was read last. */
  #digest: string | undefined;

  constructor(path: string, mostBytes: number) {
    this.#path = path;
    this.#mostBytes = mostBytes;
  }

  /**
   * What is in the file, unless it is the same as at the last call that did not throw.
   * @throws what `stat` and `readSmallFile` do; what was read before counts no longer then
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
