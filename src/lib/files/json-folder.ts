import { access, mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Static, TSchema } from 'typebox';
import Value from 'typebox/value';
import { KeyedMutex } from './keyed-mutex.ts';
import { unless } from './unless.ts';

const EXTENSION = '.json';

/** Small documents that outlive this process, each in a file of its own, which is complete at any moment. */
export class JsonFolder<S extends TSchema> {
  readonly #folder: string;
  readonly #schema: S;
  readonly #mutex = new KeyedMutex();

  /** @param folder of this process alone; created with the first document */
  constructor(folder: string, schema: S) {
    this.#folder = folder;
    this.#schema = schema;
  }

  /** Adds or replaces a document. @param onDisk whether it must survive a power failure @throws errors of the system */
  async put(name: string, value: Static<S>, onDisk = false): Promise<void> {
    await this.#mutex.run(name, async () => {
      await mkdir(this.#folder, { recursive: true });
      const path = this.#path(name);
      const file = await open(`${path}.new`, 'w');
      try {
        await file.writeFile(JSON.stringify(value));
        if (onDisk) await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
    });
  }

  /** Idempotent. @throws errors of the system */
  async remove(name: string): Promise<void> {
    await this.#mutex.run(name, () => unlink(this.#path(name)).catch(unless('ENOENT')));
  }

  /**
   * @returns undefined for no document
   * @throws Error for a document that is damaged, or of an unknown version; errors of the system
   */
  async read(name: string): Promise<Static<S> | undefined> {
    const path = this.#path(name);
    const text = await readFile(path, 'utf8').catch(unless('ENOENT'));
    if (text === undefined) return undefined;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw new Error(`it is damaged: ${path}`, { cause });
    }
    if (!Value.Check(this.#schema, value)) throw new Error(`it is damaged, or of another version: ${path}`);
    return value;
  }

  /** @throws errors of the system */
  async has(name: string): Promise<boolean> {
    return (await access(this.#path(name)).then(() => true, unless('ENOENT'))) ?? false;
  }

  /** Names of all documents, in order. @throws errors of the system */
  async names(): Promise<string[]> {
    const files = (await readdir(this.#folder).catch(unless('ENOENT'))) ?? [];
    const documents = files.filter((file) => file.endsWith(EXTENSION));
    return documents.map((file) => file.slice(0, -EXTENSION.length)).sort();
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${EXTENSION}`);
  }
}
