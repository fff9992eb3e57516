import type { SampleHead } from '../../containers/fmp4/fragment.ts';
import type { Range } from './cut.ts';
import { loadSamples, SampleCursor } from './samples.ts';

/** A sample, and its position in the recording. */
export interface PlacedSample extends SampleHead {
  readonly at: number;
}

/** Samples whose tables are read at once: half a minute of video. */
const LOADED = 1024;

/** Samples of a track in their order. Their tables are read when they are asked for. */
export class SampleFeed<R extends Range> {
  readonly range: R;
  readonly #signal: AbortSignal | undefined;
  #cursor: SampleCursor | undefined;
  /** Whether the cursor is at a sample that was not taken. */
  #isAt = false;
  /** The sample after those that were loaded. */
  #loaded: number;

  constructor(range: R, signal: AbortSignal | undefined) {
    this.range = range;
    this.#signal = signal;
    this.#loaded = range.from;
  }

  /** Decode time of the next sample, in ticks of the media; undefined after the last one. @throws ClipError, SourceError */
  async next(): Promise<number | undefined> {
    for (;;) {
      const { track, from, to, late = 0 } = this.range;
      if (this.#step()) {
        const { dts, index } = this.#cursor as SampleCursor;
        return index === from ? dts + late : dts;
      }
      if (this.#loaded >= to) return undefined;
      const end = Math.min(to, this.#loaded + LOADED);
      this.#cursor = new SampleCursor(await loadSamples(track, this.#loaded, end, this.#signal));
      this.#loaded = end;
    }
  }

  /** Takes the next samples that are decoded before a time. @throws ClipError, SourceError */
  async takeBefore(ticks: number): Promise<PlacedSample[]> {
    const samples: PlacedSample[] = [];
    const { from, to, late = 0, early = 0 } = this.range;
    for (let dts = await this.next(); dts !== undefined && dts < ticks; dts = await this.next())
      do {
        const { duration: whole, offset: compositionOffset, key, at, size, index } = this.#cursor as SampleCursor;
        const duration = whole - (index === from ? late : 0) - (index === to - 1 ? early : 0);
        samples.push({ duration, compositionOffset, key, at, data: { length: size } });
        this.#isAt = false;
      } while (this.#step() && (this.#cursor as SampleCursor).dts < ticks);
    return samples;
  }

  #step(): boolean {
    this.#isAt ||= this.#cursor?.next() === true;
    return this.#isAt;
  }
}
