import { BitstreamError } from '../../codecs/bits.ts';
import { videoState, type VideoFormat, type VideoState } from '../../containers/elementary/video.ts';
import { lookOf } from '../../codecs/vui.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { VideoCodec, VideoTrack } from '../../core/track.ts';
import { UNDECLARED, type DeclaredTrack } from './declared.ts';
import type { MediaUnit } from './media-unit.ts';
import { MAX_RECORD_BYTES } from './record.ts';

export interface VideoIntakeOptions {
  readonly id: number;
  readonly codec: VideoCodec;
  readonly name?: string;
  readonly declared?: DeclaredTrack;
}

/** Converts the data of one video track, in one codec, to frames in canonical form. */
export class VideoIntake {
  readonly kind = 'video';
  readonly codec: VideoCodec;
  readonly #id: number;
  readonly #name: string;
  readonly #state: VideoState;
  #declared: DeclaredTrack;
  #format: VideoFormat | undefined;
  #track: VideoTrack | undefined;

  constructor({ id, codec, name = 'Video', declared = UNDECLARED }: VideoIntakeOptions) {
    this.codec = codec;
    this.#id = id;
    this.#name = name;
    this.#declared = declared;
    this.#state = videoState(codec);
  }

  /** undefined until the format is known; a new object after each change. */
  get track(): VideoTrack | undefined {
    return this.#track;
  }

  /** Sets what the source declares about the track outside its bitstream. */
  declare(declared: DeclaredTrack): void {
    const { width, height, framerate, bitrate } = this.#declared;
    this.#declared = declared;
    const same =
      declared.width === width &&
      declared.height === height &&
      declared.framerate === framerate &&
      declared.bitrate === bitrate;
    if (!same) this.#describe();
  }

  /** Applies a decoder configuration record. @throws BitstreamError when it is malformed */
  configure(record: Buffer): void {
    if (record.length > MAX_RECORD_BYTES) throw new BitstreamError(`the ${this.codec} configuration is too long`);
    this.#state.configure(record);
    this.#follow();
  }

  /**
   * @param data a frame, as VideoState.frame() takes it
   * @param time, compositionTime as MediaUnit has them
   * @throws BitstreamError when it is malformed, or the format is not known yet
   */
  frame(data: Buffer, time: number, compositionTime: number): MediaUnit {
    const frame = this.#state.frame(data);
    this.#follow();
    if (frame === undefined || this.#track === undefined)
      throw new BitstreamError('video frame that cannot be decoded');
    return { track: this.#track, data: frame.data, key: frame.key, time, compositionTime, duration: 0 };
  }

  #follow(): void {
    const { format } = this.#state;
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    this.#describe();
  }

  #describe(): void {
    if (this.#format === undefined) return;
    const { config, width, height, framerate, inBandSets } = this.#format;
    const declared = this.#declared;
    this.#track = Object.freeze({
      id: this.#id,
      name: this.#name,
      type: 'video',
      timebase: VIDEO_TIMEBASE,
      bypass: false,
      codec: this.codec,
      ...(config && { config }),
      ...(inBandSets && { inBandSets }),
      ...lookOf(this.#format),
      width: width || declared.width,
      height: height || declared.height,
      bitrate: declared.bitrate,
      framerate: declared.framerate || framerate,
      keyFrameInterval: 0,
    } satisfies VideoTrack);
  }
}
