import { checkPresent } from '../../../access/request.ts';
import { limitConnections } from '../../../access/connection-limits.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import { isGuarded } from '../../../config/enables.ts';
import type { GrantState } from '../../../access/grant.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import { delayed } from '../../../core/delayed-stream.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import type { Reader } from '../../../core/reader.ts';
import type { RecentSet } from '../../../lib/recent-set.ts';
import { sessionId } from '../../../core/session.ts';
import type { OutputStream, Stream } from '../../../core/stream.ts';
import { kilnError } from '../../../errors.ts';
import { FaultLog, type Logger } from '../../../log/log.ts';
import type {
  FileAnswer,
  Hold,
  Master,
  MasterRequest,
  Media,
  OnLeft,
  PlayedStream,
  Viewer,
} from '../answer/played-stream.ts';
import { answerChunklist } from '../package/chunklist.ts';
import { handedOn, type Directives } from '../answer/directives.ts';
import { StreamDumps } from '../dump/stream-dumps.ts';
import type { HlsForm } from '../package/hls-form.ts';
import {
  CONCLUDED,
  isWorthSaving,
  resumeFrom,
  readSavedState,
  toSavedState,
  type SavedPlaylistState,
} from './saved-state.ts';
import { MasterTemplate } from '../master/master-template.ts';
import { childPrefix, nameHash, randomKey } from '../answer/names.ts';
import type { Package, PackagedList, Resource } from '../package/package.ts';
import { silenceMs } from '../package/wait.ts';
import type { HomeNodes } from '../sessions/home-nodes.ts';
import { Player, Players, toViewer } from '../sessions/players.ts';
import { SessionGrants, type HandedSession, type SessionGrant } from '../sessions/session-grants.ts';
import { Text } from '../answer/text.ts';
import type { SessionTerms, SessionTokens } from '../answer/token.ts';
import type { Outcome } from '../package/waiters.ts';
import { WatchingNodes } from '../sessions/watching-nodes.ts';

const TICK_MS = 500;

export interface OwnStreamOptions {
  readonly form: HlsForm;
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  readonly tokens: SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: HomeNodes;
  readonly endedOpenings: RecentSet<string>;
  /** As in `PackageOptions`. */
  readonly partDelay?: Histogram;
  readonly log: Logger;
}

/**
 * HLS of one output stream of this node: files, playlists and players. When the publisher has left, it stays as it is until the
 * stream is continued or closed.
 */
export class OwnStream implements PlayedStream {
  readonly config: HlsPublisherConfig;
  /** Key that distinguishes its files from those of earlier streams of its name that it does not continue. */
  readonly run: string;
  readonly package: Package;
  readonly dumps: StreamDumps;
  readonly #options: OwnStreamOptions;
  readonly #players: Players;
  readonly #faults: FaultLog;
  readonly #timer: NodeJS.Timeout;
  #output: OutputStream;
  /** Stream that it reads. */
  #source: Stream;
  #reader: Reader | undefined;
  #kept: SavedPlaylistState | typeof CONCLUDED | undefined;
  #closed = false;
  readonly #watching = new WatchingNodes((viewers) => this.#output.addRelay({ byPlaylist: true, viewers }));
  readonly #update = (): void => this.package.update(this.#output);

