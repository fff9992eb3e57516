import { rescale } from '../../core/timebase.ts';
import { sameFormat, type Track } from '../../core/track.ts';
import type { TrackSink } from '../intake/track-writer.ts';
import type { ItemUnit } from './item-source.ts';

/** What is decoded in front of the first frame of a stream may come this much later. */
const LEAD_MS = 500;
/** After a silence of this length readers begin anew. */
const SILENCE_MS = 2000;

/** A track of the stream. */
interface Lane {
  /** As readers know it, and as the item has it. */
  track: Track;
  own: Track;
  /** From times of the item to those of the stream, in ticks; undefined until the item's first unit. */
  shift: number | undefined;
  /** In ticks of the stream. */
  last: number;
  end: number;
}

/**
 * Puts the items of a channel one after the other on the timeline of its stream, each where it is told to be. Decoding times
 * grow strictly; audio follows the item before sample by sample where it begins within a frame of that.
 */
export class ChannelWriter {
  readonly #sink: TrackSink;
  readonly #lanes = new Map<number, Lane>();
  /** Ids of the tracks that the stream has. */
  #listed: ReadonlySet<number> = new Set();
  /** Monotonic milliseconds where the time of the stream is 0. */
  #origin: number | undefined;
  /** Milliseconds of the monotonic clock where the time of the current item is 0. */
  #offset = 0;
  #end = -Infinity;

  constructor(sink: TrackSink) {
    this.#sink = sink;
  }

  /** Monotonic milliseconds up to which something was written to be presented. */
  get end(): number {
    return this.#end;
  }

  /**
   * An item begins.
   * @param tracks that it has
   * @param offset monotonic milliseconds where its time is 0
   * @param from where it begins, the same
   */
  begin(tracks: readonly Track[], offset: number, from: number): void {
    this.#origin ??= from - LEAD_MS;
    const isNew = from - this.#end > SILENCE_MS;
    this.#offset = offset;
    for (const lane of this.#lanes.values()) {
      lane.shift = undefined;
      if (isNew) lane.track = Object.freeze({ ...lane.track });
    }
    let isChanged = isNew || tracks.length !== this.#listed.size;
    for (const track of tracks) isChanged = this.#follow(track) || isChanged || !this.#listed.has(track.id);
    this.#listed = new Set(tracks.map(({ id }) => id));
    if (isChanged) this.#announce();
  }

  write(unit: ItemUnit): void {
    const { track, duration, key, data } = unit;
    if (this.#follow(track) || !this.#listed.has(track.id)) {
      this.#listed = new Set([...this.#listed, track.id]);
      this.#announce();
    }
    const lane = this.#lanes.get(track.id) as Lane;
    lane.shift ??= this.#shiftOf(lane, unit);
    const dts = Math.max(unit.dts + lane.shift, lane.last + 1);
    const pts = Math.max(unit.pts + lane.shift, dts);
    lane.last = dts;
    lane.end = pts + duration;
    const { num, den } = track.timebase;
    this.#end = Math.max(this.#end, (lane.end * 1000 * num) / den + (this.#origin ?? 0));
    this.#sink.write({ track: lane.track, dts, pts, duration, key, data });
  }

  #shiftOf(lane: Lane, { dts, duration, track: { timebase } }: ItemUnit): number {
    const shift = Math.round(((this.#offset - (this.#origin ?? 0)) * timebase.den) / (1000 * timebase.num));
    const gap = dts + shift - lane.end;
    return duration > 0 && Math.abs(gap) <= duration ? shift - gap : shift;
  }

  /** @returns whether readers get another track object */
  #follow(own: Track): boolean {
    const lane = this.#lanes.get(own.id);
    if (lane?.own === own) return false;
    if (lane === undefined) {
      this.#lanes.set(own.id, { track: own, own, shift: undefined, last: -1, end: -1 });
      return true;
    }
    lane.own = own;
    if (isSame(lane.track, own)) return false;
    const { timebase } = lane.track;
    if (timebase.num !== own.timebase.num || timebase.den !== own.timebase.den) {
      lane.last = rescale(lane.last, timebase, own.timebase);
      lane.end = rescale(lane.end, timebase, own.timebase);
      lane.shift = undefined;
    }
    lane.track = own;
    return true;
  }

  #announce(): void {
    const tracks = [...this.#listed].flatMap((id) => this.#lanes.get(id)?.track ?? []);
    this.#sink.setTracks(tracks.sort((a, b) => a.id - b.id));
  }
}

function isSame(known: Track, own: Track): boolean {
  return (
    sameFormat(known, own) &&
    known.name === own.name &&
    known.language === own.language &&
    known.characteristics === own.characteristics
  );
}
