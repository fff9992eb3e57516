import { rescale, type Timebase } from '../../core/timebase.ts';
import { fullBox, u32 } from './box.ts';
import { editList } from './edit-list.ts';
import type { Run, Sample } from './fragment.ts';
import type { TrackPlace } from './movie.ts';
import { Numbers } from './numbers.ts';

/** Samples of one track in a fragment, without their data. */
export interface IndexedRun extends Pick<Run, 'baseTime'> {
  readonly samples: readonly (Omit<Sample, 'data'> & { readonly data: { readonly length: number } })[];
}

/** Collects the samples of a track for the tables of its `stbl` (ISO/IEC 14496-12, 8.5 to 8.7). */
export class SampleTable {
  readonly #timebase: Timebase;
  readonly #sizes = new Numbers();
  /** Pairs of count and value. */
  readonly #durations = new Numbers();
  readonly #offsets = new Numbers();
  readonly #keys = new Numbers();
  /** Pairs of the high and low half of an offset in the file. */
  readonly #chunks = new Numbers();
  /** Triples of first chunk, samples per chunk and sample description. */
  readonly #runs = new Numbers();
  #perChunk = 0;
  #isReordered = false;
  #start: number | undefined;
  #end = 0;
  /** Earliest composition time, relative to the first decode time. */
  #shown = Infinity;

  constructor(timebase: Timebase) {
    this.#timebase = timebase;
  }

  get samples(): number {
    return this.#sizes.length;
  }

  /** @param at position of the first sample's data in the file */
  add({ baseTime, samples }: IndexedRun, at: number): void {
    const start = (this.#start ??= baseTime);
    if (this.samples === 0) this.#end = baseTime;
    for (const { duration, compositionOffset, key, data } of samples) {
      this.#sizes.push(data.length);
      count(this.#durations, duration);
      count(this.#offsets, compositionOffset);
      if (compositionOffset !== 0) this.#isReordered = true;
      this.#shown = Math.min(this.#shown, this.#end - start + compositionOffset);
      if (key) this.#keys.push(this.samples);
      this.#end += duration;
    }
    this.#chunks.push(Math.floor(at / 0x1_0000_0000));
    this.#chunks.push(at % 0x1_0000_0000);
    if (samples.length !== this.#perChunk) {
      this.#perChunk = samples.length;
      for (const value of [this.#chunks.length / 2, samples.length, 1]) this.#runs.push(value);
    }
  }

  /** Length of the track in ticks of the movie. */
  duration(timescale: number): number {
    return this.#inMovie(this.#end + (this.#hasEdits(timescale) ? this.#lead : 0), timescale);
  }

  /** Values for `trak`. @param timescale of the movie */
  place(id: number, timescale: number): TrackPlace {
    const start = this.#start ?? 0;
    const mediaDuration = this.#end - start;
    // if an edit begins before the first picture is shown, some readers show that at the beginning of the edit
    const before = this.#inMovie(start + this.#lead, timescale);
    const own = this.#inMovie(mediaDuration, timescale);
    const edits = { empty: before, duration: own, mediaTime: this.#lead };
    return {
      id,
      duration: this.duration(timescale),
      mediaDuration,
      ...(this.#hasEdits(timescale) && { edits: editList(edits) }),
      tables: this.#tables(),
    };
  }

  /** Whether the track begins later than the file. */
  #hasEdits(timescale: number): boolean {
    return this.#inMovie(this.#start ?? 0, timescale) > 0;
  }

  /** Time from the first decode time to the first presentation. */
  get #lead(): number {
    return Number.isFinite(this.#shown) ? Math.max(0, this.#shown) : 0;
  }

  #tables(): Buffer[] {
    const { samples } = this;
    const tables = [fullBox('stts', 0, 0, u32(this.#durations.length / 2), this.#durations.bytes())];
    if (this.#isReordered) tables.push(fullBox('ctts', 1, 0, u32(this.#offsets.length / 2), this.#offsets.bytes()));
    if (this.#keys.length < samples) tables.push(fullBox('stss', 0, 0, u32(this.#keys.length), this.#keys.bytes()));
    tables.push(
      fullBox('stsc', 0, 0, u32(this.#runs.length / 3), this.#runs.bytes()),
      fullBox('stsz', 0, 0, u32(0, samples), this.#sizes.bytes()),
      fullBox('co64', 0, 0, u32(this.#chunks.length / 2), this.#chunks.bytes()),
    );
    return tables;
  }

  #inMovie(ticks: number, timescale: number): number {
    return rescale(ticks, this.#timebase, { num: 1, den: timescale });
  }
}

/** Adds to pairs of count and value. */
function count(pairs: Numbers, value: number): void {
  if (pairs.length > 0 && pairs.at(-1) === value >>> 0) pairs.set(-2, pairs.at(-2) + 1);
  else {
    pairs.push(1);
    pairs.push(value);
  }
}
