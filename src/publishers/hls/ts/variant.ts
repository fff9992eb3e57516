import { WholeMilliseconds } from '../../../packaging/listed-duration.ts';
import { TsMuxer } from '../../../containers/mpegts/muxer.ts';
import type { MediaTrack } from '../../../core/track.ts';
import type { FaultLog } from '../../../log/log.ts';
import type { Breaks } from '../../../packaging/breaks.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { FrameRun } from '../../../packaging/frame-run.ts';
import type { Segment } from '../../../packaging/segment.ts';
import { LEAST_TARGETS } from '../../../packaging/segmenter.ts';
import type { TrackPackager } from '../../../packaging/track-packager.ts';
import { discontinuitiesBetween, losesOldest } from '../../../packaging/window.ts';
import { TsSegment } from '../../../packaging/ts-segment.ts';
import type { Media } from '../answer/played-stream.ts';
import type { FollowedList, FollowedSegment } from '../answer/segment-followers.ts';
import type { Rewind } from '../rewind/rewind.ts';
import { PlayableList, type ListContext } from '../package/playable-list.ts';
import type { Startable } from '../package/readiness.ts';
import { Text } from '../answer/text.ts';
import { buildMediaList } from './media-list.ts';
import { listName, segmentName } from './names.ts';

/** Segments kept after they have left the playlist, for late players (RFC 8216 6.2.2). */
const GRACE_SEGMENTS = 2;
/** By which segments of audio alone, which end at its frames, may be shorter: all variants have as many segments. */
const SHORT_SECONDS = 0.05;

/** State shared by the variants of a stream. */
export interface VariantContext extends ListContext {
  readonly concluded: boolean;
  /** Complete segments in a playlist; more where they are short. */
  readonly segmentCount: number;
  /** Query of every file name, with its `?`; empty for none. */
  readonly query: string;
  readonly faults: FaultLog;
  readonly rewind: Rewind | undefined;
  completed(variant: Variant, segment: TsSegment): void;
  readonly breaks: Breaks;
}

/** One video with one audio, or one of them alone, in MPEG-TS: its media playlist and segments. */
export class Variant extends PlayableList<VariantContext> implements Startable, FollowedList<TsSegment> {
  readonly id: string;
  /** Video first. */
  readonly packagers: readonly TrackPackager<FrameRun>[];
  newestAt = 0;
  readonly #muxer: TsMuxer;
  readonly #durations = new WholeMilliseconds();
  readonly #segments: TsSegment[] = [];
  #listedFrom = 0;
  #discontinuities = 0;
  /** Number of the last gap that was skipped, since no media came before it. */
  #skipped = -1;
  #text: Text | undefined;
  /** With the past. */
  #longText: Text | undefined;

  /** @param id unique part of its file names */
  constructor(id: string, packagers: readonly TrackPackager<FrameRun>[], context: VariantContext) {
    super(context);
    this.id = id;
    this.packagers = packagers;
    this.#muxer = new TsMuxer(this.tracks);
  }

  get tracks(): readonly MediaTrack[] {
    return this.packagers.map(({ track }) => track);
  }

  get started(): boolean {
    return this.#segments.length > 0;
  }

  /** Segments, listed or not, oldest first. */
  get kept(): readonly TsSegment[] {
    return this.#segments;
  }

  get fresh(): boolean {
    return this.#segments.length === 1;
  }

  /** Segments of the playlist, oldest first. */
  get listed(): readonly TsSegment[] {
    return this.#segments.slice(this.#listedFrom);
  }

  /** URI of its media playlist for master playlists. */
  get uri(): string {
    return `${listName(this.id)}${this.context.query}`;
  }

  /** Finds a segment of the playlist, or one that has just left it. */
  segment(msn: number): Media | undefined {
    const first = this.#segments[0]?.msn ?? 0;
    const segment = this.#segments[msn - first];
    return segment === undefined || segment.gap ? undefined : new SegmentMedia(segment);
  }

  /** Adds the segments that all of its tracks have completed. @returns whether there are any */
  advance(): boolean {
    let advanced = false;
    for (let msn = this.#next(); msn !== undefined; msn = this.#next()) {
      const own = this.packagers.flatMap(({ window }) => window.kept.find((segment) => segment.msn === msn) ?? []);
      // gaps before the first media belong to another run
      if (this.#segments.length === 0 && own.every(({ gap }) => gap)) {
        this.#skipped = msn;
        continue;
      }
      this.#add(msn, own);
      advanced = true;
    }
    return advanced;
  }

