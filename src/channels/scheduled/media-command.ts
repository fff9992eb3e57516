import type { AudioCodec, DataCodec, VideoCodec } from '../../core/track.ts';
import { FIRST_OUTPUT } from '../../media-child/child.ts';
import type { FileStream, MediaInfo } from './media-info.ts';

/** Allowed formats: none that opens other files or addresses, as playlists do, and none that makes media of text. */
const FORMATS = [
  ...['mov', 'mp4', 'matroska', 'webm', 'mpegts', 'mpeg', 'avi', 'flv', 'asf', 'mxf', 'nut', 'ogg', 'ivf', 'obu'],
  ...['mp3', 'aac', 'ac3', 'eac3', 'flac', 'wav', 'w64', 'aiff', 'caf', 'amr', 'h264', 'hevc', 'm4v', 'mpegvideo'],
];
/** Path of the opened file itself: it can be sought in, and no other file can take its place. */
export const FILE = 'file:/proc/self/fd/0';
export const SAFE_INPUT = ['-protocol_whitelist', 'file,pipe', '-format_whitelist', FORMATS.join(',')];
/** Added to all times, because NUT has no negative ones. */
export const OFFSET_SECONDS = 10;
/** Formats with an index of their key frames; in others ffmpeg seeks to any place near the time. */
const INDEXED = /^(?:mov|matroska)\b/;
const SEEK_BACK_SECONDS = 10;

/** A file's stream and the track that it becomes. */
export type TakenStream = TakenMedia | TakenData;

export interface TakenMedia {
  readonly type: 'video' | 'audio';
  readonly stream: FileStream<VideoCodec | AudioCodec>;
  /** Output codec. */
  readonly codec: VideoCodec | AudioCodec;
}

export interface TakenData {
  readonly type: 'data';
  readonly stream: FileStream<DataCodec>;
}

/** Selects the audio and video streams that a channel takes. @param most limit of audio streams */
export function takenStreams({ video, audio }: MediaInfo, hasVideo: boolean, most: number): TakenMedia[] {
  return [
    ...(video !== undefined && hasVideo
      ? [{ type: 'video' as const, stream: video, codec: video.codec ?? ('H264' as const) }]
      : []),
    ...audio
      .slice(0, most)
      .map((stream) => ({ type: 'audio' as const, stream, codec: stream.codec ?? ('AAC' as const) })),
  ];
}

/** Arguments of an ffmpeg that describes the file on standard input, for `readMediaInfo`. */
export function probeArguments(): string[] {
  return ['-hide_banner', '-nostdin', '-loglevel', 'info', ...SAFE_INPUT, '-i', FILE, ...WHOLE, '-t', '0', ...NOWHERE];
}

/** Arguments of an ffmpeg that reads the whole file on standard input and writes `out_time_us` to standard output. */
export function measureArguments(): string[] {
  return [
    '-hide_banner',
    '-nostdin',
    '-loglevel',
    'error',
    ...SAFE_INPUT,
    '-i',
    FILE,
    ...WHOLE,
    ...PROGRESS,
    ...NOWHERE,
  ];
}

const WHOLE = ['-map', '0:V:0?', '-map', '0:a?', '-c', 'copy'];
const PROGRESS = ['-progress', 'pipe:1', '-nostats'];
const NOWHERE = ['-f', 'null', '-'];

/**
 * Arguments of an ffmpeg that reads the file on standard input from about a position on, without pacing, and writes
 * one NUT with the taken streams in their order. Times are those of the file, from 0, plus OFFSET_SECONDS.
 * @param position milliseconds: output includes the last key frame before it, and may include earlier ones
 */
export function playArguments(format: string, taken: readonly TakenStream[], position: number): string[] {
  const seconds = position / 1000 - (INDEXED.test(format) ? 0 : SEEK_BACK_SECONDS);
  const seek = seconds > 0 ? ['-noaccurate_seek', '-ss', seconds.toFixed(3)] : [];
  return [
    ...['-hide_banner', '-nostdin', '-loglevel', 'error', ...SAFE_INPUT, '-fflags', '+genpts', '-copyts'],
    ...['-start_at_zero', ...seek, '-i', FILE],
    ...taken.flatMap((one, index) => ['-map', `0:${one.stream.index}`, ...codecOptions(one, index)]),
    ...['-map_metadata', '-1', '-map_chapters', '-1'],
    // events are rare: media must not wait for them
    ...(taken.some(({ type }) => type === 'data') ? ['-max_interleave_delta', '500000'] : []),
    ...[...NUT_OUTPUT, `pipe:${FIRST_OUTPUT}`],
  ];
}

/** Options of a NUT that FileLane reads. */
export const NUT_OUTPUT = [
  ...['-avoid_negative_ts', 'disabled', '-muxdelay', '0'],
  ...['-output_ts_offset', String(OFFSET_SECONDS), '-max_muxing_queue_size', '1024'],
  // pipe mode: no syncpoints and no index, which ffmpeg would keep in memory as long as it runs
  ...['-strict', 'experimental', '-syncpoints', 'none', '-write_index', '0', '-flush_packets', '1', '-f', 'nut'],
];

/** Even sides, which yuv420p needs. */
const EVEN = 'crop=trunc(iw/2)*2:trunc(ih/2)*2';
const ENCODE_VIDEO: readonly (readonly [string, string])[] = [
  ['c', 'libx264'],
  ['filter', EVEN],
  ['preset', 'veryfast'],
  ['crf', '23'],
  ['pix_fmt', 'yuv420p'],
  ['g', '50'],
  ['bf', '0'],
  ['threads', '2'],
];

function codecOptions({ type, stream: { codec } }: TakenStream, index: number): string[] {
  if (codec !== undefined) return [`-c:${index}`, 'copy'];
  if (type === 'audio') return [`-c:${index}`, 'aac', `-b:${index}`, '160k'];
  return ENCODE_VIDEO.flatMap(([name, value]) => [`-${name}:${index}`, value]);
}
