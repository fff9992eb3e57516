import type { Sample } from '../../containers/fmp4/fragment.ts';
import { SampleTable } from '../../containers/fmp4/sample-table.ts';
import { CLOCK } from '../../containers/mpegts/stream-types.ts';
import type { MediaTrack } from '../../core/track.ts';
import type { TsSample, TsSamples } from './lanes.ts';

const MAX_TICKS = 0xffff_ffff;
/** Ticks of the track, or of CLOCK where those are longer, by which a time is rounded. */
const ROUNDING = 1.5;

interface PlacedSample extends Omit<Sample, 'data' | 'duration'> {
  duration: number;
  readonly data: { readonly length: number };
}

/** Collects the samples of a track for its tables, with times of its own timescale. */
export class TrackTable {
  /** Format of the newest sample. */
  track: MediaTrack;
  readonly table: SampleTable;
  /** Time of the first sample, in ticks of CLOCK. */
  readonly first: number;
  readonly #begin: number;
  #run: PlacedSample[] = [];
  /** Samples of an earlier piece, the last of which still lacks its duration. */
  #waiting: { readonly samples: readonly PlacedSample[]; readonly at: number } | undefined;
  #last: PlacedSample | undefined;
  /** Decode time of the last sample, and how long it lasts by itself or as the one before. */
  #dts = 0;
  #step = 0;
  #baseTime: (() => number) | number;

  /**
   * @param first time of its first sample, in ticks of CLOCK
   * @param origin time that is 0 in the file, known when samples of the first piece are complete
   */
  constructor(track: MediaTrack, first: number, origin: () => number) {
    this.track = track;
    this.first = first;
    this.table = new SampleTable(track.timebase);
    this.#begin = this.#ticks(first);
    this.#dts = this.#begin;
    this.#baseTime = () => Math.max(0, this.#begin - this.#ticks(origin()));
  }

  /** Time of the last sample, in ticks of CLOCK. */
  get newest(): number {
    return (this.#dts * CLOCK.timebase.den) / this.track.timebase.den;
  }

  /** Bytes of the samples since `close`. */
  get bytes(): number {
    return this.#run.reduce((sum, { data }) => sum + data.length, 0);
  }

  /** @param dts and `pts` of the first sample, in ticks of CLOCK */
  add({ track, samples }: TsSamples, dts: number, pts: number): void {
    this.track = track;
    let own = this.#ticks(dts);
    const offset = this.#ticks(pts) - own;
    const next = this.#dts + this.#step;
    const rounding = ROUNDING * Math.max(1, this.track.timebase.den / CLOCK.timebase.den);
    if (track.type === 'audio' && this.#last !== undefined && Math.abs(own - next) <= rounding) own = next;
    for (const sample of samples) {
      this.#push(sample, own, track.type === 'video' ? offset : 0);
      own += sample.duration;
    }
  }

  /** Ends a piece of the media. @param at position of its samples of this track */
  close(at: number): void {
    if (this.#run.length === 0) return;
    this.#waiting = { samples: this.#run, at };
    this.#run = [];
  }

  end(): void {
    if (this.#last !== undefined) this.#last.duration = this.#step;
    this.#flush();
  }

  #push({ size, key, duration }: TsSample, time: number, compositionOffset: number): void {
    const dts = Math.max(time, this.#dts);
    if (this.#last !== undefined) {
      const step = Math.min(dts - this.#dts, MAX_TICKS);
      this.#last.duration = step;
      this.#step = step;
      this.#flush();
    }
    this.#dts = dts;
    if (duration > 0) this.#step = duration;
    this.#last = { duration: 0, compositionOffset: compositionOffset + time - dts, key, data: { length: size } };
    this.#run.push(this.#last);
  }

  #flush(): void {
    if (this.#waiting === undefined) return;
    const { samples, at } = this.#waiting;
    this.#waiting = undefined;
    if (typeof this.#baseTime !== 'number') this.#baseTime = this.#baseTime();
    this.table.add({ baseTime: this.#baseTime, samples }, at);
  }

  #ticks(time: number): number {
    const { num, den } = this.track.timebase;
    return Math.round((time * den) / (num * CLOCK.timebase.den));
  }
}
