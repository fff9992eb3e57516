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
import type { FileAnswer, Hold, Master, MasterRequest, Media, OnLeft, PlayedStream, Viewer } from '../answer/answer.ts';
import { answerChunklist } from '../package/chunklist.ts';
import { handedOn, type Directives } from '../answer/directives.ts';
import { StreamDumps } from '../dump/stream-dumps.ts';
import type { HlsForm } from '../package/form.ts';
import { CONCLUDED, isNews, nextOf, readKept, toKept, type Kept } from './kept.ts';
import { MasterTemplate } from '../master/master-template.ts';
import { childPrefix, nameHash, randomKey } from '../answer/names.ts';
import type { Package, PackagedList, Resource } from '../package/package.ts';
import { silenceMs } from '../package/wait.ts';
import type { Homes } from '../sessions/homes.ts';
import { Player, Players, toViewer } from '../sessions/players.ts';
import { SessionGrants, type HandedSession, type SessionGrant } from '../sessions/session-grants.ts';
import { Text } from '../answer/text.ts';
import type { SessionTerms, SessionTokens } from '../answer/token.ts';
import type { Outcome } from '../package/waiters.ts';
import { WatchingNodes } from '../sessions/watching-nodes.ts';

const TICK_MS = 500;

/** What a stream of this node is served with. */
export interface OwnStreamOptions {
  readonly form: HlsForm;
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  readonly tokens: SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: Homes;
  /** Ids of openings that were closed on this node. */
  readonly endedOpenings: RecentSet<string>;
  /** As of PackageOptions. */
  readonly partDelay?: Histogram;
  readonly log: Logger;
}

/**
 * HLS of one output stream: its files by name, its playlists, its players. When the publisher has gone it stays as it
 * is, until the stream is continued, or closed.
 */
