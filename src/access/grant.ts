import { Type, type Static } from 'typebox';
import type { Verdict } from './guard.ts';
import { OPENING, type Openings } from './opening.ts';

/** What another node needs to go on with a granted session. */
export const GRANT_STATE = Type.Object({
  /** When the session ends at the latest, in milliseconds since the epoch; absent: never. */
  until: Type.Optional(Type.Number()),
  openings: Type.Array(OPENING),
});

export type GrantState = Static<typeof GRANT_STATE>;

/** Longest single wait: the wall clock may be set in the meantime, and timers allow no much longer ones. */
const MAX_STEP_MS = 3_600_000;
const EXPIRED = 'its allowed time is over';

/** The decisions of the guards about one session, from its admission to its end. */
export class Grant {
  readonly #state: GrantState;
  readonly #openings: Openings;
  #timer: NodeJS.Timeout | undefined;
  #expired = false;
  #ended = false;

  constructor(state: GrantState, openings: Openings) {
    this.#state = state;
    this.#openings = openings;
  }

  /** When the session ends at the latest, in milliseconds since the epoch; undefined: never. */
  get until(): number | undefined {
    return this.#state.until;
  }

  /** Whether the session was closed because its time was over. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Closes a session when its time is over. @param close ends the session, which then calls `end` */
  limit(close: (reason: string) => void): void {
    if (this.#ended || this.until === undefined) return;
    const left = this.until - Date.now();
    if (left <= 0) {
      this.#expired = true;
      return close(EXPIRED);
    }
    this.#timer = setTimeout(() => this.limit(close), Math.min(left, MAX_STEP_MS)).unref();
  }

  /** The session has ended, or never began. Idempotent. */
  end(reason: string): void {
    for (const opening of this.#leave().openings) this.#openings.close(opening, reason);
  }

  /** Somebody else ends the session: this grant has nothing left to end, and another one is made of what it returns. */
  handOver(): GrantState {
    const state = this.#leave();
    for (const opening of state.openings) this.#openings.release(opening);
    return state;
  }

  #leave(): GrantState {
    if (this.#ended) return { openings: [] };
    this.#ended = true;
    clearTimeout(this.#timer);
    return this.#state;
  }
}

/** The earliest end and all openings of the guards' decisions. */
export function combined(verdicts: readonly Verdict[]): GrantState {
  const ends = verdicts.flatMap(({ until }) => until ?? []);
  return {
    ...(ends.length > 0 && { until: Math.min(...ends) }),
    openings: verdicts.flatMap(({ opening }) => opening ?? []),
  };
}
