import { Type, type Static } from 'typebox';
import type { Verdict } from './guard.ts';
import type { Place, Revocable, Revocations } from './revocations.ts';
import {
  WEBHOOK_SESSION,
  type SessionHolder,
  type WebhookSession,
  type WebhookSessionId,
  type WebhookSessions,
} from './webhook-session.ts';

/** State with which another node continues an admitted session. */
export const GRANT_STATE = Type.Object({
  /** When the session ends at the latest, in milliseconds since the epoch; absent: never. */
  until: Type.Optional(Type.Number()),
  /** Sessions that webhooks have opened for it. */
  openings: Type.Array(WEBHOOK_SESSION),
  /** `until` without the lifetimes that webhooks gave. */
  untilWithout: Type.Optional(Type.Number()),
  /** Found by these when an operator revokes it. */
  marks: Type.Optional(Type.Array(Type.String())),
});

export type GrantState = Static<typeof GRANT_STATE>;

/** GrantState, less of which may be known. */
interface State<O> extends Pick<GrantState, 'until' | 'untilWithout' | 'marks'> {
  openings: O[];
}

/** Longest single wait: where the wall clock is set during it, a session ends at most that much late. */
const MAX_STEP_MS = 60_000;
/** Reason for the end of a session whose time is over. */
export const EXPIRED = 'its allowed time is over';

/**
 * The decisions of the guards about one session, from its admission to its end.
 * @template O known properties of its webhook sessions: no more than the ids where it was resumed
 */
export class Grant<O extends WebhookSessionId = WebhookSession> implements SessionHolder, Revocable {
  readonly #state: State<O>;
  readonly #sessions: WebhookSessions;
  /** Ends the session; undefined until it is open. */
  #close: ((reason: string) => void) | undefined;
  #revoked: string | undefined;
  /** This grant looks after `until`. */
  #isLimited = false;
  #revocations: Pick<Revocations, 'watch' | 'unwatch'> | undefined;
  #place: Place | undefined;
  #timer: NodeJS.Timeout | undefined;
  #expired = false;
  #ended = false;

  constructor(state: State<O>, sessions: WebhookSessions) {
    this.#state = state;
    this.#sessions = sessions;
    for (const { id } of state.openings) sessions.hold(id, this);
  }

  /** Webhook sessions that are closed when the session ends; none when it has ended, or was handed over. */
  get openings(): readonly O[] {
    return this.#ended ? [] : this.#state.openings;
  }

  get marks(): readonly string[] {
    return this.#state.marks ?? [];
  }

  get place(): Place | undefined {
    return this.#place;
  }

  /** Lets revocations end the session from when it is open. */
  watchedBy(revocations: Pick<Revocations, 'watch' | 'unwatch'>, place: Place): void {
    this.#revocations = revocations;
    this.#place = place;
  }

  /** When the session ends at the latest, in milliseconds since the epoch; undefined: never. */
  get until(): number | undefined {
    return this.#state.until;
  }

  /** Whether the session was closed because its time was over, or because it is not allowed any more. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Closes a session when its time is over, or when it is revoked. @param close ends the session, which then calls `end` */
  limit(close: (reason: string) => void): void {
    this.#isLimited = true;
    this.onRevoked(close);
    this.#wait(this.until);
  }

  /**
   * Closes a session when it is revoked. The caller looks after `until`, which may change.
   * @param close ends the session, which then calls `end`
   */
  onRevoked(close: (reason: string) => void): void {
    if (this.#ended) return;
    this.#close = close;
    if (this.#revoked === undefined) this.#revocations?.watch(this);
    else close(this.#revoked);
  }

  /** The session is not allowed any more: it is closed, as soon as it is open. */
  revoke(reason: string): void {
    if (this.#ended || this.#revoked !== undefined) return;
    this.#revoked = reason;
    this.#expired = true;
    this.#revocations?.unwatch(this);
    this.#close?.(reason);
  }

  /** A webhook gives another end: the earliest one counts. @param until milliseconds since the epoch; undefined: never */
  relimit(until: number | undefined): void {
    const ends = [until, this.#state.untilWithout].flatMap((end) => end ?? []);
    const end = ends.length === 0 ? undefined : Math.min(...ends);
    if (end === undefined) delete this.#state.until;
    else this.#state.until = end;
    if (this.#isLimited) this.#wait(end);
  }

  /** Waits for the end of the session's time, once it is open. */
  #wait(until: number | undefined): void {
    clearTimeout(this.#timer);
    const close = this.#close;
    if (this.#ended || close === undefined || until === undefined) return;
    const left = until - Date.now();
    if (left <= 0) {
      this.#expired = true;
      return close(EXPIRED);
    }
    this.#timer = setTimeout(() => this.#wait(until), Math.min(left, MAX_STEP_MS)).unref();
  }

  /** The session has ended, or never began. Idempotent. */
  end(reason: string): void {
    for (const session of this.#leave().openings) this.#sessions.close(session, reason);
  }

  /** Leaves the end of the session to another grant, made of the returned state. */
  handOver(): GrantState {
    const state = this.#leave();
    for (const session of state.openings) this.#sessions.release(session);
    return state;
  }

  #leave(): GrantState {
    if (this.#ended) return { openings: [] };
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#revocations?.unwatch(this);
    return this.#state;
  }
}

/** Earliest end and all webhook sessions of the guards' decisions. */
export function combined(verdicts: readonly Verdict[]): GrantState {
  const ends = verdicts.flatMap(({ until }) => until ?? []);
  const others = verdicts.flatMap(({ session, until }) => (session === undefined ? (until ?? []) : []));
  const openings = verdicts.flatMap(({ session }) => session ?? []);
  const marks = verdicts.flatMap((verdict) => verdict.marks ?? []);
  return {
    ...(ends.length > 0 && { until: Math.min(...ends) }),
    ...(others.length > 0 && openings.length > 0 && { untilWithout: Math.min(...others) }),
    openings,
    ...(marks.length > 0 && { marks }),
  };
}
