import { isDeepStrictEqual } from 'node:util';
import {
  sameFormat,
  type AudioCodec,
  type AudioTrack,
  type ImageCodec,
  type VideoCodec,
  type VideoTrack,
} from '../core/track.ts';

/** Selection of a source's frames. */
interface FrameChoice {
  /** Frames per second of the output; 0 for every frame of the source. */
  readonly framerate: number;
  /** Frames dropped after each one kept; undefined if `framerate` decides. */
  readonly skipFrames: number | undefined;
}

/** An image drawn on every encoded frame, in pixels of that frame. */
export interface OverlayImage {
  readonly file: string;
  readonly format: 'png' | 'jpeg';
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** 0 to 100. */
  readonly opacity: number;
}

/** Settings of a video encode, with all sizes and rates decided; equal settings share one encoder. */
export interface VideoEncoding extends FrameChoice {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** Pixels, both a multiple of 4. */
  readonly width: number;
  readonly height: number;
  /** Bits per second. */
  readonly bitrate: number;
  /** Expected frames per second of the output, on which bitrate and GOP are based. */
  readonly expectedFramerate: number;
  /** Key frames as in the source, or at the first frame of every interval of this many seconds. */
  readonly keyFrames: 'source' | number;
  /** Frames between key frames by the output profile; 0 if it names none. */
  readonly keyFrameInterval: number;
  readonly preset: 'slower' | 'slow' | 'medium' | 'fast' | 'faster' | undefined;
  readonly profile: 'baseline' | 'main' | 'high' | undefined;
  readonly bFrames: number;
  /** Frames; -1 for none. */
  readonly lookahead: number;
  /** -1 for the encoder's own choice. */
  readonly threads: number;
  /** Modules to try in turn, as configured: `nv:0,x264`. */
  readonly modules: string | undefined;
  readonly extraOptions: string | undefined;
  /** In drawing order: the last one is on top. */
  readonly overlays?: readonly OverlayImage[];
}

export interface AudioEncoding {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  readonly bitrate: number;
  /** Hz. */
  readonly samplerate: number;
  readonly channels: number;
  readonly modules: string | undefined;
}

export interface ImageEncoding extends FrameChoice {
  readonly type: 'image';
  readonly codec: ImageCodec;
  readonly width: number;
  readonly height: number;
}

export type Encoding = VideoEncoding | AudioEncoding | ImageEncoding;

export interface EncodeJob {
  readonly from: VideoTrack | AudioTrack;
  readonly encoding: Encoding;
}

/** Whether two jobs are one encode, even if the format of the input track differs. */
export function isSameEncode(one: EncodeJob, other: EncodeJob): boolean {
  return one.from.id === other.from.id && isDeepStrictEqual(one.encoding, other.encoding);
}

/** Whether one encoder run does both jobs: the same encoding of an input track with the same format. */
export function isSameJob(one: EncodeJob, other: EncodeJob): boolean {
  return isSameEncode(one, other) && sameFormat(one.from, other.from);
}
