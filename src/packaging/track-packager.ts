import { initSegment } from '../containers/fmp4/init.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import { codecString } from './codec-string.ts';
import { FrameDuration } from './frame-duration.ts';
import { PartBuilder } from './part-builder.ts';
import { Segment, type Init } from './segment.ts';
import { Window } from './window.ts';

/** A moment of the wall clock (milliseconds since the epoch) and the media time, in seconds, it belongs to. */
export interface Anchor {
  readonly wall: number;
  readonly media: number;
}

/** Where all tracks of a stream begin a segment. */
export interface Cut {
  /** Media time in seconds. */
  readonly time: number;
  readonly discontinuity: boolean;
  /** A limit was reached: cut at any frame. */
  readonly forced: boolean;
  readonly anchor: Anchor;
}

export interface PackagerLimits {
  /** Complete segments in a playlist. */
  readonly segmentCount: number;
  /** Seconds that parts of the stream are to last. */
  readonly partTarget: () => number;
}

/** Parts, but for the last of a segment, must last this share of PART-TARGET (RFC 8216bis 4.4.4.9). */
export const MIN_PART_SHARE = 0.85;
/** Share of a part by which its start may be behind the grid without its end moving on. */
const GRID_TOLERANCE = 0.25;

export type Finding = 'next' | 'late' | 'discontinuity';

/** A rate that an AudioSpecificConfig can spell out. */
const MAX_TIMESCALE = 2 ** 24;
/** Part of a frame by which a part may be longer than the target before it is made shorter by a frame. */
const SLACK = 8;
/** Times of two tracks that differ by less are the same. */
export const HAIR_SECONDS = 0.001;
const BACK_SECONDS = 1;
const JUMP_SECONDS = 10;

/** Makes parts and segments of one track, cut where the stream's segmenter says. */
export class TrackPackager {
  readonly window: Window;
  readonly #limits: PackagerLimits;
  readonly #builder: PartBuilder;
  #track: MediaTrack;
  #init: Init;
  #durations: FrameDuration;
  #pending: Cut | undefined;
  #current: Cut | undefined;
  #msn = 0;
  #lastDts: number | undefined;
  /** Seconds added to the source's times, to keep decode times from being negative. */
  #shift = 0;
  #needKey: boolean;
  #longestPart = 0;
  /** The next frame belongs to what follows the pending cut, whatever its time. */
  #broken = false;

  /**
   * @param initVersion the next that the track's id has not had
   * @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used
   */
  constructor(track: MediaTrack, limits: PackagerLimits, initVersion: number) {
    this.window = new Window(limits.segmentCount);
    this.#limits = limits;
    this.#track = track;
    this.#builder = new PartBuilder(track.type);
    this.#init = describe(track, initVersion);
    this.#durations = new FrameDuration(track);
    this.#needKey = track.type === 'video';
  }

  get track(): MediaTrack {
    return this.#track;
  }

  get init(): Init {
    return this.#init;
  }

  get msn(): number {
    return this.#msn;
  }

  /** Seconds that a frame is expected to last. */
  get frameSeconds(): number {
    return this.#durations.estimate / this.#track.timebase.den;
  }

