import type { Origin } from '../containers/file-muxer.ts';
import type { GopCache } from '../core/gop-cache.ts';
import { LeadingPictures } from '../core/leading-pictures.ts';
import type { Packet } from '../core/packet.ts';
import type { Reader } from '../core/reader.ts';
import { MILLISECONDS, rescale } from '../core/timebase.ts';
import { isMedia, sameFormat, type SubtitleTrack, type Track } from '../core/track.ts';
import type { FaultLog, Logger } from '../log/log.ts';
import { asJson } from '../lib/as-json.ts';
import { TaskEnd, type StreamTask } from '../tasks/kind.ts';
import { randomId } from '../lib/random-id.ts';
import { selectTracks, type TrackSelection } from '../tasks/track-selection.ts';
import { Border } from './border.ts';
import { containerOf, type Container } from './container.ts';
import { ifItHangs } from '../core/disk-calls.ts';
import type { Disk } from '../core/disks.ts';
import { fileDate } from './file-date.ts';
import type { Journal } from './journal.ts';
import { RecordedFile, type Places } from './recorded-file.ts';
import { nextOf, parseSchedule, type Schedule } from './schedule.ts';
import type { RecordPaths } from './settings.ts';
import { readRecordProgress, type RecordProgress, type RecordReport, type RecordSpec } from './spec.ts';

export interface RecorderOptions {
  readonly task: StreamTask;
  readonly spec: RecordSpec;
  readonly paths: RecordPaths;
  /** Leaves out media that are shown while the publisher is away. */
  readonly skipsStandby?: boolean;
  /** Earlier packets of the stream to begin with. */
  readonly start: GopCache | undefined;
  readonly disk: Disk;
  readonly journal: Journal;
  readonly faults: FaultLog;
  readonly log: Logger;
}

const ID_LENGTH = 16;
/** Timers cannot be longer; the schedule is checked again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Limit of files of one recording that a slow disk has not completed yet. */
const MAX_ENDING = 32;
/** Limit of files of one recording that may still get late audio. */
const MAX_BORDERS = 8;

