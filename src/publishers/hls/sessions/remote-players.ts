import { BoundedMap } from '../../../lib/bounded-map.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import { kilnError } from '../../../errors.ts';
import type { Viewer } from '../answer/played-stream.ts';
import { isOver, type SessionClaims, type SessionTokens, type VerifiedPlayer } from '../answer/token.ts';
import { MAX_REPORTED, type Report, type Verdict } from './wire.ts';

/** Further players are served without being counted: tokens of unauthenticated clients use bounded memory. */
const MAX_PLAYERS = 50_000;
/** Tokens of ended sessions, the oldest forgotten first: the counting node is asked again then. */
const MAX_KICKED = 10_000;
/** Tokens that are rejected for now, for example while another viewer has the name. */
const MAX_REFUSED = 10_000;
/** Time for which the counting node is not asked again about those. */
const REFUSED_MS = 1000;
const REPORT_MS = 1000;
/** A player that was silent for longer is introduced again. */
const FORGET_MS = 30_000;

class RemotePlayer implements Viewer, VerifiedPlayer {
  readonly token: string;
  /** In milliseconds since the epoch. */
  readonly until: number | undefined;
  readonly createdTime: number;
  /** Since the last report. */
  bytes = 0;
  /** By the monotonic clock. */
  lastSeen = performance.now();
  changed = true;
  checked: number;
  /** The counting node has confirmed it. */
  known = false;

  constructor(token: string, { until, issued }: Pick<SessionClaims, 'until' | 'issued'>, checked: number) {
    this.checked = checked;
    this.token = token;
    this.until = until;
    this.createdTime = issued;
  }

  sent(bytes: number): void {
    this.bytes += bytes;
    this.see();
  }

  see(): void {
    this.lastSeen = performance.now();
    this.changed = true;
  }
}

export interface RemotePlayersOptions {
  readonly tokens: SessionTokens;
  /** Access control is configured: only tokens of sessions count that it has admitted. */
  readonly guarded: boolean;
  /** Limit of the application, for all nodes. */
  readonly maxConnection: number;
  /** The counting node is known to be unreachable. */
  readonly isAway: () => boolean;
  /** Sends a report; undefined if there was no answer, for any reason. Never rejects. */
  readonly report: (report: Report) => Promise<readonly Verdict[] | undefined>;
}

/**
 * Players that this node serves and another one counts: the owner of their stream, or their home. Reports new players at
 * once and traffic once a second; the answers say which players are rejected.
 */