export class OwnStream implements PlayedStream {
  readonly config: HlsPublisherConfig;
  /** What tells its files from those of other streams of its name, that it does not continue. */
  readonly run: string;
  readonly package: Package;
  readonly dumps: StreamDumps;
  readonly #options: OwnStreamOptions;
  readonly #players: Players;
  readonly #faults: FaultLog;
  readonly #timer: NodeJS.Timeout;
  #output: OutputStream;
  /** What it reads. */
  #source: Stream;
  #reader: Reader | undefined;
  #kept: Kept | typeof CONCLUDED | undefined;
  #closed = false;
  readonly #watching = new WatchingNodes((viewers) =>
    this.#output.addRelay({ kind: this.#options.form.kind, viewers }),
  );
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
      next: before && nextOf(before, Date.now()),
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

  /** It has no publisher, and may get one again. */
  get interrupted(): boolean {
    return this.package.interrupted;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether an output stream is the continuation of this one. */
  isContinuedBy(output: OutputStream): boolean {
    return this.interrupted && keptBefore(this.#options.form, output)?.run === this.run;
  }

  /** The publisher has gone: who asks gets what is there. */
  interrupt(): void {
    if (this.interrupted || this.#closed) return;
    this.#detach();
    this.package.interrupt();
    this.#keep(true);
  }

  /** There is a publisher: after an interruption the playlists go on behind a discontinuity. */
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

  /** As `Package.conclude`. The next publisher of this name starts new playlists. */
  conclude(urgent: boolean): void {
    this.package.conclude(urgent);
  }

  /** Ends every player and every wait. Idempotent. @param reason why sessions end that are not handed over */
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

  /** Sessions that another node goes on with; nothing of them ends here. */
  handOver(): HandedSession[] {
    return this.#players.handOver(Date.now());
  }

  /** Goes on with sessions that another node had. */
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
   * A master playlist for whoever may come; undefined while there is nothing to play yet. Encoders that rest are asked to
   * go on, and waited for: players load playlists but once.
   * @throws fileNotFound, tooManyConnections
   */
  template(file: string): MasterTemplate | undefined {
    const { name, resting } = this.#output;
    const playlist = this.#output.playlist(file);
    if (playlist === undefined) throw kilnError('fileNotFound');
    if (resting && !this.interrupted && !this.package.concluded) {
      this.package.start.wake();
      this.#output.emit('wanted');
    }
    const prefix = childPrefix(playlist.options.hlsChunklistPathDepth, this.#options.application.name, name);
    const text = this.package.master(playlist, this.#output, (child) => MasterTemplate.uri(prefix, child));
    if (text === undefined) return undefined;
    if (!this.config.originMode) this.#limitConnections();
    return new MasterTemplate(text);
  }

  /**
   * Resolves when there may be a master playlist of which there was nothing; `overdue` when that was waited for as long as a
   * request is held, and at once where no publisher brings it.
   * @param since when the request came, in milliseconds since the epoch
   * @throws streamNotFound, streamInterrupted when the stream has closed; fileNotFound, tooManyWaiting
   */
  async whenStarted(file: string, onLeft: OnLeft, since: number): Promise<Outcome> {
    const playlist = this.#output.playlist(file);
    if (playlist === undefined) throw kilnError('fileNotFound');
    if (this.interrupted) return 'overdue';
    const outcome = await this.package.queue.waitForStart(this.package.start.waiters, playlist, onLeft, since);
    if (!this.#closed) return outcome;
    const { application } = this.#options;
    throw outcome === 'overdue'
      ? kilnError('streamInterrupted')
      : kilnError('streamNotFound', `${application.internalName}/${this.#output.name}`);
  }

  /** A token for a session. @throws playlistSessionRefused, sessionExists */
  issue(id: string, terms: SessionTerms): string {
    return this.#players.issue(id, terms);
  }

  /**
   * Counts the player that a token has just been issued to; undefined beyond the limit of what is remembered.
   * @param grant ends with the session
   */
  begin(token: string, grant: SessionGrant): Viewer | undefined {
    return toViewer(this.#players.begin(token, grant, Date.now()));
  }

  /** The same of one that another node has admitted. */
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

  /** The same of a player that this node counts. */
  admitHere(token: string, seen = Date.now()): Viewer | undefined {
    if (!this.#players.knows(token)) this.#limitConnections();
    return toViewer(this.#players.admit(token, seen));
  }

  /** A node asks for what its players watch. @param viewers of its own, where it tells them */
  watchedBy(node: NodeIdentity, viewers?: number): void {
    if (!this.interrupted && !this.#closed) this.#watching.see(node, viewers);
  }

  /** How many nodes ask for it. */
  get watching(): number {
    return this.#watching.size;
  }

  /** A node is told to ask another one. */
  dismiss(node: NodeIdentity): void {
    this.#watching.dismiss(node);
  }

  /** Ids of sessions that were ended by the server. */
  get kicked(): Iterable<string> {
    return new Set([...this.#players.kicked, ...this.#output.input.kicked.ids]);
  }

  /** Whether the player of a token was thrown out: it does not come in again. */
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
   * Resolves when the start of the stream is over, within about a second; undefined when it is. Until then more may arrive
   * than its time has come for, and nobody can tell when its media was made.
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

  /** The rendition of a chunklist's name. */
  rendition(name: string): PackagedList | undefined {
    const resource = this.#resource(name);
    return resource?.kind === 'list' ? resource.rendition : undefined;
  }

  #resource(name: string): Resource | undefined {
    return this.#closed ? undefined : this.package.file(name);
  }

  /** A part that a preload hint told of: held until it exists, or the segment ended without it. */
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

  /** Tells what who continues the stream has to know; of segments, when one has begun. */
  #keep(complete = false): void {
    const {
      config: { segmentDuration },
      package: { progress, concluded },
    } = this;
    const kept = concluded
      ? CONCLUDED
      : toKept(this.run, progress, { complete, at: Date.now(), segmentDuration }, this.#players.kicked);
    if (kept === undefined || (this.#kept !== undefined && !isNews(kept, this.#kept))) return;
    this.#kept = kept;
    const {
      name,
      input: { continuity },
    } = this.#output;
    continuity.keep(keyOf(this.#options.form, name), kept);
  }

  #tick(): void {
    const now = Date.now();
    this.package.start.check();
    this.package.queue.expire(now);
    const before = now - silenceMs(this.package.targetDuration);
    const { homes } = this.#options;
    this.#players.expire(before, now);
    this.#players.leaveTo((home) => homes.isElsewhere(home));
    this.#watching.expire(before);
    homes.tick(performance.now());
  }

  /** The path element of children where there are no sessions. */
  #route({ vhost }: SessionTerms): string | undefined {
    return vhost === undefined ? undefined : this.#options.tokens.route(vhost);
  }

  #limitConnections(): void {
    // who plays what may be continued has been let in before
    if (!this.interrupted) limitConnections(this.#options.application, this.#options.form.kind);
  }
}

/** What was kept of the playlists that an output stream continues: of the stream before, or of an earlier output of its own. */
function keptBefore(form: HlsForm, { name, input: { continuity } }: OutputStream): Kept | undefined {
  const key = keyOf(form, name);
  return readKept(continuity.kept.get(key) ?? continuity.inherited(key));
}

function keyOf({ kind }: HlsForm, output: string): string {
  return `${kind} ${output}`;
}
