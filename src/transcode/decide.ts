import type { AudioEncodeConfig, ImageEncodeConfig, VideoEncodeConfig } from '../config/model.ts';
import type { AudioTrack, ImageCodec, VideoCodec, VideoTrack } from '../core/track.ts';
import { audioCodec, videoCodec } from './codec-name.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from './encoding.ts';
import { isSameRate, frameSize, sourceFramerate, squareSize } from './frame-parameters.ts';

/** An encoding, or the reason why there can be none. */
export type Decision<E> = { readonly encoding: E } | { readonly problem: string };

/** Facts about the source of a video encode. */
export interface EncodeSource {
  readonly input: VideoTrack;
  /** Measured frames per second; 0 if unknown. */
  readonly measured: number;
  /** Whether the profile also has the input as a bypassed track. */
  readonly bypassedToo: boolean;
}

/** Default images per second: thumbnails are looked at, not played. */
const IMAGE_FRAMERATE = 1;
/** Codecs whose encoders signal the sample aspect ratio; others get square samples. */
const SIGNALS_SHAPE: ReadonlySet<VideoCodec> = new Set(['H264', 'H265']);
const OPUS_SAMPLERATE = 48_000;

/** Decides the encoding of a video encode; undefined while it needs the input's size and that is unknown. */
export function decideVideo(encode: VideoEncodeConfig, source: EncodeSource): Decision<VideoEncoding> | undefined {
  const { codec: name = '', framerate, profile, preset, lookahead, extraOptions, modules } = encode;
  const named = videoCodec(name);
  if (named === undefined) return { problem: notVideo(name) };
  const size = frameSize(encode, SIGNALS_SHAPE.has(named.codec) ? source.input : squareSize(source.input));
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

/** Decides the encoding of an image encode; undefined as for a video. */
export function decideImage(encode: ImageEncodeConfig, input: VideoTrack): Decision<ImageEncoding> | undefined {
  const size = frameSize(encode, squareSize(input));
  if (size === undefined) return undefined;
  const skipFrames = encode.skipFrames < 0 ? undefined : encode.skipFrames;
  const framerate = skipFrames === undefined ? encode.framerate || IMAGE_FRAMERATE : 0;
  return {
    encoding: { type: 'image', codec: encode.codec.toUpperCase() as ImageCodec, ...size, framerate, skipFrames },
  };
}

/**
 * Key frames of a rendition: the source's beside a bypassed one if no interval is configured, so that players can switch
 * between them. An interval in frames is converted to seconds at the output's frame rate.
 */
function keyFrames(encode: VideoEncodeConfig, framerate: number, followSource: boolean): 'source' | number {
  const { keyFrameInterval: interval, keyFrameIntervalType: unit } = encode;
  if (interval === 0) return followSource ? 'source' : 1;
  return unit === 'time' ? interval / 1000 : interval / framerate;
}

/** Interval in frames at the output's frame rate. */
function configuredInterval({ keyFrameInterval, keyFrameIntervalType }: VideoEncodeConfig, framerate: number): number {
  return keyFrameIntervalType === 'time' ? Math.round((keyFrameInterval * framerate) / 1000) : keyFrameInterval;
}

function notVideo(name: string): string {
  return audioCodec(name) === undefined ? `unknown codec ${name}` : `${name} is not a video codec`;
}

function notAudio(name: string): string {
  return videoCodec(name) === undefined ? `unknown codec ${name}` : `${name} is not an audio codec`;
}