/** Records an output stream while it exists: files begin at key frames of its first track. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #container: Container;
  readonly #schedule: Schedule | undefined;
  readonly #transactionId = randomId(ID_LENGTH);
  readonly #progress: RecordProgress;
  readonly #over = Promise.withResolvers<void>();
  readonly #ending = new Set<Promise<void>>();
  #selection: TrackSelection = { tracks: [], warnings: [] };
  #subtitles: readonly SubtitleTrack[] = [];
  #leader: Track | undefined;
  #file: RecordedFile | undefined;
  /** Borders to earlier files, oldest first, until they are passed. */
  readonly #borders: Border[] = [];
  #reader: Reader | undefined;
  #leaves: readonly (() => void)[] = [];
  /** Detects frames shown before the key frame that the file begins with. */
  readonly #leading = new LeadingPictures();
  /** Whether the next key frame begins another file. */
  #isDue = false;
  #timer: NodeJS.Timeout | undefined;
  /** Origin of the first file, for those that continue its times. */
  #origin: Origin | undefined;
  #failure: Error | undefined;
  #startTime: number | undefined;
  #finished: (Places & { readonly sequence: number; readonly finishTime: number }) | undefined;

  constructor(options: RecorderOptions) {
    const { task, spec, paths } = options;
    this.#options = options;
    this.#container = containerOf(paths.file);
    this.#schedule = spec.schedule === undefined ? undefined : parseSchedule(spec.schedule);
    this.#progress = { ...readRecordProgress(task.progress) };
  }

  /** Resolves when the task or the stream has ended, and the last file is complete, or its disk does not answer. */
  async run(): Promise<void> {
    const { task, start } = this.#options;
    const { signal, output } = task;
    const onAbort = (): void => this.#over.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    output.on('tracks', this.#select);
    task.show(() => asJson(this.#report()));
    // keeps on-demand encoders and pulls running
    this.#leaves = [output.addRelay(), output.counters.viewer('file')];
    this.#select();
    this.#plan();
    const packet = (one: Packet): void => {
      try {
        this.#take(one);
      } catch (error) {
        this.#fail(error as Error);
      }
    };
    start?.replay(packet);
    this.#reader = output.read({ packet });
    if (!signal.aborted) await this.#over.promise;
    this.#reader.close();
    this.#leave();
    output.off('tracks', this.#select);
    clearTimeout(this.#timer);
    const isStopped = signal.aborted && signal.reason instanceof TaskEnd && signal.reason.reason === 'removed';
    this.#end(isStopped);
    await this.#options.disk.unlessHanging(() => Promise.all(this.#ending)).catch(ifItHangs);
    if (this.#ending.size > 0)
      this.#options.log.warn(
        { files: this.#ending.size },
        'the disk does not answer: the last files of the recording are finished when it does, or at the next start',
      );
    this.#keep();
    signal.removeEventListener('abort', onAbort);
  }

  #take(packet: Packet): void {
    if (this.#failure !== undefined) return;
    if (packet.track.type === 'subtitle') return this.#takeCue(packet);
    const { skipsStandby, task } = this.#options;
    if (skipsStandby === true && task.output.input.standby.has(packet)) return this.#end(false);
    const { track, key } = packet;
    const begins = key && track.id === this.#leader?.id;
    const before = this.#file;
    if (begins && (before === undefined || this.#mustSplit(before, packet))) this.#begin(packet);
    else if (this.#leading.waits && track.id === this.#leader?.id && this.#leading.drops(packet)) return;
    if (this.#borders.length > 0 && this.#isBehind(packet)) return;
    const file = this.#file;
    const known = file?.track(track.id);
    if (file === undefined || known === undefined) return;
    if (known !== track && this.#isOther(known, track)) {
      this.#isDue = true;
      this.#options.task.output.wantKey();
      return;
    }
    file.write(packet);
    if (file !== before) this.#repeatCues(file, packet);
    if (begins) this.#keep();
  }

  /** Writes a cue to the file of its time, and to an earlier one that still gets what is late. */
  #takeCue(packet: Packet): void {
    for (const { former } of this.#borders) former?.writeCue(packet);
    this.#file?.writeCue(packet);
  }

  /** Writes the cues that are shown when a file begins. */
  #repeatCues(file: RecordedFile, { pts, track: { timebase } }: Packet): void {
    const { shownCues } = this.#options.task.output;
    for (const { id } of this.#subtitles)
      for (const cue of shownCues.at(id, rescale(pts, timebase, MILLISECONDS))) file.writeCue(cue);
  }

  /** Whether a packet belongs to an earlier file, which gets it if it has the track. */
  #isBehind(packet: Packet): boolean {
    const border = this.#borders.find((one) => one.isBehind(packet));
    while (this.#borders[0]?.passed === true) this.#pass();
    const known = border?.former?.track(packet.track.id);
    if (known !== undefined && !this.#isOther(known, packet.track)) border?.former?.write(packet);
    return border !== undefined;
  }

  /** Completes the oldest open file before the current one. */
  #pass(): void {
    const former = this.#borders.shift()?.former;
    if (former !== undefined) this.#close(former, false);
  }

  #mustSplit(file: RecordedFile, { track, dts }: Packet): boolean {
    const { interval } = this.#options.spec;
    const known = file.track(track.id);
    if (this.#isDue || file.full || known === undefined || this.#isOther(known, track)) return true;
    return interval !== undefined && file.elapsed(dts) >= interval;
  }

  /** Whether a changed track cannot continue in the file. */
  #isOther(known: Track, track: Track): boolean {
    return !this.#container.followsChanges && !sameFormat(known, track);
  }

  /** @param first the key frame that the file begins with */
  #begin(first: Packet): void {
    const former = this.#file;
    this.#origin ??= former?.origin;
    if (this.#ending.size >= MAX_ENDING) throw new Error('the disk is too slow');
    const { task, spec, paths, disk, journal, faults, log } = this.#options;
    const { name, output } = task;
    this.#choose();
    const leader = this.#leader;
    if (leader === undefined) return;
    this.#isDue = false;
    this.#leading.begin(first);
    const { arrival } = output.input;
    const before = former && { startTime: former.startTime, length: former.elapsed(first.dts) };
    const startTime = (this.#startTime = fileDate(first, arrival, before, Date.now()));
    const file = new RecordedFile({
      container: this.#container,
      tracks: this.#selection.tracks,
      subtitles: this.#subtitles,
      leader,
      origin: spec.segmentationRule === 'continuity' ? this.#origin : undefined,
      disk,
      journal,
      entry: {
        ...paths,
        transactionId: this.#transactionId,
        id: name.id,
        ...(spec.metadata !== undefined && { metadata: spec.metadata }),
        vhost: name.vhost,
        app: name.app,
        stream: output.name,
        source: output.input.name,
        sequence: this.#progress.sequence,
        createdTime: spec.createdTime,
        startTime,
      },
      onFault: (fault) => faults.count(`not recorded: ${fault}`),
      onInfoFailure: (error) =>
        log.warn({ reason: error.message }, 'the info file of a recording could not be written'),
      onFailure: (error) => this.#fail(error),
    });
    this.#file = file;
    this.#progress.sequence += 1;
    this.#borders.push(new Border(first, this.#selection.tracks, former));
    while (this.#borders[0]?.passed === true || this.#borders.length > MAX_BORDERS) this.#pass();
    this.#keep();
  }

  /** Completes the current file, if any, in the background. */
  #end(isLast: boolean): void {
    while (this.#borders.length > 0) this.#pass();
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    this.#close(file, isLast);
  }

  #close(file: RecordedFile, isLast: boolean): void {
    const ending = this.#complete(file, isLast).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  async #complete(file: RecordedFile, isLast: boolean): Promise<void> {
    const { log } = this.#options;
    try {
      const ended = file.end(isLast);
      this.#origin ??= file.origin;
      this.#progress.totalBytes += file.bytes;
      this.#progress.totalTime += file.time;
      const finished = await ended;
      const { sequence, bytes, time } = file;
      if (sequence >= (this.#finished?.sequence ?? 0)) this.#finished = { ...finished, sequence };
      log.info({ event: 'record.finished', file: finished.file, sequence, bytes, ms: time }, 'the file is finished');
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#options.log.error({ event: 'record.failed', reason: error.message }, 'the recording has failed');
    this.#end(true);
    this.#leave();
    this.#progress.error = error.message;
    this.#progress.failed = this.#report();
    this.#keep();
  }

  #leave(): void {
    for (const leave of this.#leaves) leave();
    this.#leaves = [];
  }

  readonly #select = (): void => {
    const before = this.#selection.tracks;
    const wasLeader = this.#leader?.id;
    this.#choose();
    const [tracks, known] = [this.#selection.tracks, before].map((all) => all.filter(isMedia)) as [Track[], Track[]];
    const isSame =
      tracks.length === known.length &&
      tracks.every((track, index) => known[index]?.id === track.id && !this.#isOther(known[index], track));
    if (isSame) this.#file?.addEvents(this.#selection.tracks);
    if (isSame || this.#file === undefined) return;
    this.#isDue = true;
    // the leading track is gone: there is no key frame to wait for
    if (this.#leader?.id !== wasLeader) this.#end(false);
    this.#options.task.output.wantKey();
  };

  /** Selects the tracks to record. */
  #choose(): void {
    const { task, spec } = this.#options;
    const { tracks } = task.output;
    const selection = selectTracks(
      tracks,
      spec.stream,
      (track) => (track.type === 'subtitle' ? undefined : this.#container.objection(track)),
      this.#selection.tracks,
    );
    // all of them go with the media, unless some are named
    const named = selection.tracks.filter((track) => track.type === 'subtitle');
    this.#subtitles = named.length > 0 ? named : tracks.filter((track) => track.type === 'subtitle');
    this.#selection = { ...selection, tracks: selection.tracks.filter(({ type }) => type !== 'subtitle') };
    this.#leader =
      this.#selection.tracks.find(({ type }) => type === 'video') ??
      this.#selection.tracks.find(({ type }) => type === 'audio');
    if (this.#leader === undefined && tracks.length > 0) {
      const reasons = this.#selection.warnings.join('; ');
      this.#fail(new Error(`there is nothing to record${reasons === '' ? '' : `: ${reasons}`}`));
    }
  }

  /** Waits until the schedule asks for another file. */
  #plan(): void {
    if (this.#schedule === undefined) return;
    const now = Date.now();
    const next = nextOf(this.#schedule, now);
    this.#timer = setTimeout(
      () => {
        if (Date.now() >= next) {
          this.#isDue = true;
          this.#options.task.output.wantKey();
        }
        this.#plan();
      },
      Math.min(next - now, MAX_TIMER_MS),
    ).unref();
  }

  #keep(): void {
    this.#options.task.keep(asJson({ ...this.#progress, ...this.#totals }));
  }

  /** Totals of the complete files and the current one. */
  get #totals() {
    const open = [this.#file, ...this.#borders.map(({ former }) => former)].flatMap((file) => file ?? []);
    return {
      totalBytes: open.reduce((sum, { bytes }) => sum + bytes, this.#progress.totalBytes),
      totalTime: open.reduce((sum, { time }) => sum + time, this.#progress.totalTime),
    };
  }

  #report(): RecordReport {
    const { sequence } = this.#progress;
    const { totalBytes, totalTime } = this.#totals;
    const { bytes = 0, time = 0 } = this.#file ?? {};
    const { finishTime } = this.#finished ?? {};
    const { file, info } = this.#file?.places ?? this.#finished ?? {};
    return {
      state: this.#failure !== undefined ? 'error' : this.#file === undefined ? 'ready' : 'recording',
      warnings: [...this.#selection.warnings],
      ...(this.#failure !== undefined && { reason: this.#failure.message }),
      ...(file !== undefined && { outputFilePath: file }),
      ...(info !== undefined && { outputInfoPath: info }),
      recordBytes: bytes,
      recordTime: time,
      totalRecordBytes: totalBytes,
      totalRecordTime: totalTime,
      sequence: Math.max(0, sequence - 1),
      ...(this.#startTime !== undefined && { startTime: this.#startTime }),
      ...(this.#failure !== undefined && { finishTime: finishTime ?? Date.now() }),
    };
  }
}