  /** Seconds that no part is longer than (PART-TARGET). */
  get partTarget(): number {
    const target = this.#limits.partTarget();
    const bound = this.#gridded ? Math.floor(target / this.frameSeconds + 1 - 1e-6) * this.frameSeconds : target;
    return Math.max(bound, this.#longestPart);
  }

  get awaitsDiscontinuity(): boolean {
    return this.#pending?.discontinuity === true;
  }

  /** Media time, in seconds, since the growing segment began. */
  elapsed(packet: Packet): number {
    return this.#seconds(packet) - (this.#current?.time ?? 0);
  }

  /** Bytes of the growing segment, its unfinished part included. */
  get openBytes(): number {
    return (this.window.open?.bytes ?? 0) + this.#builder.bytes;
  }

  /** Begins the first segment. */
  start(msn: number, cut: Cut, shift: number): void {
    this.#msn = msn;
    this.#current = cut;
    this.#shift = shift;
    this.window.start(new Segment(msn, this.#init, false, wallClock(cut.anchor, cut.time)));
  }

  /** What a packet is to this track; nothing changes. */
  inspect(packet: Packet): Finding {
    if (packet.track !== this.#track && differs(packet.track as MediaTrack, this.#track)) return 'discontinuity';
    if (this.#lastDts === undefined) return 'next';
    const step = toSeconds(packet.dts - this.#lastDts, this.#track.timebase);
    if (step <= -BACK_SECONDS || step > JUMP_SECONDS) return 'discontinuity';
    return step > 0 ? 'next' : 'late';
  }

  /** Asks for a new segment at a media time. A track that has not reached the cut before gets that one now. */
  cut(cut: Cut): void {
    if (this.#pending !== undefined) this.#startSegment(this.#pending);
    this.#pending = cut;
    const { timebase, type } = this.#track;
    const end = toSeconds(this.#builder.end, timebase) - this.#shift;
    if (type === 'audio' && !this.#builder.empty && !cut.discontinuity && this.#reaches(cut, end)) {
      this.#startSegment(cut);
    }
  }

  /** The frame after this call does not follow the one before. @param shift seconds to add to its times */
  break(shift: number): void {
    this.#broken = true;
    this.#needKey = this.#track.type === 'video';
    this.#shift = shift;
  }

  /**
   * Takes a packet that `inspect` did not call late.
   * @throws UnsupportedTrackError, BitstreamError when it brings a configuration that cannot be used
   */
  push(packet: Packet): void {
    if (packet.track !== this.#track) this.#reconfigure(packet.track as MediaTrack);
    if (this.#needKey && !packet.key) return;
    const current = this.#current as Cut;
    const time = this.#seconds(packet);
    if (!this.#broken && this.#lastDts === undefined && time < current.time - this.frameSeconds / 2) return;
    const pending = this.#pending;
    if (pending !== undefined) {
      const allowed = packet.key || pending.forced;
      if (this.#broken || (allowed && this.#reaches(pending, time))) this.#startSegment(pending, packet.dts);
    }
    this.#needKey = false;
    this.#append(packet);
  }

  #append(packet: Packet): void {
    const builder = this.#builder;
    const { den } = this.#track.timebase;
    const offset = this.#shift * den;
    const dts = packet.dts + offset;
    const pts = (this.#track.type === 'audio' ? packet.dts : packet.pts) + offset;
    const duration = this.#durations.predict(packet, this.#lastDts === undefined ? undefined : packet.dts - this.#lastDts);
    if (!builder.empty && !this.#fits(dts, duration)) {
      // a hole, or slower frames than foreseen: the last frame lasts until this one, where it can
      const target = this.#limits.partTarget() * den;
      this.#closePart(dts <= builder.start + target && dts > builder.end - duration ? dts : builder.end);
    }
    this.#lastDts = packet.dts;
    const segment = this.window.open as Segment;
    if (segment.parts.length === 0 && builder.empty) {
      segment.wallClock = wallClock((this.#current as Cut).anchor, pts / den - this.#shift);
    }
    builder.add(packet, dts, pts, duration);
    if (builder.full || !this.#fits(builder.end, duration)) this.#closePart(builder.end);
  }

  /** Whether the growing part may take a frame of some ticks at a decode time. */
  #fits(dts: number, duration: number): boolean {
    const { den } = this.#track.timebase;
    const target = this.#limits.partTarget() * den;
    const { start } = this.#builder;
    if (!this.#gridded) return dts + duration - start <= target + duration / SLACK;
    const begin = ((this.#current as Cut).time + this.#shift) * den;
    const end = begin + (Math.floor((start - begin) / target + GRID_TOLERANCE) + 1) * target;
    return dts < end - HAIR_SECONDS * den && dts + duration - start <= this.partTarget * den + 0.5;
  }

  /**
   * Sound is cut at the first frame behind where parts of equal length end, so that its parts come with those
   * of the picture; where its frames are too long for that, parts are as long as whole frames fit.
   */
  get #gridded(): boolean {
    const target = this.#limits.partTarget();
    return this.#track.type === 'audio' && this.frameSeconds < target * (1 - MIN_PART_SHARE) * 0.5;
  }

  #closePart(end: number): void {
    if (this.#builder.empty) return;
    const builder = this.#builder;
    const { den } = this.#track.timebase;
    const most = builder.start + Math.floor(this.#limits.partTarget() * den + 1e-6);
    // the jitter of timestamps must not make a part a hair longer than the target
    const hair = this.#durations.estimate / SLACK;
    const built = builder.build(!this.#gridded && end > most && end <= most + hair ? most : end);
    const duration = built.duration / den;
    this.#longestPart = Math.max(this.#longestPart, duration);
    const index = this.window.open?.parts.length ?? 0;
    this.window.add({ index, duration, independent: built.independent, data: built.data });
  }

  /** @param next decode time of the frame that begins it, if that is there */
  #startSegment(cut: Cut, next?: number): void {
    const builder = this.#builder;
    const { den } = this.#track.timebase;
    if (!builder.empty) {
      const at = (next ?? Infinity) + this.#shift * den;
      const target = this.#limits.partTarget() * den;
      // the last frame ends where the next begins, if that is a place where it can
      const exact = !this.#broken && Math.abs(at - builder.end) < this.#durations.estimate && at - builder.start <= target;
      this.#closePart(exact ? at : builder.end);
    }
    const open = this.window.open;
    if (open !== undefined && open.parts.length === 0) {
      open.duration = Math.max(this.frameSeconds, cut.discontinuity ? 0 : cut.time - (this.#current as Cut).time);
    }
    this.window.complete();
    if (this.#broken || cut.discontinuity) builder.breakTimeline();
    this.#broken = false;
    this.#current = cut;
    this.#pending = undefined;
    this.#msn++;
    this.window.start(new Segment(this.#msn, this.#init, cut.discontinuity, wallClock(cut.anchor, cut.time)));
  }

  #reconfigure(track: MediaTrack): void {
    const changed = differs(track, this.#track);
    const init = changed ? describe(track, this.#init.version + 1) : this.#init;
    if (!changed) {
      this.#track = track;
      return;
    }
    this.#closePart(this.#builder.end);
    this.#track = track;
    this.#init = init;
    this.#durations = new FrameDuration(track);
    this.#lastDts = undefined;
    this.#needKey = track.type === 'video';
    this.#broken = true;
  }

  #reaches(cut: Cut, time: number): boolean {
    return time >= cut.time - (this.#track.type === 'audio' ? HAIR_SECONDS : this.frameSeconds / 2);
  }

  #seconds(packet: Packet): number {
    return toSeconds(packet.dts, this.#track.timebase);
  }
}

/** @throws UnsupportedTrackError, BitstreamError when the track's configuration cannot be used */
export function describe(track: MediaTrack, version: number): Init {
  const { den } = track.timebase;
  if (!(den > 0 && den <= MAX_TIMESCALE)) throw new UnsupportedTrackError(`a timebase of 1/${den} s does not fit`);
  return { version, track, codec: codecString(track), data: initSegment(track) };
}

/** Whether decoders must be set up anew. */
function differs(one: MediaTrack, other: MediaTrack): boolean {
  if (one.codec !== other.codec || one.timebase.den !== other.timebase.den) return true;
  if (one.config === undefined || other.config === undefined) return one.config !== other.config;
  return !one.config.equals(other.config);
}

function wallClock(anchor: Anchor, media: number): number {
  return anchor.wall + (media - anchor.media) * 1000;
}
