import type { AudioEncodeConfig, ImageEncodeConfig, VideoEncodeConfig } from '../config/model.ts';
import type { AudioTrack, ImageCodec, VideoCodec, VideoTrack } from '../core/track.ts';
import { audioCodec, videoCodec } from './codec-name.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from './encoding.ts';
import { isSameRate, pictureSize, sourceFramerate, squareSize } from './picture.ts';

/** An encoding, or why there can be none. */
export type Decision<E> = { readonly encoding: E } | { readonly problem: string };

/** What is not told by the encode's own configuration. */
export interface PictureSource {
  readonly input: VideoTrack;
  /** Frames per second measured; 0 where nothing is. */
  readonly measured: number;
  /** The same profile has the input itself as a track. */
  readonly bypassedToo: boolean;
}

/** Pictures per second where an image encode names no rate: thumbnails are looked at, not played. */
const IMAGE_FRAMERATE = 1;
/** Codecs whose encoders tell the shape of samples; what others encode has square ones. */
const TELLS_SHAPE: ReadonlySet<VideoCodec> = new Set(['H264', 'H265']);
const OPUS_SAMPLERATE = 48_000;

/** What a video encode makes of an input; undefined as long as it takes the input's size and that is not known. */
export function decideVideo(encode: VideoEncodeConfig, source: PictureSource): Decision<VideoEncoding> | undefined {
  const { codec: name = '', framerate, profile, preset, lookahead, extraOptions, modules } = encode;
  const named = videoCodec(name);
  if (named === undefined) return { problem: notVideo(name) };
  const size = pictureSize(encode, TELLS_SHAPE.has(named.codec) ? source.input : squareSize(source.input));
  if (size === undefined) return undefined;
  const rate = sourceFramerate(source.input, source.measured);
  const skipFrames = encode.skipFrames < 0 ? undefined : encode.skipFrames;
  const configured = framerate > 0 ? framerate : rate;
  const expectedFramerate = skipFrames === undefined ? configured : Math.round((rate * 100) / (skipFrames + 1)) / 100;
  const encoding: VideoEncoding = {
    type: 'video',
    codec: named.codec,
    ...size,
    bitrate: encode.bitrate ?? 0,
    framerate: skipFrames === undefined ? framerate : 0,
    skipFrames,
    expectedFramerate,
    keyFrames: keyFrames(encode, expectedFramerate, source.bypassedToo && isSameRate(expectedFramerate, rate)),
    keyFrameInterval: configuredInterval(encode, expectedFramerate),
    preset,
    profile,
    bFrames: profile === 'baseline' ? 0 : (encode.bFrames ?? 0),
    lookahead,
    threads: encode.threadCount,
    modules: modules ?? named.module,
    extraOptions,
  };
  return { encoding };
}

/** What an audio encode makes of an input. */
export function decideAudio(encode: AudioEncodeConfig, input: AudioTrack): Decision<AudioEncoding> {
  const { codec: name = '', samplerate, channel, bitrate = 0, modules } = encode;
  const named = audioCodec(name);
  if (named === undefined) return { problem: notAudio(name) };
  const encoding: AudioEncoding = {
    type: 'audio',
    codec: named.codec,
    bitrate,
    samplerate: named.codec === 'OPUS' ? OPUS_SAMPLERATE : samplerate || input.samplerate,
    channels: (channel || input.channels) === 1 ? 1 : 2,
    modules: modules ?? named.module,
  };
  return { encoding };
}

/** What an image encode makes of an input; undefined as for a video. */
export function decideImage(encode: ImageEncodeConfig, input: VideoTrack): Decision<ImageEncoding> | undefined {
  const size = pictureSize(encode, squareSize(input));
  if (size === undefined) return undefined;
  const skipFrames = encode.skipFrames < 0 ? undefined : encode.skipFrames;
  const framerate = skipFrames === undefined ? encode.framerate || IMAGE_FRAMERATE : 0;
  return {
    encoding: { type: 'image', codec: encode.codec.toUpperCase() as ImageCodec, ...size, framerate, skipFrames },
  };
}

/**
 * Renditions beside a bypassed one switch together with it where nothing else is asked for. An interval in frames
 * is one in seconds at the rate that comes out.
 */
function keyFrames(encode: VideoEncodeConfig, framerate: number, followSource: boolean): 'source' | number {
  const { keyFrameInterval: interval, keyFrameIntervalType: unit } = encode;
  if (interval === 0) return followSource ? 'source' : 1;
  return unit === 'time' ? interval / 1000 : interval / framerate;
}

/** In frames at the rate that comes out. */
function configuredInterval({ keyFrameInterval, keyFrameIntervalType }: VideoEncodeConfig, framerate: number): number {
  return keyFrameIntervalType === 'time' ? Math.round((keyFrameInterval * framerate) / 1000) : keyFrameInterval;
}

function notVideo(name: string): string {
  return audioCodec(name) === undefined ? `unknown codec ${name}` : `${name} is not a video codec`;
}

function notAudio(name: string): string {
  return videoCodec(name) === undefined ? `unknown codec ${name}` : `${name} is not an audio codec`;
}
