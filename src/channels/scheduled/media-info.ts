import type { AudioCodec, DataCodec, VideoCodec } from '../../core/track.ts';

/** Stream of a media file; `index` as in the file, `codec` undefined for one that has to be encoded. */
export interface FileStream<C> {
  readonly index: number;
  readonly codec: C | undefined;
  readonly language?: string;
}

/** Description of a media file by ffmpeg. */
export interface MediaInfo {
  /** Names of the demuxer, separated by commas. */
  readonly format: string;
  /** Milliseconds; undefined where the file does not declare it, or only an estimate exists. */
  readonly length: number | undefined;
  /** First video stream that is not cover art. */
  readonly video: FileStream<VideoCodec> | undefined;
  readonly audio: readonly FileStream<AudioCodec>[];
  /** Streams whose events can be passed on. */
  readonly data: readonly FileStream<DataCodec>[];
}

/** Codecs whose packets are copied, by ffmpeg's names. */
const VIDEO: Readonly<Record<string, VideoCodec>> = { h264: 'H264', hevc: 'H265', av1: 'AV1', vp8: 'VP8', vp9: 'VP9' };
const AUDIO: Readonly<Record<string, AudioCodec>> = {
  aac: 'AAC',
  opus: 'OPUS',
  mp3: 'MP3',
  mp2: 'MP2',
  ac3: 'AC3',
  eac3: 'EAC3',
};
const DATA: Readonly<Record<string, DataCodec>> = { timed_id3: 'ID3v2' };

const INPUT = /^Input #0, (\S+), from /m;
const DURATION = /^ {2}Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)/m;
/** Streams only: metadata, which may contain anything, are indented further. */
const STREAM = /^(?: {2}| {4})Stream #0:(\d+)(?:\[0x[0-9a-f]+\])?(?:\((\w+)\))?: (Video|Audio|Data): (\w+)(.*)$/;
const ROTATION = /^ +displaymatrix: rotation of (-?[\d.]+)/;
const COVER = '(attached pic)';
const UNDETERMINED = 'und';
const ESTIMATED = 'Estimating duration from bitrate';

/** Parses what ffmpeg prints about its input at `-loglevel info`. @returns undefined for other text */
export function readMediaInfo(text: string): MediaInfo | undefined {
  const [description = ''] = text.split(/^Output #0/m);
  const format = INPUT.exec(description)?.[1];
  if (format === undefined) return undefined;
  const streams = streamsOf(description);
  const [stream] = streams.filter(({ kind, rest }) => kind === 'Video' && !rest.includes(COVER));
  const video = stream && {
    index: stream.index,
    codec: stream.isTurned ? undefined : codecOf(VIDEO, stream.codec),
  };
  const audio = streams
    .filter(({ kind }) => kind === 'Audio')
    .map(({ index, codec, language }) => ({
      index,
      codec: codecOf(AUDIO, codec),
      ...(language !== undefined && language !== UNDETERMINED && { language }),
    }));
  const data = streams.flatMap(({ kind, index, codec: name }) => {
    const codec = kind === 'Data' ? codecOf(DATA, name) : undefined;
    return codec === undefined ? [] : [{ index, codec }];
  });
  return { format, length: lengthOf(text), video, audio, data };
}

interface DescribedStream {
  readonly index: number;
  readonly language: string | undefined;
  readonly kind: string;
  readonly codec: string;
  readonly rest: string;
  /** The container rotates its frames: copied packets would lose that, so only an encoder can apply it. */
  isTurned: boolean;
}

function streamsOf(description: string): DescribedStream[] {
  const streams: DescribedStream[] = [];
  for (const line of description.split('\n')) {
    const last = streams.at(-1);
    if (last !== undefined && Number(ROTATION.exec(line)?.[1] ?? 0) !== 0) last.isTurned = true;
    const [, index, language, kind, codec = '', rest = ''] = STREAM.exec(line) ?? [];
    if (kind !== undefined) streams.push({ index: Number(index), language, kind, codec, rest, isTurned: false });
  }
  return streams;
}

function codecOf<C>(codecs: Readonly<Record<string, C>>, name: string): C | undefined {
  return Object.hasOwn(codecs, name) ? codecs[name] : undefined;
}

function lengthOf(text: string): number | undefined {
  const [, hours, minutes, seconds] = DURATION.exec(text) ?? [];
  if (hours === undefined || text.includes(ESTIMATED)) return undefined;
  return Math.round((Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000);
}
