import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';
import { sameFormat, type Track } from './track.ts';

/** Measurements of a track; times are media time, so bursts do not distort rates. */
export interface Measured {
  /** All that was measured of the track, whatever its times. */
  readonly bytes: number;
  readonly frames: number;
  /** Bits per second over the life of the track, and over its last full second. */
  readonly bitrateAvg: number;
  readonly bitrateLatest: number;
  readonly framerateAvg: number;
  readonly framerateLatest: number;
  /** Frames from key frame to key frame. */
  readonly keyFrameIntervalAvg: number;
  readonly keyFrameIntervalLatest: number;
  readonly hasBframes: boolean;
  /** Kind of the latest key frames: closed as IDR frames are, or open (Packet.key); `none` until one has come. */
  readonly keyFrames: 'closed' | 'open' | 'none';
  readonly deltaFramesSinceLastKeyFrame: number;
  readonly configChangeCount: number;
  readonly lastConfigChanged: Date | undefined;
  readonly maxWidth: number;
  readonly maxHeight: number;
  readonly maxFramerate: number;
}

/**
 * Seconds between key frames: between the last two, or since the last one where that is longer already; 0 while unknown.
 */
export function keyFrameSeconds(measured: Measured): number {
  const rate = measured.framerateLatest || measured.framerateAvg;
  const frames = Math.max(measured.keyFrameIntervalLatest, measured.deltaFramesSinceLastKeyFrame);
  return rate > 0 ? frames / rate : 0;
}

const WINDOW_SECONDS = 1;
/** A step of dts beyond this is a jump of the source's clock, not time that passed. */
const JUMP_SECONDS = 10;

/** Measures one track (all its successive configurations) at a few additions a packet. */
export class TrackMeter {
  #track: Track;
  /** Totals of the packets whose time until the next one is known, the open window included. */
  #bytes = 0;
  #frames = 0;
  #seconds = 0;
  #last: Packet | undefined;
  #allBytes = 0;
  #allFrames = 0;
  #windowBytes = 0;
  #windowFrames = 0;
  #windowTicks = 0;
  #bitrateLatest = 0;
  #framerateLatest = 0;
  #gopFrames = 0;
  #gops = 0;
  #gopFramesTotal = 0;
  #gopLatest = 0;
  #sawKey = false;
  #hasBframes = false;
  #keyFrames: Measured['keyFrames'] = 'none';
  #changes = 0;
  #changed: Date | undefined;
  #maxWidth = 0;
  #maxHeight = 0;
  #maxFramerate = 0;

  constructor(track: Track) {
    this.#track = track;
    this.#noteSize(track);
  }

  /** Called when another object takes the track's id: with another format, it is another configuration. */
  replaced(track: Track): void {
    if (!sameFormat(track, this.#track)) {
      this.#seconds += this.#resetWindow();
      this.#changes++;
      this.#changed = new Date();
      this.#last = undefined;
      this.#hasBframes = false;
    }
    this.#track = track;
    this.#noteSize(track);
  }

  add(packet: Packet): void {
    if (this.#last !== undefined) this.#step(this.#last, packet);
    this.#last = packet;
    this.#allBytes += packet.data.length;
    this.#allFrames++;
    this.#windowBytes += packet.data.length;
    this.#windowFrames++;
    if (!packet.key) {
      this.#gopFrames++;
    } else {
      if (this.#sawKey) {
        this.#gopLatest = this.#gopFrames;
        this.#gopFramesTotal += this.#gopFrames;
        this.#gops++;
      }
      this.#sawKey = true;
      this.#keyFrames = packet.key === 'open' ? 'open' : 'closed';
      this.#gopFrames = 1;
    }
  }

  read(): Measured {
    const { type, timebase } = this.#track;
    const seconds = this.#seconds + toSeconds(this.#windowTicks, timebase);
    return {
      bytes: this.#allBytes,
      frames: this.#allFrames,
      bitrateAvg: seconds > 0 ? Math.round((this.#bytes * 8) / seconds) : 0,
      bitrateLatest: this.#bitrateLatest,
      framerateAvg: seconds > 0 ? this.#frames / seconds : 0,
      framerateLatest: this.#framerateLatest,
      keyFrameIntervalAvg: this.#gops > 0 ? this.#gopFramesTotal / this.#gops : 0,
      keyFrameIntervalLatest: this.#gopLatest,
      hasBframes: this.#hasBframes,
      keyFrames: this.#keyFrames,
      deltaFramesSinceLastKeyFrame: type === 'video' ? this.#gopFrames - Number(this.#sawKey) : 0,
      configChangeCount: this.#changes,
      lastConfigChanged: this.#changed,
      maxWidth: this.#maxWidth,
      maxHeight: this.#maxHeight,
      maxFramerate: this.#maxFramerate,
    };
  }

  #step(last: Packet, packet: Packet): void {
    const ticks = packet.dts - last.dts;
    const { timebase } = this.#track;
    if (ticks < 0 || toSeconds(ticks, timebase) >= JUMP_SECONDS) return;
    this.#bytes += last.data.length;
    this.#frames++;
    if (packet.pts < last.pts) this.#hasBframes = true;
    this.#windowTicks += ticks;
    if (toSeconds(this.#windowTicks, timebase) >= WINDOW_SECONDS) this.#closeWindow();
  }

  #closeWindow(): void {
    const [bytes, frames] = [this.#windowBytes, this.#windowFrames];
    const seconds = this.#resetWindow();
    this.#seconds += seconds;
    this.#bitrateLatest = Math.round((bytes * 8) / seconds);
    this.#framerateLatest = frames / seconds;
    this.#maxFramerate = Math.max(this.#maxFramerate, this.#framerateLatest);
  }

  /** @returns its seconds */
  #resetWindow(): number {
    const seconds = toSeconds(this.#windowTicks, this.#track.timebase);
    this.#windowBytes = 0;
    this.#windowFrames = 0;
    this.#windowTicks = 0;
    return seconds;
  }

  #noteSize(track: Track): void {
    if (track.type !== 'video') return;
    this.#maxWidth = Math.max(this.#maxWidth, track.width);
    this.#maxHeight = Math.max(this.#maxHeight, track.height);
    this.#maxFramerate = Math.max(this.#maxFramerate, track.framerate);
  }
}
