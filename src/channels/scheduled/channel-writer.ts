import type { Packet } from '../../core/packet.ts';
import { rescale } from '../../core/timebase.ts';
import { isMedia, sameFormat, sameSets, type Track } from '../../core/track.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';
import type { ItemUnit } from './item-source.ts';

/** Longest delay of a frame that is decoded before the first frame of a stream. */
const LEAD_MS = 500;
/** Readers start anew after a silence of this length. */
const SILENCE_MS = 2000;

interface Lane {
  /** The track as readers know it, and as the item has it. */
  track: Track;
  own: Track;
  /** Offset from times of the item to those of the stream, in ticks; undefined until the item's first unit. */
  shift: number | undefined;
  /** In ticks of the stream: the last decode time, its distance from the one before, and the end of the last unit. */
  last: number;
  step: number;
  end: number;
  /** Decode times before `until` are moved towards it by a factor, so that they follow those already written. */
  squeeze: { readonly until: number; readonly factor: number } | undefined;
}

/** Least distance of decode times, so that they also grow in containers that count milliseconds. */
const LEAST_STEP_MS = 1;

/**
 * Writes the items of a channel one after the other on the timeline of its stream, each at its given offset. Decode
 * times grow by at least a millisecond; frames keep their presentation times. Audio that begins within a frame of the
 * end of the previous item follows it sample by sample; overlapping audio is dropped.
 */
export class ChannelWriter {
  readonly #sink: TrackSink;
  readonly #lanes = new Map<number, Lane>();
  #listed: ReadonlySet<number> = new Set();
  /** Monotonic milliseconds at time 0 of the stream. */
  #origin: number | undefined;
  /** Monotonic milliseconds at time 0 of the current item. */
  #offset = 0;
  #end = -Infinity;
  #lastShown = -Infinity;

  constructor(sink: TrackSink) {
    this.#sink = sink;
  }

  /** Monotonic milliseconds up to which audio or video is written, in presentation time. */
  get end(): number {
    return this.#end;
  }

  /** Monotonic milliseconds when the last video frame is shown. */
  get lastShown(): number {
    return this.#lastShown;
  }

  /** Monotonic milliseconds when a written packet is shown. */
  shownAt({ pts, track: { timebase } }: Packet): number {
    return (1000 * pts * timebase.num) / timebase.den + (this.#origin ?? 0);
  }

  /** Seconds on the timeline of the stream at a time of the monotonic clock, in milliseconds. */
  secondsAt(monotonic: number): number {
    return this.#origin === undefined ? 0 : (monotonic - this.#origin) / 1000;
  }

  /**
   * Begins an item.
   * @param tracks tracks of the item
   * @param offset monotonic milliseconds at time 0 of the item
   * @param from monotonic milliseconds where it begins
   */
  begin(tracks: readonly Track[], offset: number, from: number): void {
    this.#origin ??= from - LEAD_MS;
    const isNew = from - this.#end > SILENCE_MS;
    this.#offset = offset;
    for (const lane of this.#lanes.values()) {
      lane.shift = undefined;
      lane.squeeze = undefined;
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
    lane.shift ??= this.#enter(lane, unit);
    const isAudio = track.type === 'audio' && duration > 0;
    const own = unit.dts + (lane.shift ?? 0);
    if (lane.shift === undefined || (isAudio && own < lane.end - duration / 2)) return;
    const dts = isAudio ? Math.max(own, lane.end) : Math.max(squeezed(lane, own), lane.last + leastStep(track));
    const pts = Math.max(unit.pts + lane.shift, dts);
    lane.step = dts - lane.last;
    lane.last = dts;
    lane.end = pts + duration;
    const ms = (1000 * track.timebase.num) / track.timebase.den;
    if (isMedia(track)) this.#end = Math.max(this.#end, lane.end * ms + (this.#origin ?? 0));
    if (track.type === 'video') this.#lastShown = Math.max(this.#lastShown, pts * ms + (this.#origin ?? 0));
    this.#sink.write({ track: lane.track, dts, pts, duration, key, data });
  }

  /**
   * Places the first unit of an item. @returns offset added to its times; undefined for audio that overlaps what is
   * written
   */
  #enter(lane: Lane, { dts, pts, duration, track: { type, timebase } }: ItemUnit): number | undefined {
    const shift = Math.round(((this.#offset - (this.#origin ?? 0)) * timebase.den) / (1000 * timebase.num));
    const gap = dts + shift - lane.end;
    if (type === 'audio' && duration > 0) {
      if (gap < -duration / 2) return undefined;
      return gap <= duration ? shift - gap : shift;
    }
    const [decoded, shown] = [dts + shift, pts + shift];
    // the item reorders more frames than the one before
    if (type === 'video' && decoded <= lane.last && shown > lane.last) {
      const step = Math.min(lane.step, shown - decoded);
      lane.squeeze = { until: shown, factor: (shown - lane.last) / (shown - decoded + step) };
    }
    return shift;
  }

  /** @returns whether readers get another track object */
  #follow(own: Track): boolean {
    const lane = this.#lanes.get(own.id);
    if (lane?.own === own) return false;
    if (lane === undefined) {
      const before = { last: -1, step: 1, end: -1 };
      this.#lanes.set(own.id, { track: own, own, shift: undefined, ...before, squeeze: undefined });
      return true;
    }
    lane.own = own;
    if (isSame(lane.track, own)) return false;
    const { timebase } = lane.track;
    if (timebase.num !== own.timebase.num || timebase.den !== own.timebase.den) {
      lane.last = rescale(lane.last, timebase, own.timebase);
      lane.step = rescale(lane.step, timebase, own.timebase);
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
    sameSets(known, own) &&
    known.name === own.name &&
    known.language === own.language &&
    known.characteristics === own.characteristics
  );
}

function squeezed({ squeeze }: Lane, dts: number): number {
  if (squeeze === undefined || dts >= squeeze.until) return dts;
  return Math.round(squeeze.until - (squeeze.until - dts) * squeeze.factor);
}

function leastStep({ timebase: { num, den } }: Track): number {
  return Math.ceil((LEAST_STEP_MS * den) / (1000 * num));
}
