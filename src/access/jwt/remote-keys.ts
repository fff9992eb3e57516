import type { Logger } from '../../log/log.ts';
import { Denial } from '../denial.ts';
import { hasKey, type KeySource } from './key-source.ts';
import { readKeys, type TokenKey } from './keys.ts';

/** Fetches a JWK Set. @throws Error */
export type FetchKeys = (url: string, signal: AbortSignal) => Promise<string>;

export interface RemoteKeysOptions {
  readonly url: string;
  readonly fetch: FetchKeys;
  readonly log: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Between fetches that clients cause, by tokens with an unknown key. */
const LEAST_BETWEEN_MS = 60_000;
/** Age at which keys are fetched again. */
const REFRESH_MS = 600_000;
/** After a failure, while clients come: this server's own trials. */
const RETRY_MS = 10_000;

/** The keys behind a URL. The last ones that could be fetched stay, for a limited time, while the URL cannot be read. */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  readonly #now: () => number;
  readonly #log: Logger;
  readonly #end = new AbortController();
  #keys: readonly TokenKey[] = [];
  /** When they were fetched. */
  #fetchedAt = -Infinity;
  #triedAt = -Infinity;
  #usedAt = -Infinity;
  #pending: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #failure: string | undefined;
  /** Milliseconds for which keys are used after they were fetched. */
  keepMs = 0;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#log = options.log;
  }

  async keys(id: string | undefined): Promise<readonly TokenKey[]> {
    const now = (this.#usedAt = this.#now());
    const age = now - this.#fetchedAt;
    const isUsable = age < this.keepMs;
    const needed = !isUsable || !hasKey(this.#keys, id);
    if ((needed || age >= REFRESH_MS) && now - this.#triedAt >= LEAST_BETWEEN_MS) void this.#fetch();
    // all clients that need new keys wait for the same fetch
    if (needed) await this.#pending;
    if (this.#now() - this.#fetchedAt >= this.keepMs)
      throw new Denial('tokenKeys', `there are no keys for tokens: ${this.#failure ?? 'they are not there yet'}`);
    return this.#keys;
  }

  /** Ends what is under way. Idempotent. */
  close(): void {
    clearTimeout(this.#retry);
    this.#end.abort();
  }

  #fetch(): Promise<void> {
    this.#pending ??= this.#read().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #read(): Promise<void> {
    const { url, fetch } = this.#options;
    clearTimeout(this.#retry);
    this.#triedAt = this.#now();
    try {
      this.#keys = readKeys(await fetch(url, this.#end.signal));
      this.#fetchedAt = this.#now();
      if (this.#failure !== undefined) this.#log.info({ url }, 'the keys for tokens can be read again');
      this.#failure = undefined;
    } catch (error) {
      if (this.#end.signal.aborted) return;
      const reason = (error as Error).message;
      if (reason !== this.#failure) this.#log.warn({ url, reason }, 'the keys for tokens cannot be read');
      this.#failure = reason;
      if (this.#now() - this.#usedAt < REFRESH_MS) this.#retry = setTimeout(() => void this.#fetch(), RETRY_MS).unref();
    }
  }
}
