import { audioState, type AudioFormat } from '../../containers/elementary/audio.ts';
import { readAudioPart } from '../../containers/flv/audio.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import type { AudioCodec, AudioTrack } from '../../core/track.ts';
import { CodecStates } from './codec-states.ts';
import type { MediaUnit } from './media-unit.ts';
import { UNDECLARED, type DeclaredTrack } from './metadata.ts';

const NANOS_PER_MS = 1_000_000;

/** One audio track of a source: the parts of tags to frames in canonical form. */
export class AudioSource {
  readonly kind = 'audio';
  readonly #id: number;
  readonly #states = new CodecStates(audioState);
  #declared = UNDECLARED;
  #codec: AudioCodec | undefined;
  #format: AudioFormat | undefined;
  #track: AudioTrack | undefined;

  /** @param id of the track in its stream */
  constructor(id: number) {
    this.#id = id;
  }

  /** undefined until the stream told what it is; another object after each change. */
  get track(): AudioTrack | undefined {
    return this.#track;
  }

  declare(declared: DeclaredTrack): void {
    const { bitrate, language } = this.#declared;
    this.#declared = declared;
    if (declared.bitrate !== bitrate || declared.language !== language) this.#describe();
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for what carries no sound, or sound that nobody can decode yet
   * @throws FlvError when the part is malformed or its codec is not taken
   * @throws BitstreamError when its data is malformed
   */
  accept(part: TrackPart, timestamp: number): MediaUnit | undefined {
    const tag = readAudioPart(part);
    if (tag === undefined) return undefined;
    const { codec, packet, data, nanos } = tag;
    const state = this.#states.take(tag);
    const duration = packet === 'frame' ? state.samples(data) : 0;
    if (state.format !== undefined && state.format !== this.#format) {
      this.#codec = codec;
      this.#format = state.format;
      this.#describe();
    }
    if (duration === 0 || this.#track === undefined) return undefined;
    return { track: this.#track, data, key: true, time: timestamp + nanos / NANOS_PER_MS, compositionTime: 0, duration };
  }

  #describe(): void {
    if (this.#codec === undefined || this.#format === undefined) return;
    const { samplerate, channels, config } = this.#format;
    const { bitrate, language } = this.#declared;
    this.#track = Object.freeze({
      id: this.#id, name: 'Audio', type: 'audio', timebase: Object.freeze({ num: 1, den: samplerate }), bypass: false,
      codec: this.#codec, ...(config && { config }), samplerate, channels, bitrate, ...(language && { language }),
    } satisfies AudioTrack);
  }
}
