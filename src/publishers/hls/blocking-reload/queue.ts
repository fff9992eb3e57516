import { kilnError } from '../../../errors.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import { waitMs, type Wait } from './wait.ts';
import type { HeldMasters } from './held-masters.ts';
import { MAX_WAITING, type Outcome, type Waiters } from './waiters.ts';

export interface Awaiting {
  readonly interrupted: boolean;
  /** Seconds. */
  readonly targetDuration: number;
  /** Waiters of each media playlist, and of the master playlists. */
  readonly waiting: Iterable<{ readonly waiters: Pick<Waiters, 'size' | 'limit' | 'expire' | 'close'> }>;
}

/** Requests that wait for playlists of a stream of this node: bounds their number and time. */
export class Queue {
  readonly #of: Awaiting;

  constructor(of: Awaiting) {
    this.#of = of;
  }

  get size(): number {
    let size = 0;
    for (const { waiters } of this.#of.waiting) size += waiters.size;
    return size;
  }

  /** @throws tooManyWaiting */
  wait(waiters: Waiters, ready: () => boolean, onLeft: OnLeft, wait: Wait): Promise<Outcome> {
    return waiters.wait(ready, this.#msFor(wait), onLeft);
  }

  /** Waits for a master playlist. @param since as in `Wait` @throws tooManyWaiting */
  waitForStart<Key>(held: HeldMasters<Key>, key: Key, onLeft: OnLeft, since: number): Promise<Outcome> {
    return held.wait(key, this.#msFor({ since, what: 'start' }), onLeft);
  }

  /** Shortens every wait, since the publisher has left. */
  interrupt(): void {
    const until = Date.now() + waitMs(this.#of.targetDuration, true);
    for (const { waiters } of this.#of.waiting) waiters.limit(until);
  }

  /** Ends the waits whose time is over. @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const { waiters } of this.#of.waiting) waiters.expire(now);
  }

  #msFor({ since, what }: Wait): number {
    const { interrupted, targetDuration } = this.#of;
    if (this.size >= MAX_WAITING) throw kilnError('tooManyWaiting');
    return waitMs(targetDuration, interrupted, what) + since - Date.now();
  }

  close(): void {
    // players of an interrupted stream may find it again, here or at another node
    const outcome = this.#of.interrupted ? 'overdue' : 'gone';
    for (const { waiters } of this.#of.waiting) waiters.close(outcome);
  }
}
