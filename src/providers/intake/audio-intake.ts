import { adtsBytes, parseAdtsHeader } from '../../codecs/aac-adts.ts';
import { configOfAdts } from '../../codecs/aac-program.ts';
import { BitstreamError } from '../../codecs/bits.ts';
import { audioState, type AudioFormat, type AudioState, type PcmForm } from '../../containers/elementary/audio.ts';
import type { AudioCodec, AudioTrack } from '../../core/track.ts';
import { UNDECLARED, type DeclaredTrack } from './declared.ts';
import type { MediaUnit } from './media-unit.ts';
import { MAX_RECORD_BYTES } from './record.ts';

export interface AudioIntakeOptions {
  readonly id: number;
  readonly codec: AudioCodec;
  readonly name?: string;
  readonly characteristics?: string;
  readonly declared?: DeclaredTrack;
  /** Form of G.711; 8000 Hz mono by default. */
  readonly pcm?: PcmForm;
}

/** Converts the data of one audio track, in one codec, to frames in canonical form. */
export class AudioIntake {
  readonly kind = 'audio';
  readonly codec: AudioCodec;
  readonly #options: AudioIntakeOptions;
  readonly #state: AudioState;
  #declared: DeclaredTrack;
  #format: AudioFormat | undefined;
  #track: AudioTrack | undefined;

  constructor(options: AudioIntakeOptions) {
    this.codec = options.codec;
    this.#options = options;
    this.#declared = options.declared ?? UNDECLARED;
    this.#state = audioState(options.codec, options.pcm);
  }

  /** undefined until the format is known; a new object after each change. */
  get track(): AudioTrack | undefined {
    return this.#track;
  }

  /** Sets what the source declares about the track outside its bitstream. */
  declare(declared: DeclaredTrack): void {
    const { bitrate, language } = this.#declared;
    this.#declared = declared;
    if (declared.bitrate !== bitrate || declared.language !== language) this.#describe();
  }

  /** Applies the codec configuration. @throws BitstreamError when it is malformed */
  configure(header: Buffer): void {
    if (header.length > MAX_RECORD_BYTES) throw new BitstreamError(`the ${this.codec} configuration is too long`);
    this.#state.configure(header);
    this.#follow();
  }

  /**
   * @param data a frame in the canonical form of the codec, or AAC as ADTS
   * @param time as MediaUnit has it
   * @returns undefined when the data has no samples, or the format is not known yet
   * @throws BitstreamError when it is malformed
   */
  frame(data: Buffer, time: number): MediaUnit | undefined {
    const raw = this.codec === 'AAC' ? this.#withoutAdts(data) : data;
    const duration = this.#state.samples(raw);
    this.#follow();
    if (duration === 0 || this.#track === undefined) return undefined;
    return { track: this.#track, data: raw, key: true, time, compositionTime: 0, duration };
  }

  /**
   * Removes the ADTS header that some encoders put in front of each frame where their protocol has none, with or without
   * a configuration besides. No raw frame begins like one: it would end with its first element (ISO/IEC 14496-3 4.5.2.1,
   * ID_END).
   * @throws BitstreamError when the header has no valid format, or several frames come at once
   */
  #withoutAdts(data: Buffer): Buffer {
    const bytes = adtsBytes(data, 0) ?? 0;
    if (bytes === 0 || bytes > data.length) return data;
    if (bytes < data.length) throw new BitstreamError('several ADTS frames come as one');
    const header = parseAdtsHeader(data);
    const raw = data.subarray(header.headerLength);
    // a configuration says more than the headers do
    if (this.#state.format === undefined) this.#state.configure(configOfAdts(header, raw));
    return raw;
  }

  #follow(): void {
    const { format } = this.#state;
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    this.#describe();
  }

  #describe(): void {
    if (this.#format === undefined) return;
    const { samplerate, channels, config } = this.#format;
    const { id, name = 'Audio', characteristics } = this.#options;
    const { bitrate, language } = this.#declared;
    this.#track = Object.freeze({
      id,
      name,
      type: 'audio',
      timebase: Object.freeze({ num: 1, den: samplerate }),
      bypass: false,
      codec: this.codec,
      ...(config && { config }),
      samplerate,
      channels,
      bitrate,
      ...(language && { language }),
      ...(characteristics && { characteristics }),
    } satisfies AudioTrack);
  }
}
