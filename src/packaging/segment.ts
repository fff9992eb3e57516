import type { MediaTrack } from '../core/track.ts';
import type { MediaClock } from './wall-time.ts';

/** Initialization that decoders need before the segments that name it. */
export interface Init {
  /** 0 for the first configuration of a track id; never reused. */
  readonly version: number;
  readonly track: MediaTrack;
  readonly codec: string;
  readonly data: Buffer;
  /** Attributes of the keys (EXT-X-KEY) with which its segments are encrypted; absent for segments in clear. */
  readonly keys?: readonly string[];
  /** Attributes of EXT-X-SESSION-KEY for them. */
  readonly sessionKeys?: readonly string[];
}

/** @typeParam Data content of parts: bytes, or frames that are written later */
export interface Part<Data = Buffer> {
  /** Position in the segment, from 0. */
  readonly index: number;
  /** Seconds. */
  readonly duration: number;
  /** Whether decoding can start at the first frame. */
  readonly independent: boolean;
  readonly data: Data;
  /** Bytes of media held. */
  readonly bytes: number;
}

/** Consecutive parts with one configuration, growing until `complete`. */
export class Segment<Data = Buffer> {
  /** Media sequence number. */
  readonly msn: number;
  readonly init: Init;
  /** The timeline or the configuration changed before it. */
  readonly discontinuity: boolean;
  readonly parts: Part<Data>[] = [];
  /** First presentation time, in seconds; the time of the cut until a frame arrives. */
  presentation: number;
  /** Seconds. */
  duration = 0;
  bytes = 0;
  complete = false;
  readonly clock: MediaClock;

  constructor(msn: number, init: Init, discontinuity: boolean, clock: MediaClock, presentation: number) {
    this.msn = msn;
    this.init = init;
    this.discontinuity = discontinuity;
    this.clock = clock;
    this.presentation = presentation;
  }

  /** Wall clock at `presentation`, in milliseconds since the epoch. */
  get wallClock(): number {
    return this.clock.at(this.presentation);
  }

  /** Whether the segment has no media. It is listed so that sequence numbers agree on all tracks. */
  get gap(): boolean {
    return this.complete && this.parts.length === 0;
  }

  add(part: Part<Data>): void {
    this.parts.push(part);
    this.duration += part.duration;
    this.bytes += part.bytes;
  }
}