  constructor(options: OwnStreamOptions) {
    const { form, output, application, config, tokens, access, endedOpenings, log } = options;
    this.#options = options;
    this.config = config;
    this.#output = output;
    this.#source = output;
    this.#faults = new FaultLog(log);
    const before = keptBefore(form, output);
    this.run = before?.run ?? randomKey();
    this.#players = new Players({
      kind: form.kind,
      tokens,
      guarded: isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind }),
      grants: new SessionGrants(endedOpenings),
      resume: (until, openings) => access.resume(until, openings),
      kicked: before?.kicked,
    });
    this.#players.onKick = () => this.#keep();
    this.package = form.package({
      application,
      streamKey: config.originMode ? nameHash(output.name) : this.run,
      next: before && resumeFrom(before, Date.now()),
      onProgress: () => this.#keep(),
      onStarted: () => application.vhost.registry.emit('packaged', this.#output, application, form.kind),
      log,
      faults: this.#faults,
      partDelay: options.partDelay,
    });
    this.dumps = new StreamDumps({
      package: this.package,
      application,
      config,
      output: () => this.#output,
      settled: () => this.settled(),
      log,
    });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.resume(output);
  }

  /** The publisher has left, and may return. */
  get interrupted(): boolean {
    return this.package.interrupted;
  }

  get closed(): boolean {
    return this.#closed;
  }

  isContinuedBy(output: OutputStream): boolean {
    return this.interrupted && keptBefore(this.#options.form, output)?.run === this.run;
  }

  /** Detaches from the publisher. Requests get the present playlists and media. */
  interrupt(): void {
    if (this.interrupted || this.#closed) return;
    this.#detach();
    this.package.interrupt();
    this.#keep(true);
  }

  /** Attaches to a publisher. After an interruption the playlists continue after a discontinuity. */
  resume(output: OutputStream): void {
    this.#output = output;
    this.#players.attach(output);
    this.package.update(output);
    this.#kept = undefined;
    this.#keep();
    this.#source = delayed(output, this.config.delayBufferTimeMs);
    this.#source.on('tracks', this.#update);
    this.#reader = this.#source.read({ packet: (packet) => this.package.push(packet) });
    void this.dumps.startConfigured();
  }

  /** As `Package.conclude`. The next publisher starts new playlists. */
  conclude(urgent: boolean): void {
    this.package.conclude(urgent);
  }

  /** Ends every player and every wait. Idempotent. @param reason for sessions that are not handed over */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#detach();
    this.#players.close(reason);
    this.#faults.close();
    this.package.queue.close();
    this.package.close();
  }

  /** Hands over the sessions to another node, without ending them. */
  handOver(): HandedSession[] {
    return this.#players.handOver(Date.now());
  }

  /** Takes over sessions of another node. */
  takeOver(sessions: readonly HandedSession[]): void {
    this.#players.takeOver(sessions, Date.now());
  }

  master(asked: MasterRequest): Master | undefined | Promise<Master | undefined> {
    return this.#master(asked) ?? this.#whenStarted(asked);
  }

  async #whenStarted(asked: MasterRequest): Promise<Master | undefined> {
    const { file, since, hold, signal } = asked;
    for (;;) {
      const outcome = await hold((onLeft) => this.whenStarted(file, onLeft, since));
      checkPresent(signal);
      const master = this.#master(asked);
      if (master !== undefined || outcome === 'overdue') return master;
    }
  }

  #master({ file, query, plays, base, terms, grant }: MasterRequest): Master | undefined {
    const template = this.template(file);
    if (template === undefined) return undefined;
    if (this.config.originMode)
      return { text: new Text(template.fill(this.#route(terms), handedOn(query), base)), viewer: undefined };
    const params = new URLSearchParams(query);
    const home = this.#options.homes.forNew(params, terms);
    const token = this.issue(sessionId(params), { ...terms, home });
    const viewer = plays ? this.begin(token, grant) : undefined;
    return { text: new Text(template.fill(token, handedOn(query), base)), viewer };
  }

  /**
   * Master playlist for any player; undefined while there is nothing to play yet. Resumes resting encoders and waits for them,
   * since players load master playlists only once.
   * @throws fileNotFound, tooManyConnections
   */
  template(file: string): MasterTemplate | undefined {
    const { name, resting } = this.#output;
    const playlist = this.#output.playlist(file);
    if (playlist === undefined) throw kilnError('fileNotFound');
    if (resting && !this.interrupted && !this.package.concluded) {
      this.package.readiness.wake();
      this.#output.emit('wanted');
    }
    const prefix = childPrefix(playlist.options.hlsChunklistPathDepth, this.#options.application.name, name);
    const text = this.package.master(playlist, this.#output, (child) => MasterTemplate.uri(prefix, child));
    if (text === undefined) return undefined;
    if (!this.config.originMode) this.#limitConnections();
    return new MasterTemplate(text);
  }

  /**
   * Waits for a master playlist that had nothing to play. Resolves when it may have; with `overdue` at the end of a hold, and
   * at once without a publisher.
   * @param since arrival of the request, in milliseconds since the epoch
   * @throws streamNotFound, streamInterrupted when the stream has closed; fileNotFound, tooManyWaiting
   */
  async whenStarted(file: string, onLeft: OnLeft, since: number): Promise<Outcome> {
    const playlist = this.#output.playlist(file);
    if (playlist === undefined) throw kilnError('fileNotFound');
    if (this.interrupted) return 'overdue';
    const outcome = await this.package.queue.waitForStart(this.package.readiness.waiters, playlist, onLeft, since);
    if (!this.#closed) return outcome;
    const { application } = this.#options;
    throw outcome === 'overdue'
      ? kilnError('streamInterrupted')
      : kilnError('streamNotFound', `${application.internalName}/${this.#output.name}`);
  }

  /** Issues a token for a session. @throws playlistSessionRefused, sessionExists */
  issue(id: string, terms: SessionTerms): string {
    return this.#players.issue(id, terms);
  }

  /**
   * Counts the player of a new token; undefined beyond the limit of remembered players.
   * @param grant ends with the session
   */
  begin(token: string, grant: SessionGrant): Viewer | undefined {
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

  /** Finds the player of a token that this node counts. @throws as `PlayedStream.admit` */
  admitHere(token: string, seen = Date.now()): Viewer | undefined {
    if (!this.#players.knows(token)) this.#limitConnections();
    return toViewer(this.#players.admit(token, seen));
  }

  /** Notes that a node relays the stream. @param viewers behind that node, if it reports them */
  watchedBy(node: NodeIdentity, viewers?: number): void {
    if (!this.interrupted && !this.#closed) this.#watching.see(node, viewers);
  }

  /** Number of nodes that relay it. */
  get watching(): number {
    return this.#watching.size;
  }

  /** Notes that a node was sent to another one for the stream. */
  dismiss(node: NodeIdentity): void {
    this.#watching.dismiss(node);
  }

  /** Ids of sessions that the server ended. */
  get kicked(): Iterable<string> {
    return new Set([...this.#players.kicked, ...this.#output.input.kicked.ids]);
  }

  /** Tests whether the server ended the session of a token, which stays rejected. */
  hasKicked(token: string): boolean {
    return this.#players.hasKicked(token);
  }

  sent(bytes: number, viewer: Viewer | undefined, now = Date.now()): void {
    const { counters } = this.#output;
    if (viewer === undefined || viewer instanceof Player) counters.sentTo(this.#options.form.kind, bytes, now);
    // another node counts its own players
    else counters.viewing.sentForOthers += bytes;
    viewer?.sent(bytes, now);
  }

  sentElsewhere(bytes: number, viewer: Viewer | undefined, now: number): void {
    this.#output.counters.viewing.sentByOthers += bytes;
    this.sent(bytes, viewer, now);
  }

  /**
   * Resolves within about a second, when the start of the stream is over; undefined after it. Until then media may arrive
   * faster than real time, so that its wall clock is not known.
   */
  settled(): Promise<void> | undefined {
    const ms = this.#output.input.arrival.settlesIn();
    return ms === 0 ? undefined : delay(ms).then(() => this.settled());
  }

  file(name: string, directives: Directives, hold: Hold, viewer?: Viewer): FileAnswer | Promise<FileAnswer> {
    const resource = this.#resource(name);
    if (resource === undefined) throw kilnError('fileNotFound');
    if (resource.kind === 'list') {
      const settled = this.settled();
      if (settled !== undefined) return hold(() => settled).then(() => this.file(name, directives, hold, viewer));
      return answerChunklist(resource.rendition, directives, hold, viewer);
    }
    if (resource.kind === 'hint') return this.#hinted(name, resource.rendition, hold);
    return resource.write?.()?.then(() => resource) ?? resource;
  }

  /** Finds a chunklist by name. */
  rendition(name: string): PackagedList | undefined {
    const resource = this.#resource(name);
    return resource?.kind === 'list' ? resource.rendition : undefined;
  }

  #resource(name: string): Resource | undefined {
    return this.#closed ? undefined : this.package.file(name);
  }

  /** Holds a request for a hinted part until it exists, or its segment ended without it. */
  #hinted(name: string, rendition: PackagedList, hold: Hold): Promise<Media> {
    const decided = (): boolean => this.#resource(name)?.kind !== 'hint';
    return hold((onLeft) => rendition.wait(decided, onLeft, { since: Date.now(), what: 'next' })).then((outcome) => {
      const resource = this.#resource(name);
      if (outcome === 'overdue' || resource?.kind === 'hint') throw kilnError('playlistOverdue');
      if (resource?.kind !== 'part') throw kilnError('fileNotFound');
      return resource;
    });
  }

  #detach(): void {
    this.#reader?.close();
    this.#source.off('tracks', this.#update);
    this.#players.detach();
    this.#watching.expire(Infinity);
  }

  /** Saves the state that a continuation of the stream needs. */
  #keep(complete = false): void {
    const {
      config: { segmentDuration },
      package: { progress, concluded },
    } = this;
    const kept = concluded
      ? CONCLUDED
      : toSavedState(this.run, progress, { complete, at: Date.now(), segmentDuration }, this.#players.kicked);
    if (kept === undefined || (this.#kept !== undefined && !isWorthSaving(kept, this.#kept))) return;
    this.#kept = kept;
    const {
      name,
      input: { continuity },
    } = this.#output;
    continuity.keep(keyOf(this.#options.form, name), kept);
  }

  #tick(): void {
    const now = Date.now();
    this.package.readiness.check();
    this.package.queue.expire(now);
    const before = now - silenceMs(this.package.targetDuration);
    const { homes } = this.#options;
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
    if (!this.interrupted) limitConnections(this.#options.application, this.#options.form.kind);
  }
}

/** State saved by the stream before, or by an earlier output of this stream. */
function keptBefore(form: HlsForm, { name, input: { continuity } }: OutputStream): SavedPlaylistState | undefined {
  const key = keyOf(form, name);
  return readSavedState(continuity.kept.get(key) ?? continuity.inherited(key));
}

function keyOf({ kind }: HlsForm, output: string): string {
  return `${kind} ${output}`;
}
