import { mkdir, open, readFile, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KeyedMutex } from '../../lib/files/keyed-mutex.ts';
import { unless } from '../../lib/files/unless.ts';
import { isId } from './entry.ts';

const DAY_LENGTH = '20261129'.length;
const EXTENSION = '.index';

/**
 * Holds data derived from recorded files, such as an index, that can be derived again: one file each, named by the id of the recording
 * and in a folder of its day. It goes with the recording.
 */
export class DerivedFiles {
  readonly #folder: string;
  /** By folder: one that is empty is removed. */
  readonly #mutex = new KeyedMutex();

  /** @param folder of this node alone; created with the first file */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @param limit bytes: a longer one is foreign @returns undefined for none @throws errors of the system */
  async read(id: string, limit: number): Promise<Buffer | undefined> {
    if (!isId(id)) return undefined;
    const path = this.#path(id);
    const found = await stat(path).catch(unless('ENOENT'));
    if (found === undefined || !found.isFile() || found.size > limit) return undefined;
    return await readFile(path).catch(unless('ENOENT'));
  }

  /**
   * Adds or replaces a file, which is complete at any moment.
   * @param isWanted whether the recording is still there: asked when the file has its name, so that none is left over
   * @throws errors of the system: nothing is left then
   */
  async write(id: string, pieces: readonly Buffer[], isWanted: () => Promise<boolean>): Promise<void> {
    if (!isId(id)) return;
    const path = this.#path(id);
    const folder = dirname(path);
    await this.#mutex.run(folder, async () => {
      const temporary = temporaryOf(path);
      await mkdir(folder, { recursive: true });
      try {
        const file = await open(temporary, 'w');
        try {
          for (const piece of pieces) await file.appendFile(piece);
        } finally {
          await file.close();
        }
        await rename(temporary, path);
      } catch (error) {
        // why it could not be written says more
        await unlink(temporary).catch(() => undefined);
        throw error;
      }
    });
    if (!(await isWanted())) await this.remove(id);
  }

  /** Call it when the recording is gone. Idempotent. @throws errors of the system */
  async remove(id: string): Promise<void> {
    if (!isId(id)) return;
    const path = this.#path(id);
    const folder = dirname(path);
    await this.#mutex.run(folder, async () => {
      for (const one of [path, temporaryOf(path)]) await unlink(one).catch(unless('ENOENT'));
      await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT' && error.code !== 'ENOTEMPTY') throw error;
      });
    });
  }

  #path(id: string): string {
    return join(this.#folder, id.slice(0, DAY_LENGTH), `${id}${EXTENSION}`);
  }
}

function temporaryOf(path: string): string {
  return `${path}.new`;
}
