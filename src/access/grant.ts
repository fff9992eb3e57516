import { Type, type Static } from 'typebox';
import type { Verdict } from './guard.ts';
import { OPENING, type Opening, type OpeningId, type Openings } from './opening.ts';

/** What another node needs to go on with a granted session. */
export const GRANT_STATE = Type.Object({
  /** When the session ends at the latest, in milliseconds since the epoch; absent: never. */
  until: Type.Optional(Type.Number()),
  openings: Type.Array(OPENING),
});

export type GrantState = Static<typeof GRANT_STATE>;

/** A GrantState of which less may be known. */
interface State<O> extends Pick<GrantState, 'until'> {
  openings: O[];
}

/** Longest single wait: the wall clock may be set in the meantime, and a session ends no later than this after that. */
const MAX_STEP_MS = 60_000;
/** Why sessions end whose time is over. */
export const EXPIRED = 'its allowed time is over';

/**
 * The decisions of the guards about one session, from its admission to its end.
 * @template O what is known of its openings: of a resumed session no more than the ids
 */
export class Grant<O extends OpeningId = Opening> {
  readonly #state: State<O>;
  readonly #openings: Openings;
  #timer: NodeJS.Timeout | undefined;
  #expired = false;
  #ended = false;

  constructor(state: State<O>, openings: Openings) {
    this.#state = state;
    this.#openings = openings;
  }

  /** What is closed when the session ends; nothing when it has ended, or was handed over. */
  get openings(): readonly O[] {
    return this.#ended ? [] : this.#state.openings;
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
