import type { NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import { limitConnections } from '../../../access/connection-limits.ts';
import type { GrantState } from '../../../access/grant.ts';
import { checkPresent } from '../../../access/request.ts';
import { isGuarded } from '../../../config/enables.ts';
import type { Application } from '../../../core/application.ts';
import { sessionId } from '../../../core/session.ts';
import { kilnError } from '../../../errors.ts';
import type { RecentSet } from '../../../lib/recent-set.ts';
import { handedOn } from '../blocking-reload/directives.ts';
import type { Master, MasterRequest, PlayedViewers, Viewer } from '../answer/played-stream.ts';
import { Text } from '../answer/text.ts';
import type { SessionTerms, SessionTokens } from '../answer/token.ts';
import type { MasterTemplate } from '../master/master-template.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { silenceMs } from '../blocking-reload/wait.ts';
import type { HomeNodes } from '../sessions/home-nodes.ts';
import { Player, Players, toViewer } from '../sessions/players.ts';
import { SessionGrants, type HandedSession, type HlsSessionGrant } from '../sessions/session-grants.ts';
import { WatchingNodes } from '../sessions/watching-nodes.ts';
import type { PackagedStream } from './packaged-stream.ts';

const TICK_MS = 500;

export interface StreamViewersOptions {
  readonly form: HlsForm;
  readonly stream: PackagedStream;
  readonly application: Application;
  readonly tokens: SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: HomeNodes;
  /** Ids of openings that were closed on this node: their sessions are not resumed. */
  readonly endedOpenings: RecentSet<string>;
}

/** Viewers of one packaged stream: players that this node counts, players of other homes, and nodes that relay the stream. */
export class StreamViewers implements PlayedViewers {
  readonly #options: StreamViewersOptions;
  readonly #players: Players;
  readonly #watching: WatchingNodes;
  readonly #timer: NodeJS.Timeout;

  constructor(options: StreamViewersOptions) {
    const { form, stream, application, tokens, access, endedOpenings } = options;
    this.#options = options;
    this.#players = new Players({
      kind: form.kind,
      tokens,
      guarded: isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind }),
      grants: new SessionGrants(endedOpenings, (id) => this.#players.leave(id)),
      resume: (until, openings) => access.resume(until, openings),
      kicked: stream.kicked,
    });
    this.#players.onKick = () => stream.save();
    this.#watching = new WatchingNodes((viewers) => stream.output.addRelay({ byPlaylist: true, viewers }));
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.attach();
  }

  attach(): void {
    this.#players.attach(this.#options.stream.output);
  }

  /** Stops counting: the publisher has left, and may return. Sessions continue. */
  detach(): void {
    this.#players.detach();
    this.#watching.expire(Infinity);
  }

  /** Ends every player. Idempotent. @param reason for sessions that are not handed over */
  close(reason: string): void {
    clearInterval(this.#timer);
    this.detach();
    this.#players.close(reason);
  }

  handOver(): HandedSession[] {
    return this.#players.handOver(Date.now());
  }

  takeOver(sessions: readonly HandedSession[]): void {
    this.#players.takeOver(sessions, Date.now());
  }

  master(asked: MasterRequest): Master | undefined | Promise<Master | undefined> {
    const settled = asked.start === undefined ? undefined : this.#options.stream.settled();
    if (settled !== undefined) return asked.hold(() => settled).then(() => this.master(asked));
    return this.#master(asked) ?? this.#whenStarted(asked);
  }

  /** Master playlist for new viewers, as `PackagedStream.template`. @throws fileNotFound, tooManyConnections */
  template(file: string, start?: number): MasterTemplate | undefined {
    const { stream } = this.#options;
    const template = stream.template(file, start);
    if (template !== undefined && !stream.config.originMode) this.#limitConnections();
    return template;
  }

  /** Issues a token for a session. @throws playlistSessionRefused, sessionExists */
  issue(id: string, terms: SessionTerms): string {
    return this.#players.issue(id, this.#options.homes.readable(terms));
  }

  /**
   * Counts the player of a new token; undefined beyond the limit of remembered players.
   * @param grant ends with the session
   */
  begin(token: string, grant: HlsSessionGrant): Viewer | undefined {
    return toViewer(this.#players.begin(token, grant, Date.now()));
  }

  /** Counts, as `begin`, a player that another node has admitted. */
  beginAdopted(token: string, state: GrantState): Viewer | undefined {
    const grant = this.#options.access.adopt(state);
    try {
      return this.begin(token, grant);
    } catch (error) {
      grant.end((error as Error).message);
      throw error;
    }
  }

  admit(token: string): Viewer | undefined | Promise<Viewer | undefined> {
    const { homes } = this.#options;
    const home = this.#players.knows(token) ? 'self' : homes.of(token);
    if (typeof home === 'string') return this.admitHere(token);
    if (this.#players.keepsOut(home.session)) throw kilnError('playlistSessionRefused');
    return homes.admit(home, token);
  }

  /** Finds the player of a token that this node counts. @throws as `PlayedViewers.admit` */
  admitHere(token: string, seen = Date.now()): Viewer | undefined {
    if (!this.#players.knows(token)) this.#limitConnections();
    return toViewer(this.#players.admit(token, seen));
  }

  /** Notes that a node relays the stream. @param viewers behind that node, if it reports them */
  watchedBy(node: NodeIdentity, viewers?: number): void {
    const { interrupted, closed } = this.#options.stream;
    if (!interrupted && !closed) this.#watching.see(node, viewers);
  }

  get watching(): number {
    return this.#watching.size;
  }

  dismiss(node: NodeIdentity): void {
    this.#watching.dismiss(node);
  }

  get kicked(): Iterable<string> {
    return new Set([...this.#players.kicked, ...this.#options.stream.output.input.kicked.ids]);
  }

  hasKicked(token: string): boolean {
    return this.#players.hasKicked(token);
  }

  sent(bytes: number, viewer: Viewer | undefined, now = Date.now()): void {
    const { form, stream } = this.#options;
    const { counters } = stream.output;
    if (viewer === undefined || viewer instanceof Player) counters.sentTo(form.kind, bytes, now);
    // another node counts its own players
    else counters.viewing.sentForOthers += bytes;
    viewer?.sent(bytes, now);
  }

  sentElsewhere(bytes: number, viewer: Viewer | undefined, now: number): void {
    this.#options.stream.output.counters.viewing.sentByOthers += bytes;
    this.sent(bytes, viewer, now);
  }

  async #whenStarted(asked: MasterRequest): Promise<Master | undefined> {
    const { file, since, hold, signal } = asked;
    for (;;) {
      const outcome = await hold((onLeft) => this.#options.stream.whenStarted(file, onLeft, since));
      checkPresent(signal);
      const master = this.#master(asked);
      if (master !== undefined || outcome === 'overdue') return master;
    }
  }

  #master({ file, query, start, steering, plays, base, terms, grant }: MasterRequest): Master | undefined {
    const template = this.template(file, start)?.steered(steering);
    if (template === undefined) return undefined;
    if (this.#options.stream.config.originMode)
      return { text: new Text(template.fill(this.#route(terms), handedOn(query), base)), viewer: undefined };
    const params = new URLSearchParams(query);
    const home = this.#options.homes.forNew(params, terms);
    const token = this.issue(sessionId(params), { ...terms, home });
    const viewer = plays ? this.begin(token, grant) : undefined;
    return { text: new Text(template.fill(token, handedOn(query), base)), viewer };
  }

  #tick(): void {
    const { stream, homes } = this.#options;
    const now = Date.now();
    const before = now - silenceMs(stream.package.targetDuration);
    this.#players.expire(before, now);
    this.#players.leaveTo((home) => homes.isElsewhere(home));
    this.#watching.expire(before);
    homes.tick(performance.now());
  }

  /** Path element of children without sessions. */
  #route({ vhost }: SessionTerms): string | undefined {
    return vhost === undefined ? undefined : this.#options.tokens.route(vhost);
  }

  #limitConnections(): void {
    // players of an interrupted stream were admitted before
    const { form, stream, application } = this.#options;
    if (!stream.interrupted) limitConnections(application, form.kind);
  }
}
