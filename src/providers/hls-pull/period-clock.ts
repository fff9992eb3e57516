import { TrackTimeline } from '../../core/timeline.ts';
import { VIDEO_TIMEBASE, type Timebase } from '../../core/timebase.ts';
import type { MediaClock } from '../intake/track-writer.ts';

/** Clock of all media in HLS: times of fragmented MP4 are converted to it, those of MPEG-TS wrap as `SOURCE_BITS` has it. */
export const CLOCK = { timebase: VIDEO_TIMEBASE, bits: 62 };
const SOURCE_RANGE = 2 ** 33;
const SECOND = VIDEO_TIMEBASE.den;
/** A step further back within one track and period is a jump of its clock that no tag announces. */
const BACKWARD = 0.2 * SECOND;
/** A step further ahead is one as well, where no media is missing. */
const FORWARD = 10 * SECOND;
/** How far from where it is expected a track may go on. */
const TOLERANCE = SECOND;
const MAX_PERIODS = 32;

/** Media between two discontinuities: one clock for all tracks. */
interface Period {
  /** Added to the times of the source: the latest one, and those before it where its clock has jumped. */
  readonly offsets: number[];
  /** The latest time of the source in it, near which others are. */
  near: number;
}

/** Where a track is. Times are in ticks of CLOCK. */
interface Place {
  period: string;
  source: number;
  offset: number;
  time: number;
  step: number;
  /** The period has begun, and may overlap what was there before it. */
  isNew: boolean;
}

/**
 * One timeline for all the playlists of a stream (RFC 8216 section 6.3.5). Within a period, which is what has the same discontinuity
 * sequence, all tracks share a clock. The next period begins where the last one has ended for the playlist that comes to it first: what its
 * times are does not matter.
 */
export class PeriodClock implements MediaClock {
  readonly #zeroBased: boolean;
  readonly #periods = new Map<string, Period>();
  #offset: number | undefined;

  /** @param zeroBased whether times begin with 0; else with the source's own */
  constructor(zeroBased: boolean) {
    this.#zeroBased = zeroBased;
  }

  /** The times of a playlist. */
  playlist(): PlaylistClock {
    return new PlaylistClock(this.#periods);
  }

  start(source: number): void {
    this.#offset ??= this.#zeroBased ? -source : 0;
  }

  track(timebase: Timebase): TrackTimeline {
    return new TrackTimeline(CLOCK.timebase, timebase, (source) => source + (this.#offset ?? 0));
  }
}

/** Places the times of one playlist. */
export class PlaylistClock {
  readonly #periods: Map<string, Period>;
  readonly #places = new Map<number, Place>();
  /** Where what was placed ends; undefined before the first. */
  #end: number | undefined;
  #skipped = 0;

  constructor(periods: Map<string, Period>) {
    this.#periods = periods;
  }

  /** Whether a playlist has come to a period. */
  knows(period: string): boolean {
    return this.#periods.has(period);
  }

  /** Notes that media is missing here, so that the next times may be later by as much. @param seconds of it */
  skip(seconds: number): void {
    this.#skipped += seconds * SECOND;
  }

  /**
   * The time of a unit on the timeline of all.
   * @param track id of its track
   * @param stamp as the source has it, which may be wrapped
   * @returns undefined for what overlaps the period before its own
   */
  place(track: number, period: string, stamp: number): number | undefined {
    const known = this.#places.get(track);
    const place = known?.period === period ? known : this.#enter(known, period, stamp);
    const source = unwrapped(stamp, place.source);
    let time = source + place.offset;
    if (place.isNew && known !== undefined && time < place.time - BACKWARD) return undefined;
    if (!place.isNew && this.#isJump(source - place.source)) {
      place.offset = this.#afterJump(place, period, source);
      time = source + place.offset;
    }
    if (!place.isNew && time > place.time && time - place.time <= TOLERANCE) place.step = time - place.time;
    place.isNew = false;
    place.source = source;
    place.time = Math.max(time, place.time);
    this.#end = Math.max(this.#end ?? -Infinity, time + place.step);
    this.#places.set(track, place);
    const shared = this.#periods.get(period);
    if (shared !== undefined) shared.near = source;
    return time;
  }

  /** The time of an event, of which a track may have few. */
  placeEvent(period: string, stamp: number): number {
    const { offsets, near } = this.#periods.get(period) ?? this.#begin(period, stamp);
    return unwrapped(stamp, near) + (offsets.at(-1) ?? 0);
  }

  #enter(known: Place | undefined, period: string, stamp: number): Place {
    const shared = this.#periods.get(period) ?? this.#begin(period, stamp);
    const source = unwrapped(stamp, shared.near);
    const [latest = 0] = shared.offsets.slice(-1);
    const offset = this.#end === undefined ? latest : nearest(shared.offsets, source, this.#end);
    this.#skipped = 0;
    return { period, source, offset, time: known?.time ?? -Infinity, step: known?.step ?? 0, isNew: true };
  }

  #begin(period: string, stamp: number): Period {
    const offset = this.#end === undefined ? 0 : this.#end - stamp;
    const begun = { offsets: [offset], near: stamp };
    const [oldest] = this.#periods.keys();
    if (oldest !== undefined && this.#periods.size === MAX_PERIODS) this.#periods.delete(oldest);
    this.#periods.set(period, begun);
    return begun;
  }

  #isJump(step: number): boolean {
    return step < -BACKWARD || step > FORWARD + this.#skipped;
  }

  /** An offset with which the track goes on: that of another track which has jumped before, or its own. */
  #afterJump(place: Place, period: string, source: number): number {
    const offsets = this.#periods.get(period)?.offsets ?? [];
    const expected = place.time + place.step;
    const known = nearest(offsets, source, expected);
    const time = source + known;
    if (Math.abs(time - expected) <= TOLERANCE && time >= place.time - BACKWARD) return known;
    offsets.push(expected - source);
    if (offsets.length > MAX_PERIODS) offsets.shift();
    return expected - source;
  }
}

function nearest(offsets: readonly number[], source: number, expected: number): number {
  const distance = (offset: number): number => Math.abs(source + offset - expected);
  return offsets.reduce((best, offset) => (distance(offset) <= distance(best) ? offset : best), offsets[0] ?? 0);
}

function unwrapped(stamp: number, near: number): number {
  return stamp + Math.round((near - stamp) / SOURCE_RANGE) * SOURCE_RANGE;
}
