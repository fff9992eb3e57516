import { isDeepStrictEqual } from 'node:util';
import {
  sameFormat,
  type AudioCodec,
  type AudioTrack,
  type ImageCodec,
  type VideoCodec,
  type VideoTrack,
} from '../core/track.ts';

/** Which frames of a source are put out. */
interface FrameChoice {
  /** Frames per second to put out; 0 for every frame of the source. */
  readonly framerate: number;
  /** Frames left out after each one that is kept; undefined when `framerate` rules. */
  readonly skipFrames: number | undefined;
}

/** An image drawn on every encoded picture; in pixels of that picture. */
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

/** What an encoder is to make of a video track, all sizes and rates decided; two that are equal are one encoder. */
export interface VideoEncoding extends FrameChoice {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** Pixels, both a multiple of 4. */
  readonly width: number;
  readonly height: number;
  /** Bits per second. */
  readonly bitrate: number;
  /** Frames per second that come out, as far as that is known beforehand: what bitrate and GOP are counted by. */
  readonly expectedFramerate: number;
  /** Where key frames are: those of the source, or the first frame of every interval of so many seconds. */
  readonly keyFrames: 'source' | number;
  /** Frames from key frame to key frame that the output profile asks for; 0 where it does not. */
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
  /** The last one is on top. */
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

/** One encode of one input track. */
export interface EncodeJob {
  readonly from: VideoTrack | AudioTrack;
  readonly encoding: Encoding;
}

/** Whether two jobs are one encode, of whatever format the input track is. */
export function isSameEncode(one: EncodeJob, other: EncodeJob): boolean {
  return one.from.id === other.from.id && isDeepStrictEqual(one.encoding, other.encoding);
}

/** Whether who does one job does the other: it makes the same of the same input, whatever else is said of that. */
export function isSameJob(one: EncodeJob, other: EncodeJob): boolean {
  return isSameEncode(one, other) && sameFormat(one.from, other.from);
}
