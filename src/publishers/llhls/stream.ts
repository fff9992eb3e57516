import type { LlhlsPublisherConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Reader } from '../../core/reader.ts';
import { sessionId } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log.ts';
import { isSkippable, type ChunklistOptions, type RenditionReport } from '../../packaging/playlist.ts';
import { Segmenter } from '../../packaging/segmenter.ts';
import type { TrackPackager } from '../../packaging/track-packager.ts';
import type { FileAnswer, Hold, Media, OnLeft, PlayedStream, Viewer } from './answer.ts';
import { answerChunklist } from './chunklist.ts';
import { handedOn, type Directives } from './directives.ts';
import { Files, type Resource } from './files.ts';
import { nextOf, readKept, toKept } from './kept.ts';
import { buildMaster } from './master.ts';
import { MasterTemplate } from './master-template.ts';
import { childPrefix, defaultQuery, fileNames, nameHash, randomKey } from './names.ts';
import { ceiling, Rendition, type RenditionContext } from './rendition.ts';
import { Players } from './session.ts';
import { Text } from './text.ts';
import type { SessionTokens } from './token.ts';
import { renditionsOf, variants } from './variants.ts';
import type { Outcome, Waiters } from './waiters.ts';

const TICK_MS = 500;
/** Targets after which a request that waits is given up, and a silent player counts as gone. */
const PATIENCE_TARGETS = 3;
const MAX_PATIENCE_MS = 60_000;
/** How long a request waits for a publisher that may return: players give up a request that takes 10 seconds. */
const INTERRUPTED_MS = 5000;
/** Players that wait for a complete segment need not wait long when a stream starts. */
const FIRST_SEGMENT_SECONDS = 1;
const MAX_WAITING = 20_000;
/** Playlists wait so long for renditions that have just been told of: players load them but once. */
const ALL_STARTED_MS = 5000;

/** Of all streams, so that of two playlists of one name the later one has the greater. */
let editions = 0;

export interface LlhlsStreamOptions {
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: LlhlsPublisherConfig;
  readonly tokens: SessionTokens;
  readonly log: Logger;
}

/**
 * LL-HLS of one output stream: its files by name, its playlists, its players. When the publisher has gone it stays as it
 * is, until the stream is continued, or closed.
 */
export class LlhlsStream implements PlayedStream, RenditionContext {
  readonly application: Application;
  readonly config: LlhlsPublisherConfig;
  /** What tells its files from those of other streams of its name, that it does not continue. */
  readonly run: string;
  /** It continues another, of which nothing is here. */
  readonly continues: boolean;
  readonly #players: Players;
  readonly #segmenter: Segmenter;
  readonly #faults: FaultLog;
  readonly #timer: NodeJS.Timeout;
  readonly #streamKey: string;
  readonly #query: string;
  readonly #renditions = new Map<number, Rendition>();
  readonly #files = new Files();
  #output: OutputStream;
  #reader: Reader | undefined;
  /** The newest segment that was kept for who continues the stream. */
  #keptMsn = -1;
  #edition = ++editions;
  /** Milliseconds since the epoch until which playlists wait for renditions that have brought nothing. */
  #patientUntil = 0;
  /** When encoders that had rested were last asked to go on. */
  #wokenAt = 0;
  #interrupted = false;
  #closed = false;
  readonly #setTracks = (tracks: readonly Track[]) => this.#update(tracks);

