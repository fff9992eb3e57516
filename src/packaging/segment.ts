import type { MediaTrack } from '../core/track.ts';
import type { MediaClock } from './wall-time.ts';

/** What decoders need before the segments that name it. */
export interface Init {
  /** 0 for the first configuration of a track id, and never the same for another. */
  readonly version: number;
  readonly track: MediaTrack;
  readonly codec: string;
  readonly data: Buffer;
}

/** @typeParam Data what parts are made of: bytes, or frames that can become bytes */
export interface Part<Data = Buffer> {
  /** Position in its segment, from 0. */
  readonly index: number;
  /** Seconds. */
  readonly duration: number;
  /** Starts with a frame that decoding can start at. */
  readonly independent: boolean;
  readonly data: Data;
  /** Of media that it keeps. */
  readonly bytes: number;
}

/** A run of parts with one configuration. Growing until `complete`. */
export class Segment<Data = Buffer> {
  /** Media sequence number. */
  readonly msn: number;
  readonly init: Init;
  /** The timeline or the configuration changed before it. */
  readonly discontinuity: boolean;
  readonly parts: Part<Data>[] = [];
  /** Its first presentation time, in seconds: where its cut is, until a frame has come. */
  presentation: number;
  /** Seconds. */
  duration = 0;
  bytes = 0;
  complete = false;
  readonly #clock: MediaClock;

  constructor(msn: number, init: Init, discontinuity: boolean, clock: MediaClock, presentation: number) {
    this.msn = msn;
    this.init = init;
    this.discontinuity = discontinuity;
    this.#clock = clock;
    this.presentation = presentation;
  }

  /** Wall clock at its first presentation time, in milliseconds since the epoch. */
  get wallClock(): number {
    return this.#clock.at(this.presentation);
  }

  /** Nothing came in its time: it stands in the playlist to keep the numbers of all tracks in step. */
  get gap(): boolean {
    return this.complete && this.parts.length === 0;
  }

  add(part: Part<Data>): void {
    this.parts.push(part);
    this.duration += part.duration;
    this.bytes += part.bytes;
  }
}
