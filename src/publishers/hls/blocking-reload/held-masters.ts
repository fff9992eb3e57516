import { kilnError } from '../../../errors.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import { MAX_WAITING, Waiters, type Outcome } from './waiters.ts';

/** Bound of different playlists of one stream with waiting requests. */
const MAX_PLAYLISTS = 64;

/** Requests for master playlists, held until there is something to play, by a key of the playlist. */
export class HeldMasters<Key> {
  readonly #waiters = new Map<Key, Waiters>();
  #closed: Outcome | undefined;

  get size(): number {
    let size = 0;
    for (const { size: own } of this.#waiters.values()) size += own;
    return size;
  }

  sizeOf(key: Key): number {
    return this.#waiters.get(key)?.size ?? 0;
  }

  /** @throws tooManyWaiting */
  wait(key: Key, timeoutMs: number, onLeft: OnLeft): Promise<Outcome> {
    if (this.#closed !== undefined) return Promise.resolve(this.#closed);
    if (timeoutMs <= 0) return Promise.resolve('overdue');
    let waiters = this.#waiters.get(key);
    if (this.size >= MAX_WAITING || (waiters === undefined && this.#waiters.size >= MAX_PLAYLISTS))
      throw kilnError('tooManyWaiting');
    if (waiters === undefined) this.#waiters.set(key, (waiters = new Waiters()));
    return waiters
      .wait(() => false, timeoutMs, onLeft)
      .finally(() => {
        if (waiters.size === 0 && this.#waiters.get(key) === waiters) this.#waiters.delete(key);
      });
  }

  /** Ends the waits for playlists that can be played now. */
  check(begins: (key: Key) => boolean): void {
    for (const key of this.#waiters.keys()) if (begins(key)) this.release(key, 'ready');
  }

  release(key: Key, outcome: Outcome): void {
    const waiters = this.#waiters.get(key);
    this.#waiters.delete(key);
    waiters?.close(outcome);
  }

  /** @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const waiters of this.#waiters.values()) waiters.expire(now);
  }

  /** As `Waiters.limit`. */
  limit(until: number): void {
    for (const waiters of this.#waiters.values()) waiters.limit(until);
  }

  close(outcome: Outcome = 'gone'): void {
    this.#closed ??= outcome;
    for (const waiters of this.#waiters.values()) waiters.close(this.#closed);
  }
}
