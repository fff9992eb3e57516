import { writeFile } from 'node:fs/promises';
import { replaceFile } from '../../../lib/files/paths.ts';

/** A text that is appended to between its head, which may change, and its tail. */
export interface GrowingText {
  readonly head: string;
  readonly body: string;
  readonly tail: string;
}

/** Characters up to which a text is written whenever it has changed. */
const SMALL = 256 * 1024;
/** Characters a second, on average, that are written of a longer one. */
const PER_SECOND = 128 * 1024;

/** A file that is replaced as a whole when its text has changed; the longer the text, the less often. */
export class GrowingFile {
  readonly path: string;
  readonly #text: GrowingText;
  #written: string | undefined;
  #writtenAt = -Infinity;

  constructor(path: string, text: GrowingText) {
    this.path = path;
    this.#text = text;
  }

  /** It has been written. */
  get exists(): boolean {
    return this.#written !== undefined;
  }

  /**
   * Writes the text if it has changed and the rate allows it.
   * @param isLast write it whatever the rate
   * @throws errors of the system
   */
  async update(isLast = false): Promise<void> {
    const { head, body, tail } = this.#text;
    const length = head.length + body.length;
    const now = performance.now();
    if (!isLast && length > SMALL && now - this.#writtenAt < (length / PER_SECOND) * 1000) return;
    const state = `${head}${body.length}`;
    if (state === this.#written) return;
    this.#writtenAt = now;
    await writeWhole(this.path, [Buffer.from(head + body + tail)]);
    this.#written = state;
  }
}

/** Creates or replaces a file atomically. @throws errors of the system */
export async function writeWhole(path: string, pieces: readonly Buffer[]): Promise<void> {
  await replaceFile(path, async (temporary) => await writeFile(temporary, pieces, { flag: 'wx' }));
}
