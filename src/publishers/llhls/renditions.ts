import type { LlhlsPublisherConfig } from '../../config/model.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { FaultLog, Logger } from '../../log.ts';
import { isSkippable, type ChunklistOptions, type RenditionReport } from '../../packaging/playlist.ts';
import { Segmenter, type Past, type Progress } from '../../packaging/segmenter.ts';
import type { TrackPackager } from '../../packaging/track-packager.ts';
import type { OnLeft } from './answer.ts';
import { Files } from './files.ts';
import { defaultQuery, fileNames } from './names.ts';
import { patienceMs } from './patience.ts';
import { ceiling, Rendition, type RenditionContext } from './rendition.ts';
import { Start } from './start.ts';
import { MAX_WAITING, type Outcome, type Waiters } from './waiters.ts';

/** Players that wait for a complete segment need not wait long when a stream starts. */
const FIRST_SEGMENT_SECONDS = 1;

/** Of all streams, so that of two playlists of one name the later one has the greater. */
let editions = 0;

/** What the renditions of a stream are made with. */
export interface RenditionsOptions {
  readonly config: LlhlsPublisherConfig;
  /** In the names of all files. */
  readonly streamKey: string;
  /** Where the stream goes on that this one continues. */
  readonly next: { readonly msn: number; readonly past: Past } | undefined;
  /** Called when there is something new to be kept for who continues the stream. */
  readonly onProgress: () => void;
  readonly log: Logger;
  readonly faults: FaultLog;
}

/** The renditions of a stream: packets become files by name, and whoever waits for one is told. */
export class Renditions implements RenditionContext {
  readonly files = new Files();
  readonly start = new Start();
  readonly continues: boolean;
  readonly #options: RenditionsOptions;
  readonly #query: string;
  readonly #segmenter: Segmenter;
  readonly #all = new Map<number, Rendition>();
  #edition = ++editions;
  #interrupted = false;

  constructor(options: RenditionsOptions) {
    const { config, next, log, faults } = options;
    this.#options = options;
    this.#query = defaultQuery(config);
    this.continues = next !== undefined;
    const { chunkDuration, segmentDuration, segmentCount } = config;
    const timed = config.serverTimeBasedSegmentNumbering ? Math.floor(Date.now() / (segmentDuration * 1000)) : 0;
    const firstSegmentDuration = Math.min(FIRST_SEGMENT_SECONDS, segmentDuration);
    const firstMsn = Math.max(timed, next?.msn ?? 0);
    this.#segmenter = new Segmenter(
      { chunkDuration, segmentDuration, firstSegmentDuration, segmentCount, firstMsn, past: next?.past }, log, faults,
    );
  }

  get edition(): number {
    return this.#edition;
  }

  /** The publisher has gone, and may return. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  get progress(): Progress {
    return this.#segmenter.progress;
  }

  /** Seconds. */
  get targetDuration(): number {
    return this.#segmenter.targetDuration;
  }

  all(): Rendition[] {
    return [...this.#all.values()];
  }

  push(packet: Packet): void {
    this.#segmenter.push(packet);
  }

  /** Tells which tracks there are. */
  update(tracks: readonly Track[]): void {
    this.#interrupted = false;
    const added = this.#segmenter.setTracks(tracks);
    for (const [id, rendition] of this.#all) {
      if (this.#segmenter.packagers.get(id) !== rendition.packager) this.#drop(id, rendition);
    }
    for (const packager of added) this.#add(packager);
    if (added.length > 0) this.start.expect();
    this.#edition = ++editions;
  }

  /** Nothing comes for now: what is there is complete, and nobody waits for long. */
  interrupt(): void {
    this.#interrupted = true;
    this.#segmenter.finish();
    for (const { waiters } of this.#all.values()) waiters.limit(Date.now() + patienceMs(this.targetDuration, true));
  }

  /** Gives up requests that have waited for long enough. @param now milliseconds since the epoch */
  expire(now: number): void {
    for (const { waiters } of this.#all.values()) waiters.expire(now);
  }

  /** Ends every wait. */
  close(): void {
    // while it is interrupted players have reason to ask again, here or at another node
    for (const { waiters } of this.#all.values()) waiters.close(this.#interrupted ? 'overdue' : 'gone');
  }

  wait(waiters: Waiters, ready: () => boolean, onLeft: OnLeft): Promise<Outcome> {
    let waiting = 0;
    for (const rendition of this.#all.values()) waiting += rendition.waiters.size;
    if (waiting >= MAX_WAITING) throw kilnError('tooManyWaiting');
    return waiters.wait(ready, patienceMs(this.targetDuration, this.#interrupted), onLeft);
  }

  chunklistOptions(): Omit<ChunklistOptions, 'partTarget'> {
    const { chunkDuration, partHoldBack, segmentDuration, segmentCount, enablePreloadHint } = this.#options.config;
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
    for (const rendition of this.#all.values()) {
      const report = rendition === except ? undefined : rendition.report();
      if (report !== undefined) reports.push(report);
    }
    return reports;
  }

  #add(packager: TrackPackager): void {
    const { track, window } = packager;
    const { streamKey, onProgress } = this.#options;
    const rendition = new Rendition(packager, fileNames(track.id, track.type, streamKey, this.#query), this);
    this.#all.set(track.id, rendition);
    this.files.add(rendition);
    window.on('init', onProgress);
    window.on('part', (_segment, { index }) => {
      rendition.newestAt = Date.now();
      if (index === 0) this.start.note(this.all());
      this.#advance(rendition);
    });
    window.on('complete', () => {
      this.#advance(rendition);
      onProgress();
    });
  }

  #advance(rendition: Rendition): void {
    this.#edition = ++editions;
    rendition.advance();
  }

  #drop(id: number, rendition: Rendition): void {
    this.#all.delete(id);
    this.files.drop(rendition);
    rendition.waiters.close();
  }
}
