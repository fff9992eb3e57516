import type { AudioCodec, VideoCodec } from '../core/track.ts';

/** A codec name of an output profile, parsed. */
export interface NamedCodec<C> {
  readonly codec: C;
  /** Module of the suffix: `h264_nvenc` means H264 by `nv`. */
  readonly module: string | undefined;
}

const VIDEO: Readonly<Record<string, VideoCodec>> = {
  h264: 'H264',
  avc: 'H264',
  h265: 'H265',
  hevc: 'H265',
  av1: 'AV1',
  vp8: 'VP8',
  vp9: 'VP9',
};
const AUDIO: Readonly<Record<string, AudioCodec>> = { aac: 'AAC', opus: 'OPUS', mp3: 'MP3', mp2: 'MP2' };

/** Suffixes of older configurations that are no module names themselves. */
const MODULES: Readonly<Record<string, string>> = {
  nvenc: 'nv',
  libx264: 'x264',
  libx265: 'x265',
  vpx: 'libvpx',
  fdk: 'fdkaac',
  libfdk: 'fdkaac',
  libfdkaac: 'fdkaac',
};

/** The video codec of a configured name, in any case; undefined for any other name. */
export function videoCodec(name: string): NamedCodec<VideoCodec> | undefined {
  return named(VIDEO, name);
}

/** The audio codec of a configured name, in any case; undefined for any other name. */
export function audioCodec(name: string): NamedCodec<AudioCodec> | undefined {
  return named(AUDIO, name);
}

function named<C>(codecs: Readonly<Record<string, C>>, name: string): NamedCodec<C> | undefined {
  const [, word = '', suffix] = /^([^_]+)(?:_(.+))?$/.exec(name.trim().toLowerCase()) ?? [];
  if (!Object.hasOwn(codecs, word)) return undefined;
  const module = suffix !== undefined && Object.hasOwn(MODULES, suffix) ? MODULES[suffix] : suffix;
  return { codec: codecs[word] as C, module };
}
