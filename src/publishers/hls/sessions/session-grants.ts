import { EXPIRED, type Grant } from '../../../access/grant.ts';
import type { WebhookSessionId } from '../../../access/webhook-session.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import { kilnError } from '../../../errors.ts';

/** Grant that needs no more of its openings than their ids. */
export type HlsSessionGrant = Pick<Grant<WebhookSessionId>, 'until' | 'openings' | 'onRevoked' | 'end' | 'handOver'>;

export interface HandedSession {
  readonly id: string;
  /** Milliseconds since its last request. */
  readonly idleMs: number;
  readonly grants: { until?: number; openings: WebhookSessionId[] }[];
}

/** Sessions with openings of one stream. */
const MAX_SESSIONS = 50_000;
/** Oldest are forgotten first. */
const MAX_OVER = 10_000;
/** Grants of one session, which gets one with each master playlist that it loads. The oldest ends first. */
const MAX_GRANTS = 8;

const SILENT = 'the player asks for nothing any more';

interface Held {
  grants: HlsSessionGrant[];
  /** In milliseconds since the epoch; not updated while the session is listed. */
  lastSeen: number;
}

/** Grants with openings of the sessions of a stream. They outlive its interruption, during which no session is listed. */
export class SessionGrants {
  readonly #ended: RecentSet<string>;
  /** Ids of openings that were revoked, or whose time is over. */
  readonly #over = new RecentSet<string>(MAX_OVER);
  readonly #onOver: (id: string) => void;
  readonly #sessions = new Map<string, Held>();

  /**
   * @param ended ids of openings that were closed on this node: their sessions are not resumed
   * @param onOver called with a session whose last grant was revoked
   */
  constructor(ended: RecentSet<string>, onOver: (id: string) => void) {
    this.#ended = ended;
    this.#onOver = onOver;
  }

  /** Tests whether any opening in a token is still open, as far as this node knows. */
  stateOf(id: string, openings: readonly WebhookSessionId[]): 'open' | 'ended' | 'unknown' {
    const ids = new Set(openings.map((opening) => opening.id));
    const held = this.#sessions.get(id)?.grants ?? [];
    if (held.some((grant) => grant.openings.some((opening) => ids.has(opening.id)))) return 'open';
    return openings.some((opening) => this.#ended.has(opening.id)) ? 'ended' : 'unknown';
  }

  /** Tests whether a session is to end before its token says: what the token was issued for was revoked, or its time is over. */
  isOver(id: string, openings: readonly WebhookSessionId[]): boolean {
    return openings.some((opening) => this.#over.has(opening.id)) && this.stateOf(id, openings) !== 'open';
  }

  /**
   * Holds a grant, which ends with the session.
   * @param now milliseconds since the epoch
   * @throws tooManyConnections, when the grant has ended
   */
  hold(id: string, grant: HlsSessionGrant, now: number): void {
    if (grant.openings.length === 0) return;
    let held = this.#sessions.get(id);
    if (held === undefined) {
      if (this.#sessions.size >= MAX_SESSIONS) {
        const refusal = kilnError('tooManyConnections', MAX_SESSIONS);
        this.#end(grant, refusal.message);
        throw refusal;
      }
      this.#sessions.set(id, (held = { grants: [], lastSeen: now }));
    }
    held.grants.push(grant);
    grant.onRevoked((reason) => this.#revoke(id, grant, reason));
    held.lastSeen = now;
    for (const oldest of held.grants.splice(0, held.grants.length - MAX_GRANTS))
      this.#end(oldest, 'its master playlist was loaded again');
  }

  /** Notes a request of a session that is not listed. @param now milliseconds since the epoch */
  see(id: string, now: number): void {
    const held = this.#sessions.get(id);
    if (held !== undefined) held.lastSeen = now;
  }

  /** Ends the grants of a session. Idempotent. */
  end(id: string, reason: string): void {
    for (const grant of this.#sessions.get(id)?.grants ?? []) this.#end(grant, reason);
    this.#sessions.delete(id);
  }

  /** Idempotent. */
  endAll(reason: string): void {
    for (const id of [...this.#sessions.keys()]) this.end(id, reason);
  }

  /**
   * Ends grants whose time is over, and sessions that are not listed and have been silent.
   * @param before latest request of a silent session, in milliseconds since the epoch
   */
  expire(before: number, now: number, isListed: (id: string) => boolean): void {
    for (const [id, { lastSeen }] of this.#sessions) {
      this.endOver(id, now);
      if (lastSeen < before && !isListed(id)) this.end(id, SILENT);
    }
  }

  /** Ends the grants of a session whose time is over. @param now milliseconds since the epoch */
  endOver(id: string, now: number): void {
    const held = this.#sessions.get(id);
    const isOver = ({ until = Infinity }: HlsSessionGrant): boolean => until <= now;
    // called twice a second for each session
    if (held === undefined || !held.grants.some(isOver)) return;
    for (const grant of held.grants) {
      if (!isOver(grant)) continue;
      for (const opening of grant.openings) this.#over.add(opening.id);
      this.#end(grant, EXPIRED);
    }
    held.grants = held.grants.filter((grant) => !isOver(grant));
    if (held.grants.length === 0) this.#sessions.delete(id);
  }

  /** Hands over all grants to another node, without ending them. @param now milliseconds since the epoch */
  handOver(now: number): HandedSession[] {
    const handed = [...this.#sessions].map(([id, { grants, lastSeen }]) => {
      const idleMs = Math.max(0, now - lastSeen);
      return { id, idleMs, grants: grants.map((grant) => grant.handOver()) };
    });
    this.#sessions.clear();
    return handed;
  }

  /** Ends one grant: the session has others where its player has loaded the master playlist by another URL since. */
  #revoke(id: string, grant: HlsSessionGrant, reason: string): void {
    for (const opening of grant.openings) this.#over.add(opening.id);
    this.#end(grant, reason);
    const held = this.#sessions.get(id);
    if (held === undefined) return;
    held.grants = held.grants.filter((other) => other !== grant);
    if (held.grants.length > 0) return;
    this.#sessions.delete(id);
    this.#onOver(id);
  }

  #end(grant: HlsSessionGrant, reason: string): void {
    for (const { id } of grant.openings) this.#ended.add(id);
    grant.end(reason);
  }
}
