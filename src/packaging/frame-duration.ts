import { parseAudioSpecificConfig } from '../codecs/aac.ts';
import { packetSamples } from '../codecs/opus.ts';
import type { Packet } from '../core/packet.ts';
import type { MediaTrack } from '../core/track.ts';

const DEFAULT_FRAMERATE = 30;
const MIN_FRAMERATE = 1;
const MAX_FRAMERATE = 240;
/** How much one measured step moves the estimate. */
const WEIGHT = 1 / 8;
/** A step beyond this factor of the estimate is a gap or, if it comes again, a new frame rate. */
const SURPRISE = 1.6;
/** A step shorter than this share of the estimate means that the frame rate is not steady. */
const FAST = 0.4;
/** Share by which the mean may differ from the declared duration: timestamps in milliseconds make it waver. */
const AGREEMENT = 0.02;
/** How much one step moves the mean. Small, so that frames dropped from a faster source hardly move it. */
const MEAN_WEIGHT = 1 / 32;
const OPUS_RATE = 48_000;
const AAC_FRAME_SAMPLES = 1024;

/**
 * Predicts how long the newest frame of a track lasts, without waiting for the next one: the duration that the codec
 * fixes, else the source's, else that of the frames before. A video frame lasts until the next one, whatever was
 * predicted; durations above a second are never predicted.
 */
export class FrameDuration {
  readonly #track: MediaTrack;
  /** Samples of an AAC frame at the timebase; 0 for other codecs. */
  readonly #fixed: number;
  /** Ticks by the track's declared frame rate; 0 without one. */
  readonly #declared: number;
  readonly #longest: number;
  readonly #shortest: number;
  #estimate: number;
  /** Slow mean of the steps, compared with the declared duration. */
  #mean: number;
  #surprise = 0;
  #measured = false;
  #steady = true;
  /** Ticks between the newest two frames. */
  #newest = 0;

  constructor(track: MediaTrack) {
    const { den } = track.timebase;
    this.#track = track;
    this.#fixed = fixedDuration(track);
    this.#longest = den / MIN_FRAMERATE;
    this.#shortest = den / MAX_FRAMERATE;
    this.#declared = track.type === 'video' && track.framerate > 0 ? this.#clamp(den / track.framerate) : 0;
    this.#estimate = this.#fixed || this.#declared || den / DEFAULT_FRAMERATE;
    this.#mean = this.#estimate;
  }

  /** Ticks that the newest frame may last until a key frame; a later key frame follows a gap. */
  get longest(): number {
    return Math.max(this.#longest, 2 * this.#newest);
  }

  /** Whether the newest frame is likely to last as long as predicted; if not, only the next one shows. */
  get isSure(): boolean {
    return this.#steady;
  }

  /** Expected ticks of a frame, not rounded: the declared duration while measurements agree, else the measured one. */
  get estimate(): number {
    const agrees = Math.abs(this.#mean - this.#declared) < this.#declared * AGREEMENT;
    return agrees ? this.#declared : this.#estimate;
  }

  /**
   * Predicts the duration of a packet in ticks.
   * @throws BitstreamError for an Opus packet that has no duration
   * @param step ticks since the frame before it; undefined where there is none to compare with
   */
  predict(packet: Packet, step: number | undefined): number {
    if (step !== undefined) this.#learn(step);
    if (this.#fixed > 0) return this.#fixed;
    if (packet.duration > 0 && packet.duration <= this.#longest) return packet.duration;
    if (this.#track.codec === 'OPUS')
      return Math.round((packetSamples(packet.data) * this.#track.timebase.den) / OPUS_RATE);
    return Math.max(1, Math.round(this.estimate));
  }

  #learn(step: number): void {
    if (this.#fixed > 0) return;
    this.#newest = step;
    if (step > this.#longest) {
      this.#steady = false;
      return;
    }
    const taken = this.#clamp(step);
    this.#mean += (taken - this.#mean) * MEAN_WEIGHT;
    const ratio = taken / this.#estimate;
    if (ratio < SURPRISE && ratio > 1 / SURPRISE) {
      this.#estimate += (taken - this.#estimate) * (this.#measured ? WEIGHT : 1 / 2);
      this.#measured = true;
      this.#surprise = 0;
      this.#steady = true;
    } else if (Math.abs(this.#surprise - taken) < taken / 4) {
      this.#estimate = taken;
      this.#surprise = 0;
      this.#steady = true;
    } else {
      this.#surprise = taken;
      this.#steady = ratio < 1 && ratio > FAST;
    }
  }

  #clamp(ticks: number): number {
    return Math.min(this.#longest, Math.max(this.#shortest, ticks));
  }
}

/** Ticks of an AAC frame, whose timebase is the output rate where SBR doubles it; 0 for other codecs. */
function fixedDuration(track: MediaTrack): number {
  if (track.codec !== 'AAC') return 0;
  if (track.config === undefined) return AAC_FRAME_SAMPLES;
  const { samplesPerFrame, samplerate } = parseAudioSpecificConfig(track.config);
  return Math.round((samplesPerFrame * track.timebase.den) / samplerate);
}
