import Type from 'typebox';
import type { Cluster } from '#cluster';
import type { Access } from '../access/access.ts';
import type { WebhookSessionId } from '../access/webhook-session.ts';
import { isGuarded } from '../config/enables.ts';
import type { Application } from '../core/application.ts';
import type { Flow } from '../core/counters.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import { RecentSet } from '../lib/recent-set.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { isOver, SessionTokens, type SessionTerms, type VerifiedPlayer } from '../publishers/hls/answer/token.ts';
import { readable } from '../publishers/hls/sessions/home-nodes.ts';
import { SessionGrants, type HlsSessionGrant } from '../publishers/hls/sessions/session-grants.ts';

/** A player that asks for nothing for so long has left: paused ones have buffered for less. */
const SILENT_MS = 5 * 60_000;
const TICK_MS = 5000;
const TIMEOUT_MS = 2000;
/** Further players are served without being counted. */
const MAX_SESSIONS = 50_000;
const MAX_ENDED = 10_000;
/** Players that are reported at once. */
const MAX_REPORTED = 1000;

const Seen = Type.Object({ vhost: Type.String(), app: Type.String(), clip: Type.String(), token: Type.String() });
type Seen = Type.Static<typeof Seen>;

/** Reports players to the node that counts them. */
const SEEN = definePeerCall(
  'playback/seen',
  Type.Object({ players: Type.Array(Seen, { maxItems: MAX_REPORTED }) }),
  Type.Null(),
);

interface Session extends VerifiedPlayer {
  readonly id: string;
  /** Application and clip. */
  readonly plays: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  lastSeen: number;
  readonly out: Flow;
  readonly leave: () => void;
  readonly openings: readonly WebhookSessionId[];
}

export interface PlaybackSessionsOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly calls: PeerCalls;
  readonly access: Pick<Access, 'resume' | 'revocations'>;
  /** Secrets of session tokens, the same on every node. */
  readonly tokenKeys: readonly Buffer[];
}

/**
 * Players of recordings over HLS. A token is of one clip of a stream, so that nothing else can be played with it. The node that issued
 * it counts its player, wherever the requests of the player go; if that node is lost, the one that serves the player does.
 */
export class PlaybackSessions {
  readonly #options: PlaybackSessionsOptions;
  /** By token. */
  readonly #sessions = new Map<string, Session>();
  readonly #grants = new SessionGrants(new RecentSet(MAX_ENDED), (id) => this.#leave(id));
  /** Players that other nodes count, by node and token, since the last report. */
  readonly #seen = new Map<string, Map<string, Seen>>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: PlaybackSessionsOptions) {
    this.#options = options;
    options.calls.answer(SEEN, ({ players }) => {
      for (const player of players) this.#see(player);
      return null;
    });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  /** @param clip name of the clip, with that of the stream */
  tokens(application: Application, clip: string): SessionTokens {
    const place = { vhost: application.vhost.name, app: application.name, stream: streamOf(clip) };
    const revoked = this.#options.access.revocations.of(place);
    return new SessionTokens(this.#options.tokenKeys, `playback ${playsOf(application, clip)}`, revoked);
  }

  /**
   * Issues a token with a master playlist, and counts its player.
   * @param grant ends with the session
   * @throws tooManyConnections, sessionRefused
   */
  begin(application: Application, clip: string, id: string, terms: SessionTerms, grant: HlsSessionGrant): string {
    application.recordingViewers.check(streamOf(clip), id);
    const { cluster } = this.#options;
    const home = cluster.self.id;
    const token = this.tokens(application, clip).issue(id, { ...readable(terms, cluster), home });
    this.#grants.hold(id, grant, Date.now());
    this.#count(application, clip, token, { ...terms, id });
    return token;
  }

  /**
   * Admits a request of a player.
   * @returns where what it is sent is counted, if its player is counted here
   * @throws playlistSessionRefused, playlistSessionOver, sessionRefused, tooManyConnections
   */
  admit(application: Application, clip: string, token: string): Flow | undefined {
    const now = Date.now();
    const known = this.#sessions.get(token);
    if (known !== undefined) {
      if (known.plays !== playsOf(application, clip)) throw kilnError('playlistSessionRefused');
      if (known.until <= now || this.#hasEnded(known)) throw kilnError('playlistSessionOver');
      if (
        known.checked !== this.#options.access.revocations.version &&
        this.tokens(application, clip).isRevoked(known)
      ) {
        this.#forget(token);
        throw kilnError('playlistSessionRefused');
      }
      known.lastSeen = now;
      return known.out;
    }
    const claims = this.tokens(application, clip).verify(token);
    const guarded = isGuarded(application.vhost.config, { direction: 'outgoing', protocol: 'playback' });
    if (claims === undefined || (guarded && !claims.guarded)) throw kilnError('playlistSessionRefused');
    if (isOver(claims)) throw kilnError('playlistSessionOver');
    const { id, home, until, openings } = claims;
    application.recordingViewers.check(streamOf(clip), id);
    if (home !== undefined && this.#isElsewhere(home)) {
      this.#note(home, application, clip, token);
      return undefined;
    }
    const state = openings.length === 0 ? 'open' : this.#grants.stateOf(id, openings);
    if (state === 'ended') throw kilnError('playlistSessionRefused');
    if (state === 'unknown') this.#grants.hold(id, this.#options.access.resume(until, openings), now);
    return this.#count(application, clip, token, claims);
  }

  /** Ends all sessions. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const token of [...this.#sessions.keys()]) this.#forget(token);
    this.#grants.endAll('the server is stopping');
  }

  #count(
    application: Application,
    clip: string,
    token: string,
    { id, until = Infinity, openings }: SessionTerms & { readonly id: string },
  ): Flow | undefined {
    if (this.#sessions.size >= MAX_SESSIONS) return undefined;
    const { out, leave: unlist } = application.recordingViewers.add(streamOf(clip), id, () => this.#kick(token));
    const uncount = application.counters.viewer('playback');
    const leave = (): void => {
      unlist();
      uncount();
    };
    const plays = playsOf(application, clip);
    const checked = this.#options.access.revocations.version;
    this.#sessions.set(token, { token, checked, id, plays, until, lastSeen: Date.now(), out, leave, openings });
    return out;
  }

  /** Removes the players of a session that has ended: their tokens are refused. */
  #leave(id: string): void {
    for (const [token, session] of this.#sessions) if (session.id === id) this.#forget(token);
  }

  #hasEnded({ id, openings }: Session): boolean {
    return openings.length > 0 && this.#grants.isOver(id, openings);
  }

  #kick(token: string): void {
    const session = this.#sessions.get(token);
    this.#forget(token);
    if (session !== undefined) this.#grants.end(session.id, 'the session was ended by the server');
  }

