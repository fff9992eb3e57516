import type { WebhookSessionId } from '../../../access/webhook-session.ts';
import { Flow } from '../../../core/counters.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import type { Session } from '../../../core/session.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { kilnError } from '../../../errors.ts';
import type { Viewer } from '../answer/played-stream.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { HandedSession, HlsSessionGrant, SessionGrants } from './session-grants.ts';
import {
  isOver,
  type SessionClaims,
  type SessionTerms,
  type SessionTokens,
  type VerifiedPlayer,
} from '../answer/token.ts';

/** Player that this node counts. */
export class Player implements Session, Viewer, VerifiedPlayer {
  readonly kind: HlsForm['kind'];
  readonly id: string;
  readonly createdTime: number;
  readonly out: Flow;
  readonly byPlaylist = true;
  readonly token: string;
  /** Node that counts it unless it is lost; undefined: this one. */
  readonly home: string | undefined;
  readonly openings: readonly WebhookSessionId[];
  /** In milliseconds since the epoch. */
  readonly until: number;
  readonly kick: () => void;
  lastSeen: number;
  checked = 0;
  leave: () => void = () => {};

  constructor(
    kind: HlsForm['kind'],
    token: string,
    { id, issued, home, openings, until = Infinity }: SessionClaims,
    now: number,
    kick: (player: Player) => void,
  ) {
    this.kind = kind;
    this.id = id;
    this.createdTime = issued;
    this.until = until;
    this.token = token;
    this.home = home;
    this.openings = openings;
    this.lastSeen = now;
    this.out = new Flow(now);
    this.kick = () => kick(this);
  }

  sent(bytes: number, now: number): void {
    this.out.add(bytes, now);
    this.lastSeen = now;
  }
}

/** @throws playlistSessionRefused, playlistSessionOver */
export function toViewer(player: Player | 'uncounted' | 'over' | undefined): Viewer | undefined {
  if (player === 'over') throw kilnError('playlistSessionOver');
  if (player === undefined) throw kilnError('playlistSessionRefused');
  return player === 'uncounted' ? undefined : player;
}

/** Further players are served without being counted: tokens of unauthenticated clients use bounded memory. */
const MAX_PLAYERS = 50_000;
/** Oldest are forgotten first. */
export const MAX_KICKED = 10_000;

export interface PlayersOptions {
  readonly kind: HlsForm['kind'];
  readonly tokens: SessionTokens;
  /** Access control is configured: only tokens of sessions count that it has admitted. */
  readonly guarded: boolean;
  readonly grants: SessionGrants;
  readonly resume: (until: number | undefined, openings: readonly WebhookSessionId[]) => HlsSessionGrant;
  /** Ids of sessions that the server ended; new ones are added. */
  readonly kicked?: RecentSet<string>;
}

/**
 * Players of one stream. A player is counted from the master playlist on, which gives it a token, until it has been
 * silent. A master playlist for the name of a present session continues that session: its older token ends.
 */
export class Players {
  /** undefined while the stream has no publisher: no player is counted. */
  #output: OutputStream | undefined;
  readonly #options: PlayersOptions;
  readonly #players = new Map<string, Player>();
  readonly #kicked: RecentSet<string>;
  onKick: () => void = () => {};

  constructor(options: PlayersOptions) {
    this.#options = options;
    this.#kicked = options.kicked ?? new RecentSet(MAX_KICKED);
  }

  get kicked(): ReadonlySet<string> {
    return this.#kicked;
  }

  /** Rejects sessions that other nodes have ended. */
  keepOut(ids: Iterable<string>): void {
    for (const id of ids) this.#kicked.add(id);
  }

  attach(output: OutputStream): void {
    this.#output = output;
  }

