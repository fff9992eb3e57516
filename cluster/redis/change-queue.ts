import type { ClaimMessage } from './changes.ts';

/** Further changes are not queued: all are fetched then. */
const MAX_QUEUED = 1000;

/** Answers of Redis that may be older or newer than a change published while they are on their way. */
type Awaited = 'beat' | 'pull';

/** Applies published changes of claims, but queues them while an answer of Redis is on its way. */
export class ChangeQueue {
  readonly #apply: (change: ClaimMessage) => void;
  /** A node knows nothing before its first beat. */
  readonly #awaited = new Set<Awaited>(['beat']);
  #queued: ClaimMessage[] = [];

  constructor(apply: (change: ClaimMessage) => void) {
    this.#apply = apply;
  }

  /** @returns false when the queue is full */
  add(change: ClaimMessage): boolean {
    if (this.#awaited.size === 0) this.#apply(change);
    else if (this.#queued.length < MAX_QUEUED) this.#queued.push(change);
    else return false;
    return true;
  }

  awaitAnswer(of: Awaited): void {
    this.#awaited.add(of);
  }

  /** An answer has been applied: what was published since then follows it. */
  resume(after: Awaited): void {
    this.#awaited.delete(after);
    while (this.#awaited.size === 0) {
      const change = this.#queued.shift();
      if (change === undefined) return;
      this.#apply(change);
    }
  }

  clear(): void {
    this.#queued = [];
  }
}
