import { BitstreamError } from '../../codecs/bits.ts';
import { parseAvcConfig } from '../../codecs/h264-config.ts';
import { parseHevcConfig } from '../../codecs/h265-config.ts';
import { shownSize, type AudioTrack, type MediaTrack, type VideoTrack } from '../../core/track.ts';
import { FILE, NUT_OUTPUT, SAFE_INPUT } from '../scheduled/media-command.ts';
import { MediaError } from '../scheduled/media-error.ts';
import type { MediaInfo } from '../scheduled/media-info.ts';

/** Length of a generated slate, and limits of one from a file. */
const GENERATED_SECONDS = 10;
const MOST_SECONDS = 600;
const MOST_BYTES = 1024 * 1024 * 1024;
const COLOUR = '0x1b2230';
const TEXT_COLOUR = '0xe8eaee';
/** Size of a font by which a line of text fills the width: characters are about half as wide as high. */
const WIDTHS_OF_TEXT = 1.6;
const UNKNOWN_RATE = 30;
/** Usual frame rates, as ffmpeg writes them. A measured one is taken for the nearest within 2 %. */
const RATES = ['10', '12', '15', '20', '24000/1001', '24', '25', '30000/1001', '30', '48', '50', '60000/1001', '60'];
const RATE_TOLERANCE = 0.02;
const LEAST_BITRATE = 250_000;
/**
 * Reference frames that no preset of x264 has: the parameter sets of a slate differ from the publisher's, so that HLS
 * begins a segment with its first key frame, and with that of the next publisher.
 */
const OWN_REFERENCES = '4';

/** Encoders by codec, as ffmpeg names them; the first available one is used. */
const ENCODERS: Readonly<Partial<Record<MediaTrack['codec'], readonly string[]>>> = {
  H264: ['libx264', 'libopenh264'],
  H265: ['libx265'],
  VP8: ['libvpx'],
  AAC: ['aac'],
  OPUS: ['libopus'],
};

export interface SlateTrack {
  /** Track of the publisher whose settings the slate gets. */
  readonly track: MediaTrack;
  /** Measured frames per second, and bits per second; 0 if unknown. */
  readonly framerate: number;
  readonly bitrate: number;
}

export interface SlateCommand {
  readonly tracks: readonly SlateTrack[];
  /** File on standard input; undefined to generate a slate. */
  readonly file: MediaInfo | undefined;
  /** Text on generated video; empty for none. */
  readonly text: string;
  /** Encoders that the ffmpeg has. */
  readonly encoders: ReadonlySet<string>;
}

/**
 * Arguments of an ffmpeg that encodes a slate as one NUT, with a stream for each track in its order; the path of the output is
 * to be appended.
 * @throws MediaError when a codec cannot be encoded
 */
export function slateArguments({ tracks, file, text, encoders }: SlateCommand): string[] {
  const video = tracks.find(isVideo);
  const hasVideo = file?.video !== undefined && video !== undefined;
  const [audio] = file?.audio ?? [];
  // what has an end: the video of the file, else its audio, else what is generated, for some seconds
  const lead = hasVideo ? 'video' : audio !== undefined && tracks.length > 0 ? 'audio' : undefined;
  const inputs: string[] = [];
  let count = 0;
  const input = (...args: string[]): number => {
    inputs.push(...args);
    return count++;
  };
  if (file !== undefined && lead !== undefined) input(...SAFE_INPUT, '-t', String(MOST_SECONDS), '-i', FILE);
  const limit = lead === undefined ? ['-t', String(GENERATED_SECONDS)] : [];
  const videoInput = hasVideo
    ? `0:${file.video.index}`
    : video && `${input(...limit, '-f', 'lavfi', '-i', colourSource(video))}:v`;
  const audioInput =
    audio !== undefined && lead !== undefined
      ? `0:${audio.index}`
      : `${input(...limit, '-f', 'lavfi', '-i', 'anullsrc=r=48000:cl=stereo')}:a`;
  const outputs = tracks.flatMap((one, index) => {
    const { track } = one;
    const encoder = ENCODERS[track.codec]?.find((name) => encoders.has(name));
    if (encoder === undefined) throw new MediaError(`${track.codec} cannot be encoded`);
    const options =
      track.type === 'video'
        ? videoOptions({ ...one, track }, encoder, hasVideo ? '' : text)
        : audioOptions(track, lead === 'video');
    return ['-map', (track.type === 'video' ? videoInput : audioInput) as string, `-c:${index}`, encoder].concat(
      options.flatMap(([name, value]) => [`-${name}:${index}`, value]),
    );
  });
  return [
    ...['-hide_banner', '-nostdin', '-loglevel', 'error', '-y', ...inputs, ...outputs],
    ...['-map_metadata', '-1', '-map_chapters', '-1', '-shortest', '-t', String(MOST_SECONDS)],
    ...['-fs', String(MOST_BYTES), ...NUT_OUTPUT],
  ];
}