export class RemotePlayers {
  readonly #options: RemotePlayersOptions;
  readonly #players = new Map<string, RemotePlayer>();
  readonly #kicked = new RecentSet<string>(MAX_KICKED);
  /** End of the rejection, by the monotonic clock. */
  readonly #refused = new BoundedMap<string, number>(MAX_REFUSED);
  #uncountedBytes = 0;
  #reportedAt = 0;
  /** Report in progress, and the next one. */
  #sending: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(options: RemotePlayersOptions) {
    this.#options = options;
  }

  /**
   * Finds the player of a token; undefined beyond the limit of players.
   * @throws playlistSessionRefused, playlistSessionOver, tooManyConnections
   */
  admit(token: string): Viewer | undefined | Promise<Viewer | undefined> {
    const present = this.#players.get(token);
    if (present?.known === true) {
      if (isOver(present)) throw kilnError('playlistSessionOver');
      if (this.#options.tokens.isRevoked(present)) {
        this.#players.delete(token);
        throw kilnError('playlistSessionRefused');
      }
      present.see();
      return present;
    }
    const { tokens, guarded } = this.#options;
    const claims = tokens.verify(token);
    if (claims === undefined || (guarded && !claims.guarded)) throw kilnError('playlistSessionRefused');
    // the counting node rejects these too, without the reason
    if (isOver(claims)) throw kilnError('playlistSessionOver');
    if (this.#isRefused(token)) throw kilnError('playlistSessionRefused');
    if (present === undefined && this.#players.size >= MAX_PLAYERS) return undefined;
    const player = present ?? this.#remember(token, claims);
    if (!this.#options.isAway()) return this.#introduce(player);
    player.see();
    return player;
  }

  /** There are no players, present or rejected. */
  get isEmpty(): boolean {
    return this.#players.size === 0 && this.#kicked.size === 0 && this.#refused.size === 0;
  }

  /** Counts bytes of players that are not counted. */
  sent(bytes: number): void {
    this.#uncountedBytes += bytes;
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    for (const [token, { lastSeen, changed }] of this.#players) {
      if (!changed && lastSeen < now - FORGET_MS) this.#players.delete(token);
    }
    for (const [token, until] of this.#refused) {
      if (until > now) break;
      this.#refused.delete(token);
    }
    if (this.#sending === undefined && now - this.#reportedAt >= REPORT_MS && this.#hasNews()) void this.#report();
  }

  #remember(token: string, claims: SessionClaims): RemotePlayer {
    const player = new RemotePlayer(token, claims, this.#options.tokens.version);
    this.#players.set(token, player);
    return player;
  }

  async #introduce(player: RemotePlayer): Promise<Viewer> {
    const { token } = player;
    player.changed = true;
    const outcome = await this.#reportNext().then(() => this.#players.get(token));
    if (isOver(player)) throw kilnError('playlistSessionOver');
    if (this.#isRefused(token)) throw kilnError('playlistSessionRefused');
    if (outcome === undefined) throw kilnError('tooManyConnections', this.#options.maxConnection);
    return outcome;
  }

  /** Sends a report that begins after this call. */
  #reportNext(): Promise<void> {
    if (this.#sending === undefined) return this.#report();
    if (this.#next === undefined) {
      const report = (): Promise<void> => {
        this.#next = undefined;
        return this.#report();
      };
      this.#next = this.#sending.then(report, report);
    }
    return this.#next;
  }

  #report(): Promise<void> {
    this.#sending ??= this.#reportAll().finally(() => (this.#sending = undefined));
    return this.#sending;
  }

  async #reportAll(): Promise<void> {
    this.#reportedAt = performance.now();
    const changed = [...this.#players.values()].filter((player) => player.changed);
    for (let at = 0; at === 0 || at < changed.length; at += MAX_REPORTED)
      await this.#tell(changed.slice(at, at + MAX_REPORTED));
  }

  async #tell(players: readonly RemotePlayer[]): Promise<void> {
    const now = performance.now();
    const bytes = this.#uncountedBytes;
    const sent = players.map((player) => player.bytes);
    for (const player of players) player.changed = false;
    const verdicts = await this.#options.report({
      players: players.map((player) => [player.token, player.bytes, Math.max(0, Math.round(now - player.lastSeen))]),
      bytes,
    });
    // what was not reported goes to the next owner of the stream
    if (verdicts === undefined) {
      for (const player of players) player.changed = true;
      return;
    }
    this.#uncountedBytes -= bytes;
    players.forEach((player, index) => {
      player.bytes -= sent[index] ?? 0;
      this.#judge(player, verdicts[index] ?? 'uncounted');
    });
  }

  #judge(player: RemotePlayer, verdict: Verdict): void {
    player.known = verdict === 'counted' || verdict === 'uncounted';
    if (player.known) return;
    this.#players.delete(player.token);
    if (verdict === 'kicked') this.#kicked.add(player.token);
    if (verdict === 'refused') this.#refuse(player.token);
  }

  #refuse(token: string): void {
    this.#refused.set(token, performance.now() + REFUSED_MS);
  }

  #isRefused(token: string): boolean {
    return this.#kicked.has(token) || (this.#refused.get(token) ?? 0) > performance.now();
  }

  #hasNews(): boolean {
    if (this.#uncountedBytes > 0) return true;
    for (const { changed } of this.#players.values()) if (changed) return true;
    return false;
  }
}
