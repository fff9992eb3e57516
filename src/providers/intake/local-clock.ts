import type { Packet } from '../../core/packet.ts';
import { Timeline, type TrackTimeline } from '../../core/timeline.ts';
import { toSeconds, type Timebase } from '../../core/timebase.ts';
import { LEAD_SECONDS, PassedTime } from './passed-time.ts';

/** Clock in which the times of all tracks of a source are compared. */
const CLOCK = { timebase: Object.freeze({ num: 1, den: 90_000 }), bits: 62 };
/** A track whose times differ by more than this has a clock of its own. */
const OWN_CLOCK_SECONDS = 10;

/**
 * Times of a stream that comes over several connections in turn. Each source counts from its own start; between connections
 * the stream's time advances by the time that really passed.
 */
export class LocalClock {
  readonly #keepsFirst: boolean;
  #timeline: Timeline;
  #tracks = new Map<number, { readonly timeline: TrackTimeline; readonly timebase: Timebase }>();
  #base = 0;
  #started = false;
  /** Arrival of the current packet, in milliseconds of the monotonic clock. */
  #now = 0;
  /** Source time at `#base`, in ticks of `CLOCK`. */
  #from = -Infinity;
  readonly #passed = new PassedTime();

  /** @param keepsFirst the times of the first connection are its source's own; else they begin with 0 */
  constructor(keepsFirst = false) {
    this.#keepsFirst = keepsFirst;
    this.#timeline = this.#begin();
  }

  get keepsTimes(): boolean {
    return this.#keepsFirst && !this.#passed.hasBegun;
  }

  restart(): void {
    this.#timeline = this.#begin();
    this.#tracks = new Map();
    this.#started = false;
  }

  /**
   * Whether a packet of a track that has not begun is earlier than the time at which this connection's times begin.
   * @param time as the source counts, in ticks of `source`
   */
  precedes(track: number, time: number, source: Timebase): boolean {
    if (!this.#started || this.#tracks.has(track)) return false;
    const missing = this.#from - unitsOf(time, source);
    return missing > 0 && missing < OWN_CLOCK_SECONDS * CLOCK.timebase.den;
  }

  /**
   * The decoding time of a packet, in ticks of its track.
   * @param time as the source counts, in ticks of `source`
   * @param samples in an audio frame, since audio frames follow each other exactly; 0 for everything else
   * @param now of the monotonic clock, in milliseconds
   */
  next(track: number, time: number, source: Timebase, timebase: Timebase, samples: number, now: number): number {
    const units = unitsOf(time, source);
    this.#now = now;
    if (!this.#started) this.#start(units, now);
    let place = this.#tracks.get(track);
    if (place === undefined || place.timebase.num !== timebase.num || place.timebase.den !== timebase.den) {
      place?.timeline.setTimebase(timebase);
      place = { timeline: place?.timeline ?? this.#timeline.track(timebase), timebase };
      this.#tracks.set(track, place);
    }
    const own = samples > 0 ? place.timeline.nextFrame(units, samples) : place.timeline.next(units);
    const placed = own + Math.round((this.#base * timebase.den) / timebase.num);
    this.#passed.note(toSeconds(placed, timebase), now);
    return placed;
  }

  #begin(): Timeline {
    return new Timeline(CLOCK, !this.keepsTimes, () => this.#now);
  }

  #start(units: number, now: number): void {
    this.#started = true;
    const from = units - LEAD_SECONDS * CLOCK.timebase.den;
    this.#from = this.keepsTimes ? -Infinity : from;
    this.#timeline.start(from);
    const next = this.#passed.next(now);
    if (next !== undefined) this.#base = next - LEAD_SECONDS;
  }
}

/** Moves a packet to its time on the clock that continues across connections. */
export function placed(packet: Packet, clock: LocalClock): Packet {
  const { track, dts, pts, duration } = packet;
  const samples = track.type === 'audio' ? duration : 0;
  const time = clock.next(track.id, dts, track.timebase, track.timebase, samples, performance.now());
  return { ...packet, dts: time, pts: time + pts - dts };
}

/** Ticks of `CLOCK`. */
function unitsOf(time: number, { num, den }: Timebase): number {
  return (time * num * CLOCK.timebase.den) / den;
}