  /** Stops counting. Ended sessions stay rejected, and no grant ends. */
  detach(): void {
    this.#output = undefined;
    for (const token of this.#players.keys()) this.#unlist(token);
  }

  /** Idempotent. */
  close(reason: string): void {
    this.detach();
    this.#options.grants.endAll(reason);
  }

  handOver(now: number): HandedSession[] {
    this.detach();
    return this.#options.grants.handOver(now);
  }

  takeOver(sessions: readonly HandedSession[], now: number): void {
    const { grants, resume } = this.#options;
    for (const { id, idleMs, grants: handed } of sessions) {
      for (const { until, openings } of handed) {
        if (grants.stateOf(id, openings) === 'unknown') grants.hold(id, resume(until, openings), now - idleMs);
      }
    }
  }

  /**
   * Issues a token with a master playlist.
   * @param id of the session
   * @throws playlistSessionRefused for an ended session, sessionExists for the name of a viewer elsewhere
   */
  issue(id: string, terms: SessionTerms): string {
    if (this.keepsOut(id)) throw kilnError('playlistSessionRefused');
    if (this.#present(id) === 'elsewhere') throw kilnError('sessionExists', id);
    return this.#options.tokens.issue(id, terms);
  }

  knows(token: string): boolean {
    return this.#players.has(token);
  }

  hasKicked(token: string): boolean {
    const claims = this.#options.tokens.verify(token);
    return claims !== undefined && this.keepsOut(claims.id);
  }

  /** Tests whether a session was ended, by any node and for any publisher of the stream. */
  keepsOut(id: string): boolean {
    return this.#kicked.has(id) || this.#output?.input.kicked.has(id) === true;
  }

  /**
   * Finds the player of a token; `uncounted` beyond the limit of players, `over` after the end of its time, undefined for
   * an invalid token, an ended session, or a name that another viewer has now.
   * @param seen time of the request, in milliseconds since the epoch
   */
  admit(token: string, seen: number): Player | 'uncounted' | 'over' | undefined {
    const known = this.#players.get(token);
    if (known !== undefined) {
      if (known.until <= seen || this.#hasEnded(known)) return this.#over(known, seen);
      if (this.#options.tokens.isRevoked(known)) {
        this.#unlist(token);
        return undefined;
      }
      known.lastSeen = seen;
      return known;
    }
    const claims = this.#options.tokens.verify(token);
    if (claims === undefined || (this.#options.guarded && !claims.guarded)) return undefined;
    if (isOver(claims)) return 'over';
    if (this.keepsOut(claims.id)) return undefined;
    const present = this.#present(claims.id);
    if (present === 'elsewhere') return undefined;
    if (present !== undefined && present.createdTime >= claims.issued) return undefined;
    if (!this.#goOn(claims, seen)) return undefined;
    if (present !== undefined) this.#unlist(present.token);
    if (this.#output === undefined || this.#players.size >= MAX_PLAYERS) return 'uncounted';
    const player = new Player(this.#options.kind, token, claims, seen, (kicked) => this.#kick(kicked));
    player.checked = this.#options.tokens.version;
    player.leave = this.#output.addSession(player);
    this.#players.set(token, player);
    return player;
  }

  /**
   * Counts the player of a new token. A player that is present under the same name continues with its older token until
   * it uses this one: some players load the master playlist twice and use the first.
   * @param grant ends with the session
   * @throws tooManyConnections
   */
  begin(token: string, grant: HlsSessionGrant | undefined, now: number): Player | 'uncounted' | 'over' | undefined {
    const claims = this.#options.tokens.verify(token);
    if (claims === undefined) return undefined;
    if (grant !== undefined) this.#options.grants.hold(claims.id, grant, now);
    const present = this.#present(claims.id);
    if (!(present instanceof Player)) return this.admit(token, now);
    present.lastSeen = now;
    return present;
  }

  /** Removes players whose homes count them again. @param isElsewhere tests that by the id of the home */
  leaveTo(isElsewhere: (home: string) => boolean): void {
    for (const [token, { home }] of this.#players) if (home !== undefined && isElsewhere(home)) this.#unlist(token);
  }

  /** Removes players without requests since `before`, and those whose time is over. Times in milliseconds since the epoch. */
  expire(before: number, now: number): void {
    for (const [token, { lastSeen, until }] of this.#players) {
      if (until <= now || lastSeen < before) this.#unlist(token);
    }
    this.#options.grants.expire(before, now, (id) => this.#present(id) instanceof Player);
  }

  /** Tests whether the session of a token has not ended. Resumes sessions of other nodes. */
  #goOn({ id, until, openings }: SessionClaims, now: number): boolean {
    const { grants, resume } = this.#options;
    if (openings.length === 0) return true;
    const state = grants.stateOf(id, openings);
    if (state === 'unknown') grants.hold(id, resume(until, openings), now);
    else grants.see(id, now);
    return state !== 'ended';
  }

  /** Tests whether a control server has ended what it allowed, or its time, before the token says. */
  #hasEnded({ id, openings }: Player): boolean {
    return openings.length > 0 && this.#options.grants.isOver(id, openings);
  }

  #over({ token, id }: Player, now: number): 'over' {
    this.#unlist(token);
    this.#options.grants.endOver(id, now);
    return 'over';
  }

  /** Finds the holder of a session's name: one of these players, or a viewer of another output or publisher. */
  #present(id: string): Player | 'elsewhere' | undefined {
    const session = this.#output?.input.session(id);
    if (session === undefined) return undefined;
    return session instanceof Player && this.#players.get(session.token) === session ? session : 'elsewhere';
  }

  /** Removes the player of a session that has ended: its tokens are refused, and its name is free. */
  leave(id: string): void {
    const present = this.#present(id);
    if (present instanceof Player) this.#unlist(present.token);
  }

  #kick({ token, id }: Player): void {
    this.#kicked.add(id);
    this.#output?.input.kicked.add(id);
    this.#unlist(token);
    this.#options.grants.end(id, 'the session was ended by the server');
    this.onKick();
  }

  /** Removes a player. Its grants are kept. */
  #unlist(token: string): void {
    const player = this.#players.get(token);
    if (player === undefined) return;
    player.leave();
    this.#players.delete(token);
    this.#options.grants.see(player.id, player.lastSeen);
  }
}
