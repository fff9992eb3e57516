import { BitstreamError } from '../../codecs/bits.ts';
import { readAudioPart } from '../../containers/flv/audio.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import type { AudioTrack } from '../../core/track.ts';
import { AudioIntake } from '../intake/audio-intake.ts';
import { UNDECLARED, type DeclaredTrack } from '../intake/declared.ts';
import type { MediaUnit } from '../intake/media-unit.ts';

const NANOS_PER_MS = 1_000_000;

/** One audio track of a source: the parts of tags to frames in canonical form. */
export class AudioSource {
  readonly kind = 'audio';
  readonly #id: number;
  #declared = UNDECLARED;
  #intake: AudioIntake | undefined;
  #track: AudioTrack | undefined;
  #saidUnknown = false;

  /** @param id of the track in its stream */
  constructor(id: number) {
    this.#id = id;
  }

  /** Undefined until the configuration is known; another object after each change. */
  get track(): AudioTrack | undefined {
    return this.#intake?.track ?? this.#track;
  }

  declare(declared: DeclaredTrack): void {
    this.#declared = declared;
    this.#intake?.declare(declared);
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for a part without audio, or with audio whose configuration is not known yet
   * @throws FlvError when the part is malformed or its codec is not supported
   * @throws BitstreamError when its data is malformed
   */
  accept(part: TrackPart, timestamp: number): MediaUnit | undefined {
    const tag = readAudioPart(part);
    if (tag === undefined) return undefined;
    const { codec, packet, data, nanos } = tag;
    if (this.#intake?.codec !== codec) {
      this.#track = this.track;
      this.#intake = new AudioIntake({ id: this.#id, codec, declared: this.#declared });
    }
    if (packet === 'config') this.#intake.configure(data);
    if (packet !== 'frame') return undefined;
    const unit = this.#intake.frame(data, timestamp + nanos / NANOS_PER_MS);
    if (data.length > 0 && this.#intake.track === undefined && !this.#saidUnknown) {
      this.#saidUnknown = true;
      throw new BitstreamError(`${codec} without its sequence header: there will be no audio until it comes`);
    }
    return unit;
  }
}