  #forget(token: string): void {
    const session = this.#sessions.get(token);
    if (session === undefined) return;
    this.#sessions.delete(token);
    session.leave();
    this.#grants.see(session.id, session.lastSeen);
  }

  #isElsewhere(home: string): boolean {
    const { cluster } = this.#options;
    return home !== cluster.self.id && cluster.nodes().some(({ id, state }) => id === home && state !== 'lost');
  }

  #note(home: string, { vhost, name: app }: Application, clip: string, token: string): void {
    const seen = this.#seen.get(home) ?? new Map<string, Seen>();
    this.#seen.set(home, seen);
    if (seen.size < MAX_REPORTED) seen.set(token, { vhost: vhost.name, app, clip, token });
  }

  #see({ vhost, app, clip, token }: Seen): void {
    const application = this.#options.registry.vhosts.get(vhost)?.applications.get(app);
    try {
      if (application !== undefined) this.admit(application, clip, token);
    } catch (error) {
      // the other node serves it as long as its token holds
      if (!(error instanceof KilnError)) throw error;
    }
  }

  #tick(): void {
    const now = Date.now();
    const before = now - SILENT_MS;
    for (const [token, { lastSeen, until }] of this.#sessions)
      if (until <= now || lastSeen < before) this.#forget(token);
    const listed = new Set([...this.#sessions.values()].map(({ id }) => id));
    this.#grants.expire(before, now, (id) => listed.has(id));
    for (const [home, seen] of this.#seen) void this.#report(home, [...seen.values()]);
    this.#seen.clear();
  }

  async #report(home: string, players: Seen[]): Promise<void> {
    const { cluster, calls } = this.#options;
    const node = cluster.nodes().find(({ id }) => id === home);
    if (node === undefined) return;
    try {
      await calls.call(node, SEEN, { players }, TIMEOUT_MS);
    } catch (error) {
      // players that go on are reported again, or counted here when the node is lost
      if (!(error instanceof KilnError)) throw error;
    }
  }
}

/** @param clip name of the clip, after that of the stream */
function streamOf(clip: string): string {
  return clip.slice(0, clip.lastIndexOf('/'));
}

function playsOf({ internalName }: Application, clip: string): string {
  return `${internalName}/${clip}`;
}
