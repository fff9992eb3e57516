import type { Packet } from '../../core/packet.ts';
import { rescale } from '../../core/timebase.ts';
import { isMedia, sameFormat, sameSets, type Track } from '../../core/track.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';
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
  /** In ticks of the stream: the last decoding time, how far it was from the one before, and where the last unit ends. */
  last: number;
  step: number;
  end: number;
  /** What is decoded before this is moved towards it by a factor, so that it comes after what was written. */
  squeeze: { readonly until: number; readonly factor: number } | undefined;
}

/** Decoding times are no closer, so that they also grow in containers that count milliseconds. */
const LEAST_STEP_MS = 1;

/**
 * Puts the items of a channel one after the other on the timeline of its stream, each where it is told to be. Decoding times
 * grow by a millisecond at least; frames are shown when they were to be. Audio follows the item before sample by sample where it
 * begins within a frame of that, and what would overlap is left out.
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
  #lastShown = -Infinity;

  constructor(sink: TrackSink) {
    this.#sink = sink;
  }

  /** Monotonic milliseconds up to which audio or video was written to be presented. */
  get end(): number {
    return this.#end;
  }

  /** Monotonic milliseconds where the last frame of video is shown. */
  get lastShown(): number {
    return this.#lastShown;
  }

  /** Monotonic milliseconds when a packet that it has written is shown. */
  shownAt({ pts, track: { timebase } }: Packet): number {
    return (1000 * pts * timebase.num) / timebase.den + (this.#origin ?? 0);
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

  /** The first unit of an item. @returns what is added to its times; undefined for audio that something was written for already */
  #enter(lane: Lane, { dts, pts, duration, track: { type, timebase } }: ItemUnit): number | undefined {
    const shift = Math.round(((this.#offset - (this.#origin ?? 0)) * timebase.den) / (1000 * timebase.num));
    const gap = dts + shift - lane.end;
    if (type === 'audio' && duration > 0) {
      if (gap < -duration / 2) return undefined;
      return gap <= duration ? shift - gap : shift;
    }
    const [decoded, shown] = [dts + shift, pts + shift];
    // more frames are reordered than in the item before
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