/** Frame rate as ffmpeg writes it. @param measured frames per second; 0 if unknown */
export function rateOf(measured: number): string {
  if (measured <= 0) return String(UNKNOWN_RATE);
  const distance = (rate: string): number => Math.abs(framesPerSecond(rate) / measured - 1);
  const nearest = RATES.reduce((best, rate) => (distance(rate) < distance(best) ? rate : best));
  return distance(nearest) <= RATE_TOLERANCE ? nearest : String(Math.max(1, Math.round(measured)));
}

/** @param rate as `rateOf` writes it */
export function framesPerSecond(rate: string): number {
  const [num, den = 1] = rate.split('/').map(Number);
  return (num as number) / den;
}

type Options = readonly (readonly [name: string, value: string])[];

interface SlateVideo extends SlateTrack {
  readonly track: VideoTrack;
}

function isVideo(one: SlateTrack): one is SlateVideo {
  return one.track.type === 'video';
}

function colourSource({ track, framerate }: SlateVideo): string {
  const { width, height } = boxOf(track);
  return `color=c=${COLOUR}:s=${width}x${height}:r=${rateOf(framerate)}`;
}

/** Size in square pixels, with the even sides that 4:2:0 needs. */
function boxOf(track: VideoTrack): { readonly width: number; readonly height: number } {
  const { width, height } = shownSize(track);
  return { width: even(width), height: even(height) };
}

function even(side: number): number {
  return Math.max(2, 2 * Math.round(side / 2));
}

function videoOptions({ track, framerate, bitrate }: SlateVideo, encoder: string, text: string): Options {
  const rate = rateOf(framerate);
  const gop = String(Math.max(1, Math.round(framesPerSecond(rate))));
  const { width, height } = boxOf(track);
  const { sar, colour } = track;
  const filters = [
    `scale=${width}:${height}:force_original_aspect_ratio=decrease`,
    `pad=${width}:${height}:(ow-iw)/2:(oh-ih)/2`,
    ...(text === '' ? [] : [drawText(text, width, height)]),
    ...(sar === undefined ? [] : [`scale=${even(track.width)}:${even(track.height)}`]),
    ...(colour?.fullRange === true ? ['scale=out_range=full'] : []),
    `setsar=${sar === undefined ? '1' : `${sar.num}/${sar.den}`}`,
    `fps=${rate}`,
  ];
  return [
    ['filter', filters.join(',')],
    ['g', gop],
    ['keyint_min', gop],
    ['sc_threshold', '0'],
    ['bf', '0'],
    ...colourOptions(track),
    ...encoderOptions(track, encoder, bitrate),
  ];
}

/** @param width of the video, which the text does not exceed */
function drawText(text: string, width: number, height: number): string {
  const longest = Math.max(...text.split('\n').map(({ length }) => length));
  const size = Math.max(1, Math.floor(Math.min(height / 14, (WIDTHS_OF_TEXT * width) / longest)));
  const value = text.replace(/[\\':]/g, '\\$&').replace(/[\\'[\],;]/g, '\\$&');
  return `drawtext=expansion=none:fontcolor=${TEXT_COLOUR}:fontsize=${size}:x=(w-text_w)/2:y=(h-text_h)/2:text=${value}`;
}

