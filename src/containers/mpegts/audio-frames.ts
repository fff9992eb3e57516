import { BitstreamError } from '../../codecs/bits.ts';
import type { AudioFrame, AudioSyntax } from './audio-syntax.ts';
import { CLOCK } from './stream-types.ts';

const EMPTY = Buffer.alloc(0);
/** Largest frame of any form, which is that of LOAS. */
const MAX_FRAME_BYTES = 8192 + 2;
const TICKS_PER_SECOND = CLOCK.timebase.den;
/** Most false starts of frames in a PES packet; after a loss, one byte in 256 looks like a start. */
const MAX_FALSE_SYNCS = 1024;
/** Most frames per second of arrival. A second of audio has 50, or 400 of the shortest. */
const MAX_FRAMES = 2000;
const FRAMES_WINDOW_MS = 1000;

export interface AudioFramesEvents {
  /** @param time on CLOCK, may be a fraction */
  frame(frame: AudioFrame, time: number): void;
  fault(reason: string): void;
}

/**
 * Splits the payload of PES packets into audio frames, which may continue in the next packet. The time of a PES packet
 * is that of the first frame that begins in it; later ones follow from the durations.
 */
export class AudioFrames {
  readonly #syntax: AudioSyntax;
  readonly #events: AudioFramesEvents;
  readonly #maxFrames: number;
  #rest: Buffer = EMPTY;
  /** Whether frames follow each other without other bytes, so that a start needs no confirmation. */
  #inStep = false;
  #time: number | undefined;
  #falseSyncs = 0;
  #frames = 0;
  #framesSince = 0;

  /** @param isFile whether it is read from a file, faster than it plays: there is no limit on the frames of a second then */
  constructor(syntax: AudioSyntax, events: AudioFramesEvents, isFile = false) {
    this.#syntax = syntax;
    this.#events = events;
    this.#maxFrames = isFile ? Infinity : MAX_FRAMES;
  }

  /**
   * @param payload of a PES packet; it is not kept
   * @param pts of its header
   */
  push(payload: Buffer, pts: number | undefined): void {
    const carried = this.#rest.length;
    const data = carried === 0 ? payload : Buffer.concat([this.#rest, payload]);
    this.#rest = EMPTY;
    let carriedTime = pts;
    this.#falseSyncs = 0;
    for (let at = 0; at < data.length;) {
      const bytes = this.#bytes(data, at);
      if (bytes !== 0 && carriedTime !== undefined && at >= carried) {
        this.#time = carriedTime;
        carriedTime = undefined;
      }
      if (bytes === undefined || at + bytes > data.length) {
        if (data.length - at <= MAX_FRAME_BYTES) this.#rest = Buffer.from(data.subarray(at));
        else this.lost();
        return;
      }
      if (bytes === 0) {
        const next = data.indexOf(this.#syntax.sync, at + 1);
        if (next < 0) return;
        at = next;
      } else {
        this.#emit(data.subarray(at, at + bytes));
        at += bytes;
      }
      if (this.#isTooMuch()) return;
    }
  }

  lost(): void {
    this.#rest = EMPTY;
    this.#inStep = false;
    this.#time = undefined;
  }

  /** @returns 0 when no frame starts there */
  #bytes(data: Buffer, at: number): number | undefined {
    const bytes = this.#syntax.bytes(data, at);
    if (bytes === undefined) return undefined;
    // a start among other bytes counts only if another frame, or the end, follows
    const isFrame =
      bytes > 0 && (this.#inStep || at + bytes >= data.length || this.#syntax.bytes(data, at + bytes) !== 0);
    if (!isFrame) {
      if (this.#inStep || at === 0) this.#events.fault('audio data without audio frames');
      this.#falseSyncs++;
    }
    this.#inStep = isFrame;
    return isFrame ? bytes : 0;
  }

  /** Whether to skip the rest of a packet, to bound its cost. */
  #isTooMuch(): boolean {
    const isNoise = this.#falseSyncs > MAX_FALSE_SYNCS;
    if (!isNoise && !this.#isTooFast()) return false;
    this.#events.fault(isNoise ? 'audio frames among too many other bytes' : 'too many audio frames at once');
    this.lost();
    return true;
  }

  #isTooFast(): boolean {
    if (this.#frames <= this.#maxFrames) return false;
    const now = performance.now();
    if (now - this.#framesSince < FRAMES_WINDOW_MS) return true;
    this.#framesSince = now;
    this.#frames = 0;
    return false;
  }

  #emit(bytes: Buffer): void {
    try {
      const frames = this.#syntax.frames(bytes);
      this.#frames += Math.max(1, frames.length);
      for (const frame of frames) {
        if (this.#time === undefined) continue;
        this.#events.frame(frame, this.#time);
        this.#time += frame.seconds * TICKS_PER_SECOND;
      }
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      this.#frames++;
      this.#events.fault(`audio that cannot be decoded: ${error.message}`);
    }
  }
}
