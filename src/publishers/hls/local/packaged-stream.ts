import { setTimeout as delay } from 'node:timers/promises';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import { byteCount } from '../../../config/values.ts';
import type { Application } from '../../../core/application.ts';
import { Disks } from '../../../core/disks.ts';
import { delayed } from '../../../core/delayed-stream.ts';
import type { Histogram } from '../../../lib/histogram.ts';
import type { Reader } from '../../../core/reader.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import type { Stream } from '../../../core/stream.ts';
import { kilnError } from '../../../errors.ts';
import { FaultLog, type Logger } from '../../../log/log.ts';
import type { Directives, FileAnswer, Hold, Media, OnLeft, PlayedFiles, Viewer } from '../answer/played-stream.ts';
import { answerChunklist } from '../blocking-reload/chunklist.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { CONCLUDED, isWorthSaving, resumeFrom, toSavedState, type SavedPlaylistState } from './saved-state.ts';
import { KeyRotation } from './key-rotation.ts';
import type { KeySource } from './key-source.ts';
import { keptKey, keptState } from './saved-before.ts';
import { spliceInterstitials } from '../package/splice-interstitials.ts';
import { MasterTemplate } from '../master/master-template.ts';
import type { Text } from '../answer/text.ts';
import { childPrefix, defaultQuery, nameHash, randomKey } from '../answer/names.ts';
import { Rewind } from '../rewind/rewind.ts';
import type { Elsewhere } from '../rewind/elsewhere.ts';
import type { FollowedSegment } from '../answer/segment-followers.ts';
import { secondsToEnd } from '../rewind/start-offset.ts';
import { listOfIFrames, type Shelf } from '../rewind/shelf.ts';
import type { StreamFolder } from '../rewind/stream-folder.ts';
import type { KeyCounts, PastCounts } from '../answer/counts.ts';
import type { MediaCache } from '../answer/media-cache.ts';
import type { Package, PackagedList, Resource } from '../package/package.ts';
import type { Outcome } from '../blocking-reload/waiters.ts';
import { MAX_KICKED } from '../sessions/players.ts';

const TICK_MS = 500;
/** Time for which a segment that was read from a disk stays in memory. */
const PAST_IDLE_MS = 30_000;
/** Space that stays free on the disk of DVR, unless MinFreeSpace says otherwise. */
const LEAST_FREE = '1G';

/** Memory that waits for the disks of all streams. */
const disks = new Disks();

export interface PastOptions {
  /** TempStoragePath: streams with the same one share a disk. */
  readonly root: string;
  readonly folder: StreamFolder;
  /** For segments that are read from disks. */
  readonly cache: MediaCache;
  readonly counts: PastCounts;
  /** Finds segments of a run on other nodes. */
  readonly elsewhere: (run: string) => Promise<readonly Elsewhere[]>;
}

/** Encryption of a stream. */
export interface StreamDrm {
  readonly source: KeySource;
  /** Seconds between two rotations; 0: keys rotate on request only. */
  readonly period: number;
}

export interface PackagedStreamOptions {
  readonly form: HlsForm;
  readonly output: OutputStream;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  readonly partDelay?: Histogram;
  /** State of the stream that this one continues. */
  readonly before?: SavedPlaylistState | undefined;
  /** undefined where players do not rewind. */
  readonly past?: PastOptions | undefined;
  /** Encryption of the stream; undefined for a stream in clear. */
  readonly drm?: StreamDrm | undefined;
  readonly keyCounts: KeyCounts;
  readonly log: Logger;
}

/**
 * One output stream of this node, packaged: its reader, its playlists and media, and the state that is saved for the stream that
 * continues it. When the publisher has left, it stays as it is until the stream is continued or closed.
 */
export class PackagedStream implements PlayedFiles {
  readonly config: HlsPublisherConfig;
  /** Key that distinguishes its files from those of earlier streams of its name that it does not continue. */
  readonly run: string;
  readonly package: Package;
  /** Ids of sessions that the server ended, which are saved too. */
  readonly kicked: RecentSet<string>;
  readonly #options: PackagedStreamOptions;
  readonly #rewind: Rewind | undefined;
  /** undefined for a stream in clear. */
  readonly #rotation: KeyRotation | undefined;
  readonly #faults: FaultLog;
  readonly #timer: NodeJS.Timeout;
  #output: OutputStream;
  #source: Stream;
  #reader: Reader | undefined;
  #saved: SavedPlaylistState | typeof CONCLUDED | undefined;
  #closed = false;
  readonly #update = (): void => this.package.update(this.#output);

