import { writeFile } from 'node:fs/promises';
import { replaceFile } from '../../../lib/files/paths.ts';

/** A text that grows between a changeable head and a fixed tail. */
export interface GrowingText {
  readonly head: string;
  readonly body: string;
  readonly tail: string;
}

/** Characters up to which the write rate is unlimited. */
const SMALL = 256 * 1024;
/** Average characters a second that are written of a longer text. */
const PER_SECOND = 128 * 1024;

/** A file that is replaced when its text has changed; the longer the text, the less often. */
export class GrowingFile {
  readonly path: string;
  readonly #text: GrowingText;
  #written: string | undefined;
  #writtenAt = -Infinity;

  constructor(path: string, text: GrowingText) {
    this.path = path;
    this.#text = text;
  }

  get exists(): boolean {
    return this.#written !== undefined;
  }

  /**
   * Writes the text if it has changed and the rate allows it.
   * @param isLast ignores the rate
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
