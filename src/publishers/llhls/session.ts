import { Flow } from '../../core/counters.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { SessionTokens } from './token.ts';

class Player implements Session {
  readonly kind = 'llhls';
  readonly id: string;
  readonly createdTime: number;
  readonly out: Flow;
  readonly kick: () => void;
  lastSeen: number;
  leave: () => void = () => {};

  constructor(id: string, createdTime: number, now: number, kick: (id: string) => void) {
    this.id = id;
    this.createdTime = createdTime;
    this.lastSeen = now;
    this.out = new Flow(now);
    this.kick = () => kick(id);
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

  issue(): string {
    return this.#tokens.issue();
  }

  /** Whether this token's player is remembered. */
  knows(token: string): boolean {
    return this.#players.has(token);
  }

  /**
   * The player behind a token; `uncounted` beyond the limit of what is remembered, undefined for
   * a token that is wrong or whose player was thrown out.
   */
  admit(token: string, now: number): Player | 'uncounted' | undefined {
    const known = this.#players.get(token);
    if (known !== undefined) {
      known.lastSeen = now;
      return known;
    }
    const claims = this.#tokens.verify(token);
    if (claims === undefined || this.#kicked.has(claims.id)) return undefined;
    if (this.#players.size >= MAX_PLAYERS) return 'uncounted';
    const player = new Player(claims.id, claims.issued, now, () => this.#kick(token, claims.id));
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

  #kick(token: string, id: string): void {
    this.#kicked.add(id);
    if (this.#kicked.size > MAX_KICKED) this.#kicked.delete(this.#kicked.values().next().value as string);
    this.#end(token);
  }

  #end(token: string): void {
    this.#players.get(token)?.leave();
    this.#players.delete(token);
  }
}
