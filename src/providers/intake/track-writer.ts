import type { Packet } from '../../core/packet.ts';
import type { Timebase } from '../../core/timebase.ts';
import type { SourceClock, TrackTimeline } from '../../core/timeline.ts';
import { isMedia, sameFormat, sameSets, type Track } from '../../core/track.ts';
import { DecodeLead } from './decode-lead.ts';
import type { MediaUnit } from './media-unit.ts';

/** Each change makes every viewer restart: a source with more changes is broken. */
const MAX_CHANGES = 60;
const CHANGES_WINDOW_MS = 30_000;

/** Receiver of a source's tracks and packets, such as an input stream. */
export interface TrackSink {
  setTracks(tracks: readonly Track[]): void;
  write(packet: Packet): void;
}

export type TrackClock = Pick<TrackTimeline, 'next' | 'nextFrame' | 'setTimebase'>;

/** Gives out the times of a source's tracks, as Timeline does. */
export interface MediaClock {
  start(source: number): void;
  track(timebase: Timebase): TrackClock;
}

export interface TrackWriterOptions {
  readonly sink: TrackSink;
  readonly clock: SourceClock;
  readonly timeline: MediaClock;
  readonly onUnsteady: () => void;
}

interface Lane {
  track: Track;
  readonly timeline: TrackClock;
  /** Ticks of the track per tick of the source's clock. */
  ticks: number;
  readonly lead: DecodeLead;
}

/** Writes units to a stream as packets on one timeline, and announces their tracks. */
export class TrackWriter {
  readonly #options: TrackWriterOptions;
  readonly #lanes = new Map<number, Lane>();
  #changes = 0;
  #changesSince = 0;

  constructor(options: TrackWriterOptions) {
    this.#options = options;
  }

  /**
   * Makes the stream live, beginning with the units that were held back.
   * @param tracks in their latest form; where `held` has several configurations of one, each is announced in its turn
   */
  start(held: readonly MediaUnit[], tracks: readonly Track[]): void {
    const latest = new Map(tracks.map((track) => [track.id, track]));
    const units = held.map((unit) => {
      const track = latest.get(unit.track.id);
      return track !== undefined && sameFormat(track, unit.track) && sameSets(track, unit.track)
        ? { ...unit, track }
        : unit;
    });
    const {
      clock: { bits },
      timeline,
    } = this.#options;
    for (const track of [...units.map((unit) => unit.track), ...tracks])
      if (!this.#lanes.has(track.id)) this.#open(track);
    for (const { track, key, compositionTime } of units) {
      const { lead, ticks } = this.#lanes.get(track.id) as Lane;
      lead.note(track, key, Math.round(compositionTime * ticks));
    }
    let first: number | undefined;
    for (const { track, time } of units) {
      const { lead, ticks } = this.#lanes.get(track.id) as Lane;
      const decoded = time - lead.ticks / ticks;
      if (first === undefined || isBefore(decoded, first, 2 ** bits)) first = decoded;
    }
    if (first !== undefined) timeline.start(first);
    this.#announce();
    for (const unit of units) this.write(unit);
  }

  /** Units that are not before a time of the source. */
  from(time: number, units: readonly MediaUnit[]): MediaUnit[] {
    const range = 2 ** this.#options.clock.bits;
    return units.filter((unit) => !isBefore(unit.time, time, range));
  }

  write({ track, data, key, time, compositionTime, duration }: MediaUnit): void {
    let lane = this.#lanes.get(track.id);
    if (lane?.track !== track) lane = this.#replace(lane, track);
    const { timeline, ticks, lead } = lane;
    const placed = duration > 0 ? timeline.nextFrame(time, duration) : timeline.next(time);
    const offset = Math.round(compositionTime * ticks);
    lead.note(track, key, offset);
    const dts = lead.next(placed);
    this.#options.sink.write({ track, dts, pts: Math.max(dts, placed + offset), duration, key, data });
  }

  /**
   * Removes event tracks that the source no longer has. Audio and video tracks stay, because they may resume.
   * @param ids of the tracks that the source has
   */
  keep(ids: ReadonlySet<number>): void {
    const gone = [...this.#lanes].flatMap(([id, { track }]) => (ids.has(id) || isMedia(track) ? [] : id));
    if (gone.length === 0) return;
    for (const id of gone) this.#lanes.delete(id);
    this.#countChange();
    this.#announce();
  }

  #open(track: Track): Lane {
    const lane = {
      track,
      timeline: this.#options.timeline.track(track.timebase),
      ticks: this.#ticksOf(track.timebase),
      lead: new DecodeLead(),
    };
    this.#lanes.set(track.id, lane);
    return lane;
  }

  #replace(known: Lane | undefined, track: Track): Lane {
    if (known === undefined || !sameFormat(known.track, track)) this.#countChange();
    const lane = known ?? this.#open(track);
    lane.track = track;
    lane.ticks = this.#ticksOf(track.timebase);
    lane.timeline.setTimebase(track.timebase);
    this.#announce();
    return lane;
  }

  #ticksOf(track: Timebase): number {
    const { timebase: source } = this.#options.clock;
    return (source.num * track.den) / (source.den * track.num);
  }

  #announce(): void {
    const tracks = Array.from(this.#lanes.values(), ({ track }) => track);
    this.#options.sink.setTracks(tracks.sort((a, b) => a.id - b.id));
  }

  #countChange(): void {
    const now = performance.now();
    if (now - this.#changesSince > CHANGES_WINDOW_MS) {
      this.#changesSince = now;
      this.#changes = 0;
    }
    if (++this.#changes > MAX_CHANGES) this.#options.onUnsteady();
  }
}

/** Order of two timestamps that may have wrapped in between. */
function isBefore(a: number, b: number, range: number): boolean {
  const distance = (((a - b) % range) + range) % range;
  return distance > range / 2;
}
