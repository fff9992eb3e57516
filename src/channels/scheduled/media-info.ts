import type { AudioCodec, DataCodec, VideoCodec } from '../../core/track.ts';

/** A stream of a media file; `index` is that of the file, `codec` undefined for one that has to be encoded. */
export interface FileStream<C> {
  readonly index: number;
  readonly codec: C | undefined;
  readonly language?: string;
}

/** What ffmpeg tells of a media file. */
export interface MediaInfo {
  /** Names of the demuxer, separated by commas. */
  readonly format: string;
  /** Milliseconds; undefined where the file does not tell, or only lets it be estimated. */
  readonly length: number | undefined;
  /** The first that is no cover picture. */
  readonly video: FileStream<VideoCodec> | undefined;
  readonly audio: readonly FileStream<AudioCodec>[];
  /** Those whose events can be passed on. */
  readonly data: readonly FileStream<DataCodec>[];
}

/** ffmpeg's names of codecs whose packets are taken as the file has them. */
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
/** Metadata, which may contain anything, are indented further. */
const STREAM = /^(?: {2}| {4})Stream #0:(\d+)(?:\[0x[0-9a-f]+\])?(?:\((\w+)\))?: (Video|Audio|Data): (\w+)(.*)$/;
const ROTATION = /^ +displaymatrix: rotation of (-?[\d.]+)/;
const COVER = '(attached pic)';
const UNDETERMINED = 'und';
const ESTIMATED = 'Estimating duration from bitrate';

/** Reads what ffmpeg says of its input at `-loglevel info`. @returns undefined when that is no description */
export function readMediaInfo(text: string): MediaInfo | undefined {
  const [told = ''] = text.split(/^Output #0/m);
  const format = INPUT.exec(told)?.[1];
  if (format === undefined) return undefined;
  const streams = streamsOf(told);
  const [picture] = streams.filter(({ kind, rest }) => kind === 'Video' && !rest.includes(COVER));
  const video = picture && {
    index: picture.index,
    codec: picture.isTurned ? undefined : codecOf(VIDEO, picture.codec),
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

interface ToldStream {
  readonly index: number;
  readonly language: string | undefined;
  readonly kind: string;
  readonly codec: string;
  readonly rest: string;
  /** Only an encoder can turn its pictures: what the container says of them is lost with that. */
  isTurned: boolean;
}

function streamsOf(told: string): ToldStream[] {
  const streams: ToldStream[] = [];
  for (const line of told.split('\n')) {
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

/** Milliseconds. */
function lengthOf(text: string): number | undefined {
  const [, hours, minutes, seconds] = DURATION.exec(text) ?? [];
  if (hours === undefined || text.includes(ESTIMATED)) return undefined;
  return Math.round((Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000);
}
