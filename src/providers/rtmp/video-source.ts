import type { VideoTag } from '../../containers/flv/video.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import type { VideoCodec, VideoTrack } from '../../core/track.ts';
import { CodecStates } from './codec-states.ts';
import { NOTHING_DECLARED, type Declared } from './metadata.ts';
import type { VideoUnit } from './media-unit.ts';
import { videoState, type VideoFormat } from '../../containers/elementary/video.ts';

const NANOS_PER_MS = 1_000_000;

/** Video tags to pictures in canonical form and the track they belong to. */
export class VideoSource {
  declared: Declared = NOTHING_DECLARED;
  readonly #id: number;
  readonly #states = new CodecStates(videoState);
  #format: VideoFormat | undefined;
  #track: VideoTrack | undefined;

  constructor(trackId: number) {
    this.#id = trackId;
  }

  /** undefined until the stream told what it is; another object after each change. */
  get track(): VideoTrack | undefined {
    return this.#track;
  }

  /**
   * @param timestamp of the message, in milliseconds
   * @returns undefined for what carries no picture, or one that nobody can decode yet
   * @throws BitstreamError when the tag's data is malformed
   */
  accept(tag: VideoTag, timestamp: number): VideoUnit | undefined {
    const state = this.#states.take(tag);
    const frame = tag.packet === 'frame' ? state.frame(tag.data) : undefined;
    this.#follow(tag.codec, state.format);
    if (frame === undefined || this.#track === undefined) return undefined;
    return {
      track: this.#track, data: frame.data, key: frame.key,
      time: timestamp + tag.nanos / NANOS_PER_MS, compositionTime: tag.compositionTime,
    };
  }

  #follow(codec: VideoCodec, format: VideoFormat | undefined): void {
    if (format === undefined || format === this.#format) return;
    this.#format = format;
    const { width, height, framerate, videoBitrate } = this.declared;
    this.#track = Object.freeze({
      id: this.#id, name: 'Video', type: 'video', timebase: VIDEO_TIMEBASE, bypass: false, codec,
      ...(format.config && { config: format.config }),
      width: format.width || width, height: format.height || height,
      bitrate: videoBitrate, framerate: framerate || format.framerate, keyFrameInterval: 0,
    } satisfies VideoTrack);
  }
}
