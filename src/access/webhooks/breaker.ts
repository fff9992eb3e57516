import { BackOff } from '../../lib/back-off.ts';
import { ControlServerError } from '../../control-server/post.ts';

export interface BreakerOptions {
  /** Hears that the server is not asked any more. */
  readonly onOpen: (reason: string) => void;
  /** Hears that it answers again. */
  readonly onClose: () => void;
}

/** Calls in a row without an answer after which a server counts as dead. */
const MAX_FAILURES = 5;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Keeps calls from a server that does not answer. While it is open, calls fail at once, apart from one now and then that
 * finds out whether the server is back. An answer of any kind is one.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #pauses = new BackOff(LONGEST_PAUSE_MS);
  #failures = 0;
  #open = false;
  #isProbing = false;
  /** When the next call is let through, on the monotonic clock. */
  #next = 0;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** @throws ControlServerError without a call while it is open; what the call throws */
  async run<T>(call: () => Promise<T>): Promise<T> {
    const isProbe = this.#open;
    if (isProbe && (this.#isProbing || performance.now() < this.#next))
      throw new ControlServerError('it did not answer before, and is not asked now', false);
    if (isProbe) this.#isProbing = true;
    try {
      const answer = await call();
      this.#answered();
      return answer;
    } catch (error) {
      if (error instanceof ControlServerError && !error.answered) this.#failed(isProbe, error.message);
      else this.#answered();
      throw error;
    } finally {
      if (isProbe) this.#isProbing = false;
    }
  }

  #answered(): void {
    this.#failures = 0;
    if (!this.#open) return;
    this.#open = false;
    this.#options.onClose();
  }

  #failed(isProbe: boolean, reason: string): void {
    this.#failures++;
    if (!this.#open && this.#failures >= MAX_FAILURES) {
      this.#open = true;
      this.#pauses.reset();
      // the first is at once: the calls before it have just failed
      this.#pauses.next();
      this.#next = performance.now() + this.#pauses.next();
      this.#options.onOpen(reason);
    } else if (isProbe) this.#next = performance.now() + this.#pauses.next();
  }
}
