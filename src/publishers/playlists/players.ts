import { Flow } from '../../core/counters.ts';
import { RecentSet } from '../../core/recent-set.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { Viewer } from './answer.ts';
import type { HlsForm } from './form.ts';
import type { SessionClaims, SessionTokens } from './token.ts';

class Player implements Session, Viewer {
  readonly kind: HlsForm['kind'];
  readonly id: string;
  readonly createdTime: number;
  readonly out: Flow;
  readonly token: string;
  readonly kick: () => void;
  lastSeen: number;
  leave: () => void = () => {};

  constructor(
    kind: HlsForm['kind'],
    token: string,
    { id, issued }: SessionClaims,
    now: number,
    kick: (player: Player) => void,
  ) {
    this.kind = kind;
    this.id = id;
    this.createdTime = issued;
    this.token = token;
    this.lastSeen = now;
    this.out = new Flow(now);
    this.kick = () => kick(this);
  }

  sent(bytes: number, now: number): void {
    this.out.add(bytes, now);
    this.lastSeen = now;
  }
}

export type { Player };

/** Players beyond this are served and not counted: what strangers make this server remember is bounded. */
const MAX_PLAYERS = 50_000;
/** Ids of players that were thrown out, the oldest forgotten first. */
const MAX_KICKED = 10_000;

/**
 * The players of one stream. A player is remembered, and counted, from the master playlist on, which gives it a token,
 * until it has been silent.
 * Who loads the master playlist again under the name of a session continues that session: its older token ends.
 */
export class Players {
  /** undefined while the stream has no publisher: nobody is counted. */
  #output: OutputStream | undefined;
  readonly #kind: HlsForm['kind'];
  readonly #tokens: SessionTokens;
  readonly #players = new Map<string, Player>();
  readonly #kicked: RecentSet<string>;
  /** Called when a player was thrown out. */
  onKick: () => void = () => {};

  /** @param kicked ids of players that were thrown out before */
  constructor(kind: HlsForm['kind'], tokens: SessionTokens, kicked: Iterable<string> = []) {
    this.#kind = kind;
    this.#tokens = tokens;
    this.#kicked = new RecentSet(MAX_KICKED, kicked);
  }

  /** Ids of players that were thrown out. */
  get kicked(): ReadonlySet<string> {
    return this.#kicked;
  }

  /** Counts players as viewers of an output stream. */
  attach(output: OutputStream): void {
    this.#output = output;
  }

  /** Counts nobody any more; those who were thrown out stay out. */
  detach(): void {
    this.#output = undefined;
    for (const token of this.#players.keys()) this.#end(token);
  }

  /**
   * A token for whoever asks for a master playlist.
   * @param id of the session
   * @throws playlistSessionRefused for a name that was thrown out, sessionExists for one that a viewer elsewhere has
   */
  issue(id: string): string {
    if (this.#isKicked(id)) throw kilnError('playlistSessionRefused');
    if (this.#present(id) === 'elsewhere') throw kilnError('sessionExists', id);
    return this.#tokens.issue(id);
  }

  /** Whether this token's player is remembered. */
  knows(token: string): boolean {
    return this.#players.has(token);
  }

  /** Whether the player of a token was thrown out. */
  hasKicked(token: string): boolean {
    const claims = this.#tokens.verify(token);
    return claims !== undefined && this.#isKicked(claims.id);
  }

  /**
   * The player behind a token; `uncounted` beyond the limit of what is remembered, undefined for
   * a token that is wrong, or whose player was thrown out, or whose name another viewer has by now.
   */
  admit(token: string, now: number): Player | 'uncounted' | undefined {
    const known = this.#players.get(token);
    if (known !== undefined) {
      known.lastSeen = now;
      return known;
    }
    const claims = this.#tokens.verify(token);
    if (claims === undefined || this.#isKicked(claims.id)) return undefined;
    const present = this.#present(claims.id);
    if (present === 'elsewhere') return undefined;
    if (present !== undefined) {
      if (present.createdTime >= claims.issued) return undefined;
      this.#end(present.token);
    }
    if (this.#output === undefined || this.#players.size >= MAX_PLAYERS) return 'uncounted';
    const player = new Player(this.#kind, token, claims, now, (kicked) => this.#kick(kicked));
    player.leave = this.#output.addSession(player);
    this.#players.set(token, player);
    return player;
  }

  /**
   * Counts the player that a token has just been issued to. One that plays under the same name already goes on with the
   * token that it has, until it uses this one: some players load the master playlist twice and use the first.
   */
  begin(token: string, now: number): Player | 'uncounted' | undefined {
    const claims = this.#tokens.verify(token);
    const present = claims === undefined ? undefined : this.#present(claims.id);
    if (!(present instanceof Player)) return this.admit(token, now);
    present.lastSeen = now;
    return present;
  }

  /** Lets go of players not seen since `before`, in milliseconds since the epoch. */
  expire(before: number): void {
    for (const [token, player] of this.#players) if (player.lastSeen < before) this.#end(token);
  }

  /** Who has the name of a session: one of these players, or a viewer of another output or publisher. */
  #present(id: string): Player | 'elsewhere' | undefined {
    const session = this.#output?.input.session(id);
    if (session === undefined) return undefined;
    return session instanceof Player && this.#players.get(session.token) === session ? session : 'elsewhere';
  }

  /** Whoever threw it out, and from whatever publisher. */
  #isKicked(id: string): boolean {
    return this.#kicked.has(id) || this.#output?.input.kicked.has(id) === true;
  }

  #kick({ token, id }: Player): void {
    this.#kicked.add(id);
    this.#output?.input.kicked.add(id);
    this.#end(token);
    this.onKick();
  }

  #end(token: string): void {
    this.#players.get(token)?.leave();
    this.#players.delete(token);
  }
}
