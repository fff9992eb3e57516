/** Bound of held requests for one stream. */
export const MAX_WAITING = 20_000;

/** Result of a wait: the media exists, the time is over, or it can never come. */
export type Outcome = 'ready' | 'overdue' | 'gone';

interface Waiter {
  readonly ready: () => boolean;
  deadline: number;
  readonly settle: (outcome: Outcome) => void;
}

/** Requests held until a part or segment exists. The owner bounds their number. */
export class Waiters {
  readonly #waiters = new Set<Waiter>();
  #closed: Outcome | undefined;

  get size(): number {
    return this.#waiters.size;
  }

  /**
   * @param ready asked after every change
   * @param onCancel takes a function that ends the wait, as `gone`, when the client leaves
   */
  wait(ready: () => boolean, timeoutMs: number, onCancel: (cancel: () => void) => void): Promise<Outcome> {
    if (this.#closed !== undefined) return Promise.resolve(this.#closed);
    return new Promise((resolve) => {
      const waiter: Waiter = {
        ready,
        deadline: Date.now() + timeoutMs,
        settle: (outcome) => {
          this.#waiters.delete(waiter);
          resolve(outcome);
        },
      };
      this.#waiters.add(waiter);
      onCancel(() => waiter.settle('gone'));
    });
  }

  check(): void {
    for (const waiter of this.#waiters) if (waiter.ready()) waiter.settle('ready');
  }

  /** @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const waiter of this.#waiters) if (waiter.deadline <= now) waiter.settle('overdue');
  }

  /** @param until latest end of the present waits, in milliseconds since the epoch */
  limit(until: number): void {
    for (const waiter of this.#waiters) waiter.deadline = Math.min(waiter.deadline, until);
  }

  /** Ends all waits, present and future, with an outcome: no more media will come, or not on this node. */
  close(outcome: Outcome = 'gone'): void {
    this.#closed ??= outcome;
    for (const waiter of this.#waiters) waiter.settle(this.#closed);
  }
}
