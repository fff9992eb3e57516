import { BackOff } from '../../lib/back-off.ts';
import type { Logger } from '../../log/log.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { hasKey, withoutKeys } from './key-source.ts';
import { KeySetError, readKeys, type TokenKey } from './keys.ts';

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
/** Pauses of this server's own trials after failures, while clients come. */
const FIRST_RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 60_000;

/** The keys behind a URL. The last ones that could be fetched stay, for a limited time, while the URL cannot be read. */
export class RemoteKeys {
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
  readonly #retries = new BackOff(LONGEST_RETRY_MS, FIRST_RETRY_MS);
  #failure: string | undefined;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#log = options.log;
  }

  /** @param keepMs milliseconds for which keys are used after they were fetched */
  async keys(id: string | undefined, keepMs: number): Promise<readonly TokenKey[]> {
    const now = (this.#usedAt = this.#now());
    const age = now - this.#fetchedAt;
    // while the server answers, keys that it has withdrawn do not outlive a time without clients
    const isForgotten = age >= 2 * REFRESH_MS && this.#failure === undefined;
    const needed = age >= keepMs || isForgotten || !hasKey(this.#keys, id);
    if ((needed || age >= REFRESH_MS) && now - this.#triedAt >= LEAST_BETWEEN_MS) void this.#fetch();
    // all clients that need new keys wait for the same fetch
    if (needed) await this.#pending;
    if (this.#now() - this.#fetchedAt >= keepMs) throw withoutKeys(this.#failure);
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
    const { fetch } = this.#options;
    const url = shownUrl(this.#options.url);
    clearTimeout(this.#retry);
    this.#triedAt = this.#now();
    try {
      this.#keys = publicKeys(await fetch(this.#options.url, this.#end.signal));
      this.#fetchedAt = this.#now();
      if (this.#failure !== undefined) this.#log.info({ url }, 'the keys for tokens can be read again');
      this.#failure = undefined;
      this.#retries.reset();
    } catch (error) {
      if (this.#end.signal.aborted) return;
      const reason = (error as Error).message;
      if (reason !== this.#failure) this.#log.warn({ url, reason }, 'the keys for tokens cannot be read');
      this.#failure = reason;
      if (this.#now() - this.#usedAt < REFRESH_MS)
        this.#retry = setTimeout(() => void this.#fetch(), this.#retries.next()).unref();
    }
  }
}

/** A secret that a URL publishes is none: every reader of it could sign tokens. @throws KeySetError when no other key is left */
function publicKeys(text: string): readonly TokenKey[] {
  const keys = readKeys(text).filter(({ key }) => key.type === 'public');
  if (keys.length === 0) throw new KeySetError('there are secrets alone among its keys, which a URL cannot keep');
  return keys;
}
