import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';
import type { Track } from './track.ts';

/** What was measured on a track; times are media time, so bursts do not distort rates. */
export interface Measured {
  /** Bits per second over the life of the track, and over its last full second. */
  readonly bitrateAvg: number;
  readonly bitrateLatest: number;
  readonly framerateAvg: number;
  readonly framerateLatest: number;
  /** Frames from key frame to key frame. */
  readonly keyFrameIntervalAvg: number;
  readonly keyFrameIntervalLatest: number;
  readonly hasBframes: boolean;
  readonly deltaFramesSinceLastKeyFrame: number;
  readonly configChangeCount: number;
  readonly lastConfigChanged: Date | undefined;
  readonly maxWidth: number;
  readonly maxHeight: number;
  readonly maxFramerate: number;
}

const WINDOW_SECONDS = 1;
/** A step of dts beyond this is a jump of the source's clock, not time that passed. */
const JUMP_SECONDS = 10;

/** Measures one track (all its successive configurations) at a few additions a packet. */
export class TrackMeter {
  #track: Track;
  #bytes = 0;
  #frames = 0;
  #seconds = 0;
  #lastDts: number | undefined;
  #lastPts = -Infinity;
  #windowBytes = 0;
  #windowFrames = 0;
  #windowSeconds = 0;
  #bitrateLatest = 0;
  #framerateLatest = 0;
  #gopFrames = 0;
  #gops = 0;
  #gopFramesTotal = 0;
  #gopLatest = 0;
  #sawKey = false;
  #hasBframes = false;
  #changes = 0;
  #changed: Date | undefined;
  #maxWidth = 0;
  #maxHeight = 0;
  #maxFramerate = 0;

  constructor(track: Track) {
    this.#track = track;
    this.#noteSize(track);
  }

  /** Called when the track is replaced by another configuration with the same id. */
  configChanged(track: Track): void {
    this.#track = track;
    this.#changes++;
    this.#changed = new Date();
    this.#lastDts = undefined;
    this.#lastPts = -Infinity;
    this.#noteSize(track);
  }

  add(packet: Packet): void {
    if (this.#lastDts !== undefined) {
      const step = toSeconds(packet.dts - this.#lastDts, this.#track.timebase);
      if (step >= 0 && step < JUMP_SECONDS) {
        this.#seconds += step;
        this.#windowSeconds += step;
      }
      if (this.#windowSeconds >= WINDOW_SECONDS) this.#closeWindow();
    }
    this.#lastDts = packet.dts;
    this.#bytes += packet.data.length;
    this.#frames++;
    this.#windowBytes += packet.data.length;
    this.#windowFrames++;
    if (packet.pts < this.#lastPts) this.#hasBframes = true;
    this.#lastPts = packet.pts;
    if (!packet.key) {
      this.#gopFrames++;
    } else {
      if (this.#sawKey) {
        this.#gopLatest = this.#gopFrames;
        this.#gopFramesTotal += this.#gopFrames;
        this.#gops++;
      }
      this.#sawKey = true;
      this.#gopFrames = 1;
    }
  }

  read(): Measured {
    const { type } = this.#track;
    return {
      bitrateAvg: this.#seconds > 0 ? Math.round((this.#bytes * 8) / this.#seconds) : 0,
      bitrateLatest: this.#bitrateLatest,
      framerateAvg: this.#seconds > 0 ? (this.#frames - 1) / this.#seconds : 0,
      framerateLatest: this.#framerateLatest,
      keyFrameIntervalAvg: this.#gops > 0 ? this.#gopFramesTotal / this.#gops : 0,
      keyFrameIntervalLatest: this.#gopLatest,
      hasBframes: this.#hasBframes,
      deltaFramesSinceLastKeyFrame: type === 'video' ? Math.max(0, this.#gopFrames - 1) : 0,
      configChangeCount: this.#changes,
      lastConfigChanged: this.#changed,
      maxWidth: this.#maxWidth,
      maxHeight: this.#maxHeight,
      maxFramerate: this.#maxFramerate,
    };
  }

  #closeWindow(): void {
    this.#bitrateLatest = Math.round((this.#windowBytes * 8) / this.#windowSeconds);
    this.#framerateLatest = this.#windowFrames / this.#windowSeconds;
    this.#maxFramerate = Math.max(this.#maxFramerate, this.#framerateLatest);
    this.#windowBytes = 0;
    this.#windowFrames = 0;
    this.#windowSeconds = 0;
  }

  #noteSize(track: Track): void {
    if (track.type !== 'video') return;
    this.#maxWidth = Math.max(this.#maxWidth, track.width);
    this.#maxHeight = Math.max(this.#maxHeight, track.height);
    this.#maxFramerate = Math.max(this.#maxFramerate, track.framerate);
  }
}