  text(form: ChunklistForm, rewinds: boolean): Text {
    const { rewind } = this.context;
    const list = listName(this.id);
    if (!rewinds || rewind === undefined) return this.#present();
    return (this.#longText ??= rewind.before(list, () => this.#present(), form));
  }

  #present(): Text {
    const { targetDuration, query, breaks, concluded } = this.context;
    return (this.#text ??= new Text(
      buildMediaList(this.listed, {
        targetDuration,
        discontinuitySequence: this.#discontinuities,
        breaks,
        uri: ({ msn }) => `${segmentName(this.id, msn)}${query}`,
        ended: concluded,
      }),
    ));
  }

  /** Ends the playlist and answers waiting requests. */
  conclude(): void {
    if (this.position !== undefined) this.position = { ...this.position, ended: true };
    this.changed();
    this.waiters.check();
  }

  /** Describes a segment for followers of the stream. */
  followed(segment: TsSegment): FollowedSegment {
    const { msn, duration, wallClock, discontinuity, gap, bytes } = segment;
    return {
      list: listName(this.id),
      name: segmentName(this.id, msn),
      msn,
      duration,
      wallClock,
      discontinuity,
      discontinuitySequence:
        this.#discontinuities +
        discontinuitiesBetween(this.#segments, this.#listedFrom, this.#segments.indexOf(segment)),
      gap,
      breaks: this.context.breaks.at(msn),
      breaksBefore: this.context.breaks.before(segment),
      bytes,
      body: () => segment.write()?.then(() => segment.body) ?? segment.body,
    };
  }

  /** Drops the cached text of the playlist. */
  changed(): void {
    this.#text = undefined;
    this.#longText = undefined;
  }

  /** Next number, if every track has completed it. */
  #next(): number | undefined {
    const windows = this.packagers.map(({ window }) => window);
    // a track that was not waited for has nothing before its open segment
    const complete = Math.min(...windows.map(({ kept, open }) => kept.at(-1)?.msn ?? (open?.msn ?? 0) - 1));
    const oldest = Math.min(...windows.map(({ kept }) => kept[0]?.msn ?? Infinity));
    const msn = Math.max(this.#skipped + 1, (this.#segments.at(-1)?.msn ?? oldest - 1) + 1);
    return msn <= complete ? msn : undefined;
  }

  #add(msn: number, own: readonly Segment<FrameRun>[]): void {
    const leading = own.find(({ gap }) => !gap) ?? (own[0] as Segment<FrameRun>);
    const { discontinuity, wallClock } = leading;
    const duration = this.#durations.next(leading.duration);
    if (this.#segments.length === 0) this.#discontinuities = this.packagers[0]?.window.discontinuitySequence ?? 0;
    this.#segments.push(
      new TsSegment({ msn, discontinuity, wallClock, duration }, own, this.#muxer, this.context.faults),
    );
    const { segmentCount, targetDuration } = this.context;
    const short = this.tracks[0]?.type === 'audio' ? SHORT_SECONDS : 0;
    const limits = { segmentCount, leastSeconds: () => LEAST_TARGETS * targetDuration - short };
    while (losesOldest(this.listed, limits)) {
      if (this.#segments[this.#listedFrom++]?.discontinuity === true) this.#discontinuities++;
    }
    for (; this.#listedFrom > GRACE_SEGMENTS; this.#listedFrom--) this.#segments.shift();
    this.newestAt = Date.now();
    this.position = { newest: { msn, parts: 1 }, partTarget: 0 };
    this.changed();
    this.waiters.check();
    this.context.completed(this, this.#segments.at(-1) as TsSegment);
  }
}

/** A segment that is muxed when it is first requested. */
class SegmentMedia implements Media {
  readonly kind = 'segment';
  readonly type = 'ts';
  readonly #segment: TsSegment;

  constructor(segment: TsSegment) {
    this.#segment = segment;
  }

  get body(): readonly Buffer[] {
    return this.#segment.body;
  }

  write(): Promise<void> | undefined {
    return this.#segment.write();
  }
}
