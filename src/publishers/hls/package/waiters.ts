/** Requests of one stream that are held at once. */
export const MAX_WAITING = 20_000;

/** How a wait ended: what was waited for is there, its time is over, or it can never come. */
export type Outcome = 'ready' | 'overdue' | 'gone';

interface Waiter {
  readonly ready: () => boolean;
  deadline: number;
  readonly settle: (outcome: Outcome) => void;
}

/** Requests that are held until a part or segment exists. The owner bounds their number. */
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

  /** Something has come. */
  check(): void {
    for (const waiter of this.#waiters) if (waiter.ready()) waiter.settle('ready');
  }

  /** @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const waiter of this.#waiters) if (waiter.deadline <= now) waiter.settle('overdue');
  }

  /** Nobody waits longer than until a time, in milliseconds since the epoch. */
  limit(until: number): void {
    for (const waiter of this.#waiters) waiter.deadline = Math.min(waiter.deadline, until);
  }

  /** Nothing will come any more, or not here: whoever waits, and whoever comes to wait, is told so. */
  close(outcome: Outcome = 'gone'): void {
    this.#closed ??= outcome;
    for (const waiter of this.#waiters) waiter.settle(this.#closed);
  }
}
