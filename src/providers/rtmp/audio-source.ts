import type { AudioTag } from '../../containers/flv/audio.ts';
import type { AudioCodec, AudioTrack } from '../../core/track.ts';
import { audioState, type AudioFormat } from '../../containers/elementary/audio.ts';
import { CodecStates } from './codec-states.ts';
import type { AudioUnit } from './media-unit.ts';
import { NOTHING_DECLARED, type Declared } from './metadata.ts';

const NANOS_PER_MS = 1_000_000;

/** Audio tags to frames in canonical form and the track they belong to. */
export class AudioSource {
  declared: Declared = NOTHING_DECLARED;
  readonly #id: number;
  readonly #states = new CodecStates(audioState);
  #format: AudioFormat | undefined;
  #track: AudioTrack | undefined;

  constructor(trackId: number) {
    this.#id = trackId;
  }

  /** undefined until the stream told what it is; another object after each change. */
  get track(): AudioTrack | undefined {
    return this.#track;
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for what carries no sound, or sound that nobody can decode yet
   * @throws BitstreamError when the tag's data is malformed
   */
  accept(tag: AudioTag, timestamp: number): AudioUnit | undefined {
    const state = this.#states.take(tag);
    const duration = tag.packet === 'frame' ? state.samples(tag.data) : 0;
    this.#follow(tag.codec, state.format);
    if (duration === 0 || this.#track === undefined) return undefined;
    return { track: this.#track, data: tag.data, time: timestamp + tag.nanos / NANOS_PER_MS, duration };
  }

  #follow(codec: AudioCodec, format: AudioFormat | undefined): void {
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    const { samplerate, channels, config } = format;
    this.#track = Object.freeze({
      id: this.#id, name: 'Audio', type: 'audio', timebase: Object.freeze({ num: 1, den: samplerate }), bypass: false,
      codec, ...(config && { config }), samplerate, channels, bitrate: this.declared.audioBitrate,
    } satisfies AudioTrack);
  }
}