  constructor(options: PackagedStreamOptions) {
    const { form, output, application, config, log } = options;
    this.#options = options;
    this.config = config;
    this.#output = output;
    this.#source = output;
    this.#faults = new FaultLog(log);
    const { before } = options;
    this.run = before?.run ?? randomKey();
    this.kicked = new RecentSet(MAX_KICKED, before?.kicked);
    this.#rewind = this.#openRewind();
    const { drm, keyCounts: counts } = options;
    this.#rotation = drm && new KeyRotation({ ...drm, counts, log }, before?.key, Date.now());
    this.package = form.package({
      application,
      streamKey: config.originMode ? nameHash(output.name) : this.run,
      next: before && resumeFrom(before, Date.now()),
      rewind: this.#rewind,
      keys: this.#rotation?.schedule,
      breaks: {
        interstitialFor: spliceInterstitials(
          config.interstitials,
          { vhost: application.vhost.name, app: application.name, stream: output.name },
          () =>
            this.#faults.count('HLS: the interstitial of a splice is left out: the URL of its asset list is too long'),
        ),
        wasListed: (id) => this.#rewind?.hasDateRange(id) === true,
      },
      onProgress: () => this.save(),
      onStarted: () => application.vhost.registry.emit('packaged', this.#output, application, form.kind),
      log,
      faults: this.#faults,
      partDelay: options.partDelay,
    });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.resume(output);
  }

  /** Present output stream, which changes when the stream is continued. */
  get output(): OutputStream {
    return this.#output;
  }

  get interrupted(): boolean {
    return this.package.interrupted;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get ended(): boolean {
    return this.#closed;
  }

  isContinuedBy(output: OutputStream): boolean {
    return this.interrupted && keptState(this.#options.form, output)?.run === this.run;
  }

  /** Detaches from the publisher. Requests get the present playlists and media. */
  interrupt(): void {
    if (this.interrupted || this.#closed) return;
    this.#detach();
    this.package.interrupt();
    this.save(true);
  }

  /** Attaches to a publisher. After an interruption the playlists continue after a discontinuity. */
  resume(output: OutputStream): void {
    this.#output = output;
    this.package.update(output);
    if (this.#rewind !== undefined) this.package.follow(this.#rewind);
    this.#saved = undefined;
    this.save();
    this.#source = delayed(output, this.config.delayBufferTimeMs);
    this.#source.on('tracks', this.#update);
    this.#reader = this.#source.read({ packet: (packet) => this.package.push(packet) });
  }

  /** As `Package.conclude`. The next publisher starts new playlists. */
  conclude(urgent: boolean): void {
    this.package.conclude(urgent);
  }

  /** Whether it is encrypted. */
  get encrypted(): boolean {
    return this.#rotation !== undefined;
  }

  /** Encrypts segments with the next key, from the first on that no playlist has announced. @throws keyNotRotated */
  rotateKey(): void {
    this.#rotation?.rotate(this.package.unannounced);
    this.save();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rotation?.close();
    clearInterval(this.#timer);
    this.#detach();
    this.#faults.close();
    this.package.queue.close();
    this.package.close();
  }

  /** Resolves when all that players may rewind to is on the disk, of a stream that was closed, or as soon as that does not answer. */
  async written(): Promise<void> {
    await this.#rewind?.close();
  }

  /**
   * Master playlist for any player; undefined while there is nothing to play yet. Resumes resting encoders and waits for them,
   * since players load master playlists only once.
   * @param start time at which the player starts, in milliseconds since the epoch; undefined for the live edge
   * @throws fileNotFound
   */
  template(file: string, start?: number): MasterTemplate | undefined {
    const { name, resting } = this.#output;
    const playlist = this.#output.playlist(file);
    if (playlist === undefined) throw kilnError('fileNotFound');
    if (resting && !this.interrupted && !this.package.concluded) {
      this.package.readiness.wake();
      this.#output.emit('wanted');
    }
    const prefix = childPrefix(playlist.options.hlsChunklistPathDepth, this.#options.application.name, name);
    let leading: string | undefined;
    const text = this.package.master(playlist, this.#output, (child) => {
      leading ??= child;
      return MasterTemplate.uri(prefix, child);
    });
    if (text === undefined) return undefined;
    const template = new MasterTemplate(text);
    const seconds = start === undefined || leading === undefined ? undefined : this.#secondsToEnd(leading, start);
    return seconds === undefined ? template : template.startingBefore(seconds);
  }

  /** As `secondsToEnd`. @param uri of a media playlist */
  #secondsToEnd(uri: string, time: number): number | undefined {
    const name = uri.replace(/\?.*$/, '');
    const present = this.rendition(name)?.text('full', false);
    return present && secondsToEnd(present.plain.toString(), this.past(name)?.past, time);
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

  /**
   * Resolves within about a second, when the start of the stream is over, and its past is known; undefined after it. Until then media may arrive
   * faster than real time, so that its wall clock is not known.
   */
  settled(): Promise<void> | undefined {
    const loading = this.#rewind?.loading;
    if (loading !== undefined) return loading.then(() => this.settled());
    const ms = this.#output.input.arrival.settlesIn();
    return ms === 0 ? undefined : delay(ms).then(() => this.settled());
  }

  file(name: string, directives: Directives, hold: Hold, viewer?: Viewer): FileAnswer | Promise<FileAnswer> {
    const list = listOfIFrames(name);
    if (list !== undefined) return this.#iFrames(list, hold);
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

  /** Reads what players can rewind to, by `Rewind.segments`; undefined where they cannot. */
  pastSegments(): AsyncIterable<FollowedSegment> | undefined {
    return this.#rewind?.segments();
  }

  /** Answers with the playlist of I-frames of a media playlist, once a segment is complete. @throws as `file` */
  async #iFrames(list: string, hold: Hold): Promise<FileAnswer> {
    const settled = this.settled();
    if (settled !== undefined) await hold(() => settled);
    const rendition = this.rendition(list);
    if (rendition === undefined || this.#rewind === undefined) throw kilnError('fileNotFound');
    const find = (): Text | undefined => this.#rewind?.iFrames(list, this.package.concluded);
    const isThere = (): boolean => find() !== undefined;
    if (!isThere()) await hold((onLeft) => rendition.wait(isThere, onLeft, { since: Date.now(), what: 'next' }));
    const text = find();
    if (text === undefined) throw kilnError('fileNotFound');
    return { kind: 'chunklist', text, asNamed: false };
  }

  /** Past of a media playlist in which players rewind; undefined where there is none. */
  past(list: string): Shelf | undefined {
    return this.#rewind?.shelf(list);
  }

  /** Seconds of the longest segment that players rewind to. */
  get longestPast(): number {
    return this.#rewind?.longest ?? 0;
  }

  rendition(name: string): PackagedList | undefined {
    const resource = this.#resource(name);
    return resource?.kind === 'list' ? resource.rendition : undefined;
  }

  #resource(name: string): Resource | undefined {
    return this.#closed ? undefined : (this.package.file(name) ?? this.#rewind?.media(name));
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

  /** Saves the state that a continuation of the stream needs. @param complete nothing comes after it */
  save(complete = false): void {
    const {
      config: { segmentDuration },
      package: { progress, concluded },
    } = this;
    const key = this.#rotation?.state;
    const state = concluded
      ? CONCLUDED
      : toSavedState(
          this.run,
          progress,
          { ...(key && { key }), complete, at: Date.now(), segmentDuration },
          this.kicked,
        );
    if (state === undefined || (this.#saved !== undefined && !isWorthSaving(state, this.#saved))) return;
    this.#saved = state;
    const {
      name,
      input: { continuity },
    } = this.#output;
    continuity.keep(keptKey(this.#options.form, name), state);
    this.#store(state);
  }

  /** The stream was ended on purpose: the next publisher does not continue it. */
  forgetState(): void {
    this.#store(CONCLUDED);
  }

  #store(state: SavedPlaylistState | typeof CONCLUDED): void {
    const { past } = this.#options;
    if (past !== undefined) this.#rewind?.afterWrites(() => past.folder.writeState(state));
  }

  #openRewind(): Rewind | undefined {
    const { config, past, log } = this.#options;
    const { dvr } = config;
    if (past === undefined || dvr === undefined) return undefined;
    return new Rewind({
      disk: disks.open(past.root),
      files: past.folder.run(this.run),
      maxSeconds: dvr.maxDuration,
      event: this.#options.form.inTs && dvr.eventPlaylistType,
      minFree: byteCount(dvr.minFreeSpace ?? LEAST_FREE),
      query: defaultQuery(config),
      cache: past.cache,
      counts: past.counts,
      elsewhere: () => past.elsewhere(this.run),
      onFull: () => this.conclude(true),
      onClose: () => past.folder.close(),
      log,
      faults: this.#faults,
    });
  }

  #detach(): void {
    this.#reader?.close();
    this.#source.off('tracks', this.#update);
  }

  #tick(): void {
    if (!this.interrupted && !this.package.concluded && this.#rotation?.tick(Date.now(), this.package.unannounced))
      this.save();
    this.package.readiness.check();
    this.package.queue.expire(Date.now());
    this.#options.past?.cache.expire(performance.now() - PAST_IDLE_MS);
  }
}
