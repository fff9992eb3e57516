import type { InputStream } from '../../core/stream.ts';
import { MILLISECONDS, VIDEO_TIMEBASE } from '../../core/timebase.ts';
import { Timeline, type TrackTimeline } from '../../core/timeline.ts';
import { sameFormat, type MediaTrack } from '../../core/track.ts';
import type { MediaUnit } from './media-unit.ts';

const TICKS_PER_MS = VIDEO_TIMEBASE.den / MILLISECONDS.den;
/** Each change makes every viewer start anew: a source with more of them is broken. */
const MAX_CHANGES = 60;
const CHANGES_WINDOW_MS = 30_000;

/** A track of the stream. */
interface Lane {
  track: MediaTrack;
  readonly timeline: TrackTimeline;
}

/** Units to packets of an input stream, on one timeline, with the tracks that they bring. */
export class TrackWriter {
  readonly #input: InputStream;
  readonly #onUnsteady: () => void;
  readonly #timeline: Timeline;
  /** By id of the track in the stream. */
  readonly #lanes = new Map<number, Lane>();
  #changes = 0;
  #changesSince = 0;

  /**
   * @param zeroBased the stream begins at 0; else the source's own times are kept
   * @param onUnsteady the source changes its configuration too often
   */
  constructor(input: InputStream, zeroBased: boolean, onUnsteady: () => void) {
    this.#input = input;
    this.#timeline = new Timeline({ timebase: MILLISECONDS, bits: 32 }, zeroBased);
    this.#onUnsteady = onUnsteady;
  }

  /**
   * Makes the stream live, with all that was held back.
   * @param tracks as they are now: of several configurations in `held`, each shows when its turn comes
   */
  start(held: readonly MediaUnit[], tracks: readonly MediaTrack[]): void {
    const latest = new Map(tracks.map((track) => [track.id, track]));
    const units = held.map((unit) => {
      const track = latest.get(unit.track.id);
      return track !== undefined && sameFormat(track, unit.track) ? { ...unit, track } : unit;
    });
    let first = units[0]?.time;
    for (const { time } of units) if (first !== undefined && isBefore(time, first)) first = time;
    if (first !== undefined) this.#timeline.start(first);
    for (const track of [...units.map((unit) => unit.track), ...tracks]) if (!this.#lanes.has(track.id)) this.#open(track);
    this.#announce();
    for (const unit of units) this.write(unit);
  }

  write({ track, data, key, time, compositionTime, duration }: MediaUnit): void {
    let lane = this.#lanes.get(track.id);
    if (lane?.track !== track) lane = this.#replace(lane, track);
    const { timeline } = lane;
    const dts = duration > 0 ? timeline.nextFrame(time, duration) : timeline.next(time);
    const pts = Math.max(dts, dts + compositionTime * TICKS_PER_MS);
    this.#input.write({ track, dts, pts, duration, key, data });
  }

  #open(track: MediaTrack): Lane {
    const lane = { track, timeline: this.#timeline.track(track.timebase) };
    this.#lanes.set(track.id, lane);
    return lane;
  }

  #replace(known: Lane | undefined, track: MediaTrack): Lane {
    if (known === undefined || !sameFormat(known.track, track)) this.#countChange();
    const lane = known ?? this.#open(track);
    lane.track = track;
    lane.timeline.setTimebase(track.timebase);
    this.#announce();
    return lane;
  }

  #announce(): void {
    const tracks = Array.from(this.#lanes.values(), ({ track }) => track);
    this.#input.setTracks(tracks.sort((a, b) => a.id - b.id));
  }

  #countChange(): void {
    const now = performance.now();
    if (now - this.#changesSince > CHANGES_WINDOW_MS) {
      this.#changesSince = now;
      this.#changes = 0;
    }
    if (++this.#changes > MAX_CHANGES) this.#onUnsteady();
  }
}

/** Order of two timestamps of 32 bits that may have wrapped in between. */
function isBefore(a: number, b: number): boolean {
  const distance = (a - b + 2 ** 32) % 2 ** 32;
  return distance > 2 ** 31;
}
