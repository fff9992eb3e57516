import { ReplyError } from 'ioredis';
import type { UnavailableError } from '../errors.ts';

/** Redis has become unreachable, or reachable again. */
export type StoreReport =
  | {
      readonly reachable: false;
      /** Where Redis is, as in `127.0.0.1:6379`. */
      readonly store: string;
      /** When it answered last; when this node was started, for a Redis that has never answered. */
      readonly since: Date;
      readonly reason: string;
    }
  | { readonly reachable: true; readonly store: string; readonly since: Date; readonly awayMs: number };

export interface OutageOptions {
  readonly store: () => string;
  readonly onReport: (report: StoreReport) => void;
}

/** Errors that last until an operator acts, and that may appear only after the connection was lost. */
const LASTING = /^(WRONGPASS|NOAUTH|NOPERM)/;
const NEVER_CONNECTED = 'no connection could be made';

/**
 * Reports that Redis cannot be reached: once when it goes, with the first known reason, and once
 * when it is back, whatever fails in between. An error that an operator has to fix is reported in addition.
 */
export class Outage {
  readonly #options: OutageOptions;
  /** On the monotonic clock, and as a date. */
  #beganAt = performance.now();
  #since = new Date();
  #isOver = false;
  /** Reasons that were reported. */
  readonly #reported = new Set<string>();

  /** Begins with this node, which has no connection yet. */
  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** @param answeredAt when Redis answered last, on the monotonic clock */
  begin(reason: string, answeredAt: number): void {
    if (!this.#isOver) return;
    this.#isOver = false;
    this.#beganAt = answeredAt;
    this.#since = new Date(Date.now() - (performance.now() - answeredAt));
    this.#report(reason);
  }

  /** A call of Redis failed. @returns false when Redis is not known to be away: then the caller reports it */
  takes({ message, cause }: UnavailableError): boolean {
    if (this.#isOver) return false;
    const isLasting = cause instanceof ReplyError && LASTING.test((cause as Error).message);
    if (this.#reported.size === 0 || (isLasting && !this.#reported.has(message))) this.#report(message);
    return true;
  }

  /** Redis answers. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const wasReported = this.#reported.size > 0;
    this.#reported.clear();
    const awayMs = performance.now() - this.#beganAt;
    const { store, onReport } = this.#options;
    if (wasReported) onReport({ reachable: true, store: store(), since: this.#since, awayMs });
  }

  #report(message: string): void {
    this.#reported.add(message);
    const reason = message.includes('enableOfflineQueue') ? NEVER_CONNECTED : message.replace(/^Redis: /, '');
    this.#options.onReport({ reachable: false, store: this.#options.store(), since: this.#since, reason });
  }
}