  constructor({ output, application, config, tokens, log }: LlhlsStreamOptions) {
    this.application = application;
    this.config = config;
    this.#output = output;
    this.#faults = new FaultLog(log);
    const kept = keptBefore(output);
    const next = kept && nextOf(kept);
    this.run = kept?.run ?? randomKey();
    this.continues = kept !== undefined;
    this.#streamKey = config.originMode ? nameHash(output.name) : this.run;
    this.#players = new Players(tokens, kept?.kicked);
    this.#players.onKick = () => this.#keep();
    this.#query = defaultQuery(config);
    const { chunkDuration, segmentDuration, segmentCount } = config;
    const timed = config.serverTimeBasedSegmentNumbering ? Math.floor(Date.now() / (segmentDuration * 1000)) : 0;
    const firstSegmentDuration = Math.min(FIRST_SEGMENT_SECONDS, segmentDuration);
    this.#segmenter = new Segmenter(
      {
        chunkDuration, segmentDuration, firstSegmentDuration, segmentCount,
        firstMsn: Math.max(timed, next?.msn ?? 0), past: next?.past,
      },
      log,
      this.#faults,
    );
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.#attach(output);
  }

  get edition(): number {
    return this.#edition;
  }

  /** It has no publisher, and may get one again. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  /** Milliseconds that a request is held. */
  get patienceMs(): number {
    if (this.#interrupted) return INTERRUPTED_MS;
    return Math.min(PATIENCE_TARGETS * this.#segmenter.targetDuration * 1000, MAX_PATIENCE_MS);
  }

  /** Whether an output stream is the continuation of this one. */
  isContinuedBy(output: OutputStream): boolean {
    return this.#interrupted && !this.#closed && keptBefore(output)?.run === this.run;
  }

  /** The publisher has gone: who asks gets what is there. */
  interrupt(): void {
    if (this.#interrupted || this.#closed) return;
    this.#interrupted = true;
    this.#detach();
    this.#segmenter.finish();
    this.#keep(true);
    this.#players.detach();
    for (const { waiters } of this.#renditions.values()) waiters.limit(Date.now() + INTERRUPTED_MS);
  }

  /** The publisher is back: the playlists go on behind a discontinuity. */
  resume(output: OutputStream): void {
    this.#interrupted = false;
    this.#attach(output);
  }

  /** Ends every player and every wait. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#detach();
    this.#players.detach();
    this.#faults.close();
    // while it is interrupted players have reason to ask again, here or at another node
    for (const { waiters } of this.#renditions.values()) waiters.close(this.#interrupted ? 'overdue' : 'gone');
  }

  master(file: string, query: string): Text | undefined {
    const template = this.template(file);
    if (template === undefined) return undefined;
    const token = this.config.originMode ? undefined : this.issue(sessionId(new URLSearchParams(query)));
    return new Text(template.fill(token, handedOn(query)));
  }

  /**
   * A master playlist for whoever may come; undefined while there is nothing to play yet.
   * @throws fileNotFound, tooManyConnections
   */
  template(file: string): MasterTemplate | undefined {
    const playlist = this.#output.playlist(file);
    const state = playlist === undefined ? 'empty' : this.#state(playlist);
    if (playlist === undefined || state === 'empty') throw kilnError('fileNotFound');
    if (state === 'starting') return undefined;
    if (!this.config.originMode) this.#limitConnections();
    const prefix = childPrefix(playlist.options.hlsChunklistPathDepth, this.application.name, this.#output.name);
    const started = [...this.#renditions.values()].filter((rendition) => rendition.started);
    return new MasterTemplate(buildMaster(variants(playlist, started), {
      output: this.#output,
      targetDuration: this.#segmenter.targetDuration,
      uri: (rendition) => MasterTemplate.uri(prefix, rendition.names.chunklist()),
    }));
  }

  /** A token for a session. @throws playlistSessionRefused, sessionExists */
  issue(id: string): string {
    return this.#players.issue(id);
  }

  admit(token: string, now = Date.now()): Viewer | undefined {
    if (!this.#players.knows(token)) this.#limitConnections();
    const player = this.#players.admit(token, now);
    if (player === undefined) throw kilnError('playlistSessionRefused');
    return player === 'uncounted' ? undefined : player;
  }

  sent(bytes: number, viewer: Viewer | undefined, now = Date.now()): void {
    this.#output.counters.sent(bytes, now);
    viewer?.sent(bytes, now);
  }

  file(name: string, directives: Directives, hold: Hold): FileAnswer | Promise<FileAnswer> {
    const resource = this.#closed ? undefined : this.#files.get(name);
    if (resource === undefined) throw kilnError('fileNotFound');
    if (resource.kind === 'list') return answerChunklist(resource.rendition, directives, hold);
    if (resource.kind === 'hint') return this.#hinted(name, resource, hold);
    return resource;
  }

  /** The rendition of a chunklist's name. */
  rendition(name: string): Rendition | undefined {
    const resource = this.#closed ? undefined : this.#files.get(name);
    return resource?.kind === 'list' ? resource.rendition : undefined;
  }

  wait(waiters: Waiters, ready: () => boolean, onLeft: OnLeft): Promise<Outcome> {
    let waiting = 0;
    for (const rendition of this.#renditions.values()) waiting += rendition.waiters.size;
    if (waiting >= MAX_WAITING) throw kilnError('tooManyWaiting');
    return waiters.wait(ready, this.patienceMs, onLeft);
  }

  chunklistOptions(): Omit<ChunklistOptions, 'partTarget'> {
    const { chunkDuration, partHoldBack, segmentDuration, segmentCount, enablePreloadHint } = this.config;
    const { targetDuration, partTarget } = this.#segmenter;
    const target = ceiling(partTarget);
    const holdBack = partHoldBack ?? 3 * chunkDuration;
    return {
      targetDuration,
      partHoldBack: Math.max(holdBack, Math.max(2, Math.min(3, holdBack / chunkDuration)) * target),
      preloadHint: enablePreloadHint,
      skippable: isSkippable(segmentDuration * segmentCount, targetDuration),
    };
  }

  reports(except: Rendition): RenditionReport[] {
    const reports: RenditionReport[] = [];
    for (const rendition of this.#renditions.values()) {
      const report = rendition === except ? undefined : rendition.report();
      if (report !== undefined) reports.push(report);
    }
    return reports;
  }

  #attach(output: OutputStream): void {
    this.#output = output;
    this.#players.attach(output);
    this.#update(output.tracks);
    this.#keep();
    output.on('tracks', this.#setTracks);
    this.#reader = output.read({ packet: (packet) => this.#segmenter.push(packet) });
  }

  #detach(): void {
    this.#reader?.close();
    this.#output.off('tracks', this.#setTracks);
  }

  /** What who continues the stream has to know. */
  #keep(complete = false): void {
    const { progress } = this.#segmenter;
    if (progress.msn < 0) return;
    this.#keptMsn = progress.msn;
    const { name, input: { continuity } } = this.#output;
    continuity.keep(keyOf(name), toKept(this.run, progress, complete, this.#players.kicked));
  }

  #tick(): void {
    const now = Date.now();
    for (const { waiters } of this.#renditions.values()) waiters.expire(now);
    this.#players.expire(now - PATIENCE_TARGETS * this.#segmenter.targetDuration * 1000);
  }

  #limitConnections(): void {
    const { maxConnection } = this.config;
    // who plays what may be continued has been let in before
    if (maxConnection === 0 || this.#interrupted) return;
    if (this.application.counters.publishers.llhls >= maxConnection) throw kilnError('tooManyConnections', maxConnection);
  }

  /** A part that a preload hint told of: held until it exists, or the segment ended without it. */
  #hinted(name: string, { rendition }: Resource, hold: Hold): Promise<FileAnswer> {
    const decided = (): boolean => this.#files.get(name)?.kind !== 'hint';
    return hold((onLeft) => rendition.wait(decided, onLeft)).then((outcome) => {
      if (outcome === 'overdue') throw kilnError('playlistOverdue');
      const resource = outcome === 'ready' ? this.#files.get(name) : undefined;
      if (resource?.kind !== 'part') throw kilnError('fileNotFound');
      return resource as Media;
    });
  }

  /**
   * What somebody who asks for a playlist would play: nothing, not yet, or all of its tracks that come. Encoders that
   * rest are asked to go on, and waited for: players load playlists but once.
   */
  #state(playlist: Playlist): 'empty' | 'starting' | 'started' {
    if (this.#output.resting && !this.#interrupted) this.#wake();
    const renditions = renditionsOf(variants(playlist, [...this.#renditions.values()]));
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#patientUntil ? 'started' : 'starting';
  }

  #update(tracks: readonly Track[]): void {
    const added = this.#segmenter.setTracks(tracks);
    for (const [id, rendition] of this.#renditions) {
      if (this.#segmenter.packagers.get(id) !== rendition.packager) this.#drop(id, rendition);
    }
    for (const packager of added) this.#add(packager);
    if (added.length > 0) this.#patientUntil = Date.now() + ALL_STARTED_MS;
    this.#edition = ++editions;
  }

  #add(packager: TrackPackager): void {
    const { track, window } = packager;
    const rendition = new Rendition(packager, fileNames(track.id, track.type, this.#streamKey, this.#query), this);
    this.#renditions.set(track.id, rendition);
    this.#files.add(rendition);
    window.on('init', () => this.#keep());
    window.on('part', (_segment, { index }) => {
      rendition.newestAt = Date.now();
      if (index === 0 && this.#patientUntil > 0) this.#noteStart();
      this.#advance(rendition);
    });
    window.on('complete', ({ msn }) => {
      this.#advance(rendition);
      if (msn >= this.#keptMsn) this.#keep();
    });
  }

  #advance(rendition: Rendition): void {
    this.#edition = ++editions;
    rendition.advance();
  }

  #drop(id: number, rendition: Rendition): void {
    this.#renditions.delete(id);
    this.#files.drop(rendition);
    rendition.waiters.close();
  }

  #wake(): void {
    this.#wokenAt = Date.now();
    this.#patientUntil = this.#wokenAt + ALL_STARTED_MS;
    this.#output.emit('wanted');
  }

  /** What an encoder put out before it rested is old. */
  #isStarted({ started, newestAt }: Rendition): boolean {
    return started && newestAt >= this.#wokenAt;
  }

  #noteStart(): void {
    const all = [...this.#renditions.values()];
    const started = all.filter((rendition) => this.#isStarted(rendition));
    if (started.length === all.length) this.#patientUntil = 0;
    else if (started.length === 1 && started[0]?.packager.window.kept.length === 0) {
      this.#patientUntil = Date.now() + ALL_STARTED_MS;
    }
  }
}

/** What the stream that an output stream continues kept of its playlists. */
function keptBefore({ name, input: { continuity } }: OutputStream) {
  return readKept(continuity.inherited(keyOf(name)));
}

function keyOf(output: string): string {
  return `llhls ${output}`;
}
