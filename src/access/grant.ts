import type { Verdict } from './guard.ts';

/** Longest single wait: the wall clock may be set in the meantime, and timers allow no much longer ones. */
const MAX_STEP_MS = 3_600_000;
const EXPIRED = 'its allowed time is over';

/** The decisions of the guards about one session, from its admission to its end. */
export class Grant {
  /** When the session ends at the latest, in milliseconds since the epoch; undefined: never. */
  readonly until: number | undefined;
  readonly #verdicts: readonly Verdict[];
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(verdicts: readonly Verdict[]) {
    this.#verdicts = verdicts;
    const ends = verdicts.flatMap(({ until }) => until ?? []);
    this.until = ends.length > 0 ? Math.min(...ends) : undefined;
  }

  /** Closes a session when its time is over. @param close ends the session, which then calls `end` */
  limit(close: (reason: string) => void): void {
    if (this.#ended || this.until === undefined) return;
    const left = this.until - Date.now();
    if (left <= 0) return close(EXPIRED);
    this.#timer = setTimeout(() => this.limit(close), Math.min(left, MAX_STEP_MS)).unref();
  }

  /** The session has ended, or never began. Idempotent. */
  end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const { end } of this.#verdicts) end?.(reason);
  }
}