function colourOptions({ colour }: VideoTrack): Options {
  if (colour === undefined) return [];
  return [
    ['color_primaries', String(colour.primaries)],
    ['color_trc', String(colour.transfer)],
    ['colorspace', String(colour.matrix)],
    ['color_range', colour.fullRange ? 'pc' : 'tv'],
  ];
}

/** Profiles of H.264 by profile_idc, and of H.265 by general_profile_idc. Others get one that most decoders know. */
const AVC_PROFILES: Readonly<Record<number, string>> = { 66: 'baseline', 77: 'main', 100: 'high', 110: 'high10' };
const HEVC_PROFILES: Readonly<Record<number, string>> = { 1: 'main', 2: 'main10' };
const TEN_BITS = /10$/;

function encoderOptions(track: VideoTrack, encoder: string, bitrate: number): Options {
  switch (encoder) {
    case 'libx264': {
      const { profile, level } = avcOf(track);
      return [
        ['preset', 'veryfast'],
        ['refs', OWN_REFERENCES],
        ['profile', profile],
        ...(level === undefined ? [] : [['level', level] as const]),
        ...quality(23, bitrate),
        ['pix_fmt', pixels(profile)],
        ['threads', '2'],
      ];
    }
    case 'libx265': {
      const profile = hevcOf(track);
      return [
        ['preset', 'ultrafast'],
        ['profile', profile],
        ...quality(28, bitrate),
        ['pix_fmt', pixels(profile)],
        ['x265-params', 'log-level=error:scenecut=0:open-gop=0:frame-threads=1:pools=2'],
      ];
    }
    case 'libvpx':
      return [
        ['deadline', 'realtime'],
        ['cpu-used', '8'],
        ['auto-alt-ref', '0'],
        ['b', String(limitOf(bitrate))],
        ['pix_fmt', 'yuv420p'],
      ];
    default:
      return [
        ['b', String(limitOf(bitrate))],
        ['pix_fmt', 'yuv420p'],
      ];
  }
}

function quality(crf: number, bitrate: number): Options {
  const limit = limitOf(bitrate);
  return [
    ['crf', String(crf)],
    ['maxrate', String(limit)],
    ['bufsize', String(2 * limit)],
  ];
}

/** In powers of 2, so that a publisher that comes back needs no other slate. */
function limitOf(bitrate: number): number {
  return LEAST_BITRATE * 2 ** Math.max(0, Math.ceil(Math.log2(bitrate / LEAST_BITRATE)));
}

function pixels(profile: string): string {
  return TEN_BITS.test(profile) ? 'yuv420p10le' : 'yuv420p';
}

function avcOf({ config }: VideoTrack): { readonly profile: string; readonly level?: string } {
  const { profile, level } = (config && attempt(() => parseAvcConfig(config))) ?? { profile: 0, level: 0 };
  return {
    profile: AVC_PROFILES[profile] ?? 'high',
    ...(level >= 10 && { level: `${Math.floor(level / 10)}.${level % 10}` }),
  };
}

function hevcOf({ config }: VideoTrack): string {
  const { profile = 0 } = (config && attempt(() => parseHevcConfig(config))) ?? {};
  return HEVC_PROFILES[profile] ?? 'main';
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof BitstreamError) return undefined;
    throw error;
  }
}

/** @param isPadded it may end before the video */
function audioOptions({ codec, samplerate, channels }: AudioTrack, isPadded: boolean): Options {
  return [
    ...(isPadded ? [['filter', 'apad'] as const] : []),
    ['ar', String(samplerate)],
    ['ac', String(channels)],
    ['b', String(64_000 * Math.max(1, channels))],
    ...(codec === 'AAC' ? [['profile', 'aac_low'] as const] : []),
  ];
}
