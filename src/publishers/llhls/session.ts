import { Flow } from '../../core/counters.ts';
import { sessionId, type Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import { SessionTokens, type SessionClaims } from './token.ts';

class Player implements Session {
  readonly kind = 'llhls';
  readonly id: string;
  readonly createdTime: number;
  readonly out: Flow;
  readonly token: string;
  readonly kick: () => void;
  lastSeen: number;
  leave: () => void = () => {};

  constructor(token: string, { id, issued }: SessionClaims, now: number, kick: (player: Player) => void) {
    this.id = id;
    this.createdTime = issued;
    this.token = token;
    this.lastSeen = now;
    this.out = new Flow(now);
    this.kick = () => kick(this);
  }
}

export type { Player };

/** Players beyond this are served and not counted: what strangers make this server remember is bounded. */
const MAX_PLAYERS = 50_000;
/** Ids of players that were thrown out, the oldest forgotten first. */
const MAX_KICKED = 10_000;

/**
 * The players of one stream. A token is given out with every master playlist and costs nothing;
 * the player is remembered, and counted, from the first child URL it uses on, until it has been silent.
 * Who loads the master playlist again under the name of a session continues that session: its older token ends.
 */
export class Players {
  readonly #output: OutputStream;
  readonly #tokens: SessionTokens;
  readonly #players = new Map<string, Player>();
  readonly #kicked = new Set<string>();

  /** @param identity of the stream, the same on every node */
  constructor(output: OutputStream, key: Buffer, identity: string) {
    this.#output = output;
    this.#tokens = new SessionTokens(key, identity);
  }

  /**
   * A token for whoever asks for a master playlist.
   * @param query of the request; it may name the session
   * @throws playlistSessionRefused for a name that was thrown out, sessionExists for one that a viewer elsewhere has
   */
  issue(query: URLSearchParams): string {
    const id = sessionId(query);
    if (this.#kicked.has(id)) throw kilnError('playlistSessionRefused');
    if (this.#present(id) === 'elsewhere') throw kilnError('sessionExists', id);
    return this.#tokens.issue(id);
  }

  /** Whether this token's player is remembered. */
  knows(token: string): boolean {
    return this.#players.has(token);
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
    if (claims === undefined || this.#kicked.has(claims.id)) return undefined;
    const present = this.#present(claims.id);
    if (present === 'elsewhere') return undefined;
    if (present !== undefined) {
      if (present.createdTime >= claims.issued) return undefined;
      this.#end(present.token);
    }
    if (this.#players.size >= MAX_PLAYERS) return 'uncounted';
    const player = new Player(token, claims, now, (kicked) => this.#kick(kicked));
    player.leave = this.#output.addSession(player);
    this.#players.set(token, player);
    return player;
  }

  /** Lets go of players not seen since `before`, in milliseconds since the epoch. */
  expire(before: number): void {
    for (const [token, player] of this.#players) if (player.lastSeen < before) this.#end(token);
  }

  close(): void {
    for (const token of this.#players.keys()) this.#end(token);
  }

  /** Who has the name of a session: one of these players, or a viewer of another output or publisher. */
  #present(id: string): Player | 'elsewhere' | undefined {
    const session = this.#output.input.session(id);
    if (session === undefined) return undefined;
    return session instanceof Player && this.#players.get(session.token) === session ? session : 'elsewhere';
  }

  #kick({ token, id }: Player): void {
    this.#kicked.add(id);
    if (this.#kicked.size > MAX_KICKED) this.#kicked.delete(this.#kicked.values().next().value as string);
    this.#end(token);
  }

  #end(token: string): void {
    this.#players.get(token)?.leave();
    this.#players.delete(token);
  }
}
