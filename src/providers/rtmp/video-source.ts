import { BitstreamError } from '../../codecs/bits.ts';
import { videoState, type VideoFormat } from '../../containers/elementary/video.ts';
import type { TrackPart } from '../../containers/flv/extended.ts';
import { readVideoPart } from '../../containers/flv/video.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { VideoCodec, VideoTrack } from '../../core/track.ts';
import { CodecStates } from './codec-states.ts';
import type { MediaUnit } from './media-unit.ts';
import { UNDECLARED, type DeclaredTrack } from './metadata.ts';

const NANOS_PER_MS = 1_000_000;

/** One video track of a source: the parts of tags to pictures in canonical form. */
export class VideoSource {
  readonly kind = 'video';
  readonly #id: number;
  readonly #states = new CodecStates(videoState);
  #declared = UNDECLARED;
  #codec: VideoCodec | undefined;
  #format: VideoFormat | undefined;
  #track: VideoTrack | undefined;

  /** @param id of the track in its stream */
  constructor(id: number) {
    this.#id = id;
  }

  /** undefined until the stream told what it is; another object after each change. */
  get track(): VideoTrack | undefined {
    return this.#track;
  }

  declare(declared: DeclaredTrack): void {
    const { width, height, framerate, bitrate } = this.#declared;
    this.#declared = declared;
    const same = declared.width === width && declared.height === height
      && declared.framerate === framerate && declared.bitrate === bitrate;
    if (!same) this.#describe();
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for what carries no picture
   * @throws FlvError when the part is malformed or its codec is not taken
   * @throws BitstreamError when its data is malformed, or nobody can decode it yet
   */
  accept(part: TrackPart, timestamp: number): MediaUnit | undefined {
    const tag = readVideoPart(part);
    if (tag === undefined) return undefined;
    const { codec, packet, nanos, compositionTime } = tag;
    const state = this.#states.take(tag);
    const frame = packet === 'frame' ? state.frame(tag.data) : undefined;
    if (state.format !== undefined && state.format !== this.#format) {
      this.#codec = codec;
      this.#format = state.format;
      this.#describe();
    }
    if (packet !== 'frame') return undefined;
    if (frame === undefined || this.#track === undefined) throw new BitstreamError('video frame that cannot be decoded');
    const { data, key } = frame;
    return { track: this.#track, data, key, time: timestamp + nanos / NANOS_PER_MS, compositionTime, duration: 0 };
  }

  #describe(): void {
    if (this.#codec === undefined || this.#format === undefined) return;
    const { config, width, height, framerate } = this.#format;
    const declared = this.#declared;
    this.#track = Object.freeze({
      id: this.#id, name: 'Video', type: 'video', timebase: VIDEO_TIMEBASE, bypass: false, codec: this.#codec,
      ...(config && { config }),
      width: width || declared.width, height: height || declared.height,
      bitrate: declared.bitrate, framerate: declared.framerate || framerate, keyFrameInterval: 0,
    } satisfies VideoTrack);
  }
}
