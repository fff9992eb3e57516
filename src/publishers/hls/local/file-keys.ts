import { ConfigError } from '../../../config/config-error.ts';
import { systemsOf, type DrmKey, type DrmKeys } from '../../../config/drm-info.ts';
import type { Logger } from '../../../log/log.ts';
import type { FurtherKey, KeySource } from './key-source.ts';

export interface FileKeysOptions {
  readonly keys: DrmKeys;
  /** Reads the present keys of the stream. @throws ConfigError */
  readonly read: () => DrmKeys | undefined;
  readonly log: Logger;
}

/**
 * Keys of an entry of the DRM file: after the last one the first comes again. The file is read again for each key, so that keys
 * can be added while the stream runs.
 */
export class FileKeys implements KeySource {
  readonly first: DrmKey;
  readonly period = undefined;
  readonly #options: FileKeysOptions;
  #keys: DrmKeys;
  /** Whether the file could not be used the last time, which the log has. */
  #fails = false;

  /** @param saved KeyId of the stream that this one continues, in hexadecimal digits */
  constructor(options: FileKeysOptions, saved: string | undefined) {
    const { keys } = options;
    this.#options = options;
    this.#keys = keys;
    this.first = keys.find(({ keyId }) => keyId.toString('hex') === saved) ?? keys[0];
  }

  firstRotation(now: number, periodMs: number): number {
    return now + periodMs;
  }

  next(present: DrmKey): FurtherKey {
    const problem = this.#readKeys();
    const index = this.#keys.findIndex(({ keyId }) => keyId.equals(present.keyId));
    if (index >= 0 && this.#keys.length === 1)
      return { key: undefined, problem: problem ?? 'its entry of the DRM file has no other key' };
    return { key: this.#keys[(index + 1) % this.#keys.length] as DrmKey, problem };
  }

  close(): void {}

  /** Takes the keys that the file has now. @returns why those known so far are used on */
  #readKeys(): string | undefined {
    const { read, log } = this.#options;
    const problem = this.#tryToRead(read);
    if (problem !== undefined && !this.#fails)
      log.error({ reason: problem }, 'the DRM file cannot be used any more: keys rotate among those known so far');
    this.#fails = problem !== undefined;
    return problem;
  }

  #tryToRead(read: () => DrmKeys | undefined): string | undefined {
    try {
      const keys = read();
      if (keys === undefined) return 'no entry of the DRM file matches the stream any more';
      const [{ scheme }] = this.#keys;
      // players choose a key system once
      if (keys[0].scheme !== scheme || systemsOf(keys[0]) !== systemsOf(this.#keys[0]))
        return 'its entry of the DRM file has another scheme, or other key systems, than when the stream started';
      this.#keys = keys;
      return undefined;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.message;
    }
  }
}
