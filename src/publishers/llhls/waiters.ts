/** How a wait ended: what was waited for is there, its time is over, or it can never come. */
export type Outcome = 'ready' | 'overdue' | 'gone';

interface Waiter {
  readonly ready: () => boolean;
  readonly deadline: number;
  readonly settle: (outcome: Outcome) => void;
}

/** Requests that are held until a part or segment exists. The owner bounds their number. */
export class Waiters {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /**
   * @param ready asked after every change
   * @param onCancel takes a function that ends the wait, as `gone`, when the client leaves
   */
  wait(ready: () => boolean, timeoutMs: number, onCancel: (cancel: () => void) => void): Promise<Outcome> {
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

  expire(now: number): void {
    for (const waiter of this.#waiters) if (waiter.deadline <= now) waiter.settle('overdue');
  }

  /** Nothing will come any more. */
  close(): void {
    for (const waiter of this.#waiters) waiter.settle('gone');
  }
}
