import { ChangingFile } from '../../config/changing-file.ts';
import type { Logger } from '../../log/log.ts';
import { withoutKeys, type KeySource } from './key-source.ts';
import { MAX_KEY_SET_BYTES, readKeys, type TokenKey } from './keys.ts';

/** Between looks at the file. */
const LOOK_MS = 2000;

/** The keys in a file. It is followed; after an error the keys stay as they were. */
export class FileKeys implements KeySource {
  readonly #path: string;
  readonly #log: Logger;
  readonly #file: ChangingFile;
  #keys: readonly TokenKey[] = [];
  readonly #now: () => number;
  #lookedAt = -Infinity;
  #pending: Promise<void> | undefined;
  #failure: string | undefined;

  /** @param now milliseconds of a monotonic clock */
  constructor(path: string, log: Logger, now = () => performance.now()) {
    this.#now = now;
    this.#path = path;
    this.#log = log;
    this.#file = new ChangingFile(path, MAX_KEY_SET_BYTES);
  }

  async keys(): Promise<readonly TokenKey[]> {
    if (this.#now() - this.#lookedAt >= LOOK_MS) this.#pending ??= this.#look();
    await this.#pending;
    if (this.#keys.length === 0) throw withoutKeys(this.#failure);
    return this.#keys;
  }

  async #look(): Promise<void> {
    try {
      const bytes = await this.#file.changed();
      if (bytes === undefined) return;
      this.#keys = readKeys(bytes.toString());
      this.#failure = undefined;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#failure)
        this.#log.warn({ file: this.#path, reason }, 'the file with the keys for tokens cannot be used');
      this.#failure = reason;
    } finally {
      this.#lookedAt = this.#now();
      this.#pending = undefined;
    }
  }
}
