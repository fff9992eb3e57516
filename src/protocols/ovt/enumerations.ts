import type { AudioCodec, Codec, DataCodec, ImageCodec, SubtitleCodec, VideoCodec } from '../../core/track.ts';

/** Numbers on the wire (docs/compatibility.md#ovt). */
export const MEDIA_TYPE = Object.freeze({ video: 0, audio: 1, data: 2, subtitle: 3 });

export const PACKET_TYPE = Object.freeze({
  raw: 1,
  sequenceHeader: 2,
  nalUnits: 3,
  event: 4,
  videoEvent: 5,
  audioEvent: 6,
});

export const BITSTREAM = Object.freeze({
  avcc: 0,
  h264AnnexB: 1,
  hvcc: 3,
  h265AnnexB: 4,
  vp8: 6,
  aacRaw: 8,
  aacAdts: 10,
  opus: 12,
  mp3: 14,
  jpeg: 15,
  png: 16,
  webp: 17,
  id3v2: 18,
  cue: 20,
  amf: 21,
  scte35: 23,
  webvtt: 24,
  mp2: 25,
  av1: 26,
  avif: 28,
  /** Extensions of Kiln, between nodes: OVT has no numbers for these. */
  vp9: 255,
  ac3: 254,
  eac3: 253,
  pcma: 252,
  pcmu: 251,
  flac: 250,
  g722: 249,
  klv: 248,
  interstitial: 247,
});

/** Numbers of video, audio, image and subtitle codecs; event tracks have 0. The highest are extensions of Kiln, between nodes. */
const CODEC_ID: Readonly<Record<VideoCodec | AudioCodec | ImageCodec | SubtitleCodec, number>> = Object.freeze({
  H264: 1,
  H265: 2,
  VP8: 3,
  VP9: 4,
  AV1: 5,
  AAC: 7,
  MP3: 8,
  OPUS: 9,
  JPEG: 10,
  PNG: 11,
  WEBP: 12,
  WebVTT: 13,
  MP2: 15,
  AVIF: 16,
  AC3: 254,
  EAC3: 253,
  PCMA: 252,
  PCMU: 251,
  FLAC: 250,
  G722: 249,
});

const VIDEO: ReadonlySet<string> = new Set<VideoCodec>(['H264', 'H265', 'AV1', 'VP8', 'VP9']);
const AUDIO: ReadonlySet<string> = new Set<AudioCodec>([
  'AAC',
  'OPUS',
  'MP3',
  'MP2',
  'AC3',
  'EAC3',
  'FLAC',
  'PCMA',
  'PCMU',
  'G722',
]);

/** Numbers of data formats. All but ID3v2 are extensions of Kiln, between nodes. */
const DATA_ID: Readonly<Record<DataCodec, number>> = Object.freeze({
  ID3v2: 0,
  SCTE35: 255,
  CUE: 254,
  AMF: 253,
  KLV: 252,
  INTERSTITIAL: 251,
});

export function codecId(codec: Codec): number {
  return codec in DATA_ID ? DATA_ID[codec as DataCodec] : CODEC_ID[codec as Exclude<Codec, DataCodec>];
}

/** Type and codec of a track in a description. */
export type CodecOfType =
  | { readonly type: 'video'; readonly codec: VideoCodec }
  | { readonly type: 'audio'; readonly codec: AudioCodec }
  | { readonly type: 'image'; readonly codec: ImageCodec }
  | { readonly type: 'data'; readonly codec: DataCodec }
  | { readonly type: 'subtitle'; readonly codec: SubtitleCodec };

/** Returns undefined for types and codecs that this server does not carry. */
export function codecOf(mediaType: number, id: number): CodecOfType | undefined {
  if (mediaType === MEDIA_TYPE.data) {
    const [data] = Object.entries(DATA_ID).find(([, number]) => number === id) ?? [];
    return data === undefined ? undefined : { type: 'data', codec: data as DataCodec };
  }
  const [codec] = Object.entries(CODEC_ID).find(([, number]) => number === id) ?? [];
  if (codec === undefined) return undefined;
  if (AUDIO.has(codec))
    return mediaType === MEDIA_TYPE.audio ? { type: 'audio', codec: codec as AudioCodec } : undefined;
  if (codec === 'WebVTT') return mediaType === MEDIA_TYPE.subtitle ? { type: 'subtitle', codec } : undefined;
  if (mediaType !== MEDIA_TYPE.video) return undefined;
  return VIDEO.has(codec)
    ? { type: 'video', codec: codec as VideoCodec }
    : { type: 'image', codec: codec as ImageCodec };
}

/** Speaker bits by number of channels, in AAC's order: mono is the centre, 5.1 and 7.1 include the LFE. */
const LAYOUTS: readonly number[] = [0, 0x4, 0x3, 0x7, 0x107, 0x37, 0x3f, 0x70f, 0x63f];

/** Speaker bits; 0 (unknown) for more channels than the usual layouts have. */
export function layoutOf(channels: number): number {
  return LAYOUTS[channels] ?? 0;
}

/** Number of speakers in a layout; 0 when it is unknown. */
export function channelsOf(layout: number): number {
  let channels = 0;
  for (let bits = layout; bits !== 0; bits &= bits - 1) channels++;
  return channels;
}
