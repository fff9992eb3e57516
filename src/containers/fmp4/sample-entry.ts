import { parseStreamInfo, streamInfoBlock } from '../../codecs/flac.ts';
import { withOpenArrays } from '../../codecs/h265.ts';
import { isUsual } from '../../codecs/vui.ts';
import type { AudioCodec, AudioTrack, MediaTrack, SubtitleTrack, VideoCodec, VideoTrack } from '../../core/track.ts';
import { ascii, box, fitting, fullBox, u16, u32, u8, zeros } from './box.ts';
import { webVttEntry } from './web-vtt.ts';

/** Error for a track that Kiln's fragmented MP4 does not support. */
export class UnsupportedTrackError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnsupportedTrackError';
  }
}

/** Sample entry and configuration box, for samples without parameter sets. */
const VIDEO_ENTRIES: Partial<Record<VideoCodec, readonly [entry: string, config: string]>> = {
  H264: ['avc1', 'avcC'],
  H265: ['hvc1', 'hvcC'],
  AV1: ['av01', 'av1C'],
  VP9: ['vp09', 'vpcC'],
};

/** Entries for samples with parameter sets that the entry lacks (ISO/IEC 14496-15 5.4.2.1 and 8.3.2). */
const OPEN_ENTRIES: typeof VIDEO_ENTRIES = { H264: ['avc3', 'avcC'], H265: ['hev1', 'hvcC'] };

/** Object types of ISO/IEC 14496-1, table 5: AAC, MP3, and MP3 of half the sample rates. */
const AUDIO_ISO_14496_3 = 0x40;
const AUDIO_11172_3 = 0x6b;
const AUDIO_13818_3 = 0x69;

const FULL_RANGE = 0x80;

const PACKABLE_AUDIO: ReadonlySet<string> = new Set<AudioCodec>(['AAC', 'OPUS', 'FLAC']);

/** Whether `initSegment` can describe tracks of this codec. */
export function isPackable({ codec }: { readonly codec: string }): boolean {
  return PACKABLE_AUDIO.has(codec) || codec in VIDEO_ENTRIES;
}

/**
 * Builds the entry of `stsd` for a track.
 * @throws UnsupportedTrackError for a codec without a mapping, or without a decoder configuration
 */
export function sampleEntry(track: MediaTrack | SubtitleTrack): Buffer {
  if (track.type === 'subtitle') return webVttEntry();
  return track.type === 'video' ? videoEntry(track) : audioEntry(track);
}

/** ISO/IEC 14496-12, 12.1.3; 14496-15 for avcC and hvcC; the AV1 and VP9 ISOBMFF bindings. */
function videoEntry(track: VideoTrack): Buffer {
  const isOpen = track.inBandSets === true;
  const names = (isOpen && OPEN_ENTRIES[track.codec]) || VIDEO_ENTRIES[track.codec];
  if (names === undefined) throw new UnsupportedTrackError(`${track.codec} cannot be carried in fragmented MP4`);
  const [entry, configBox] = names;
  return box(
    entry,
    zeros(6),
    u16(1),
    zeros(16),
    u16(fitting(track.width, 16), fitting(track.height, 16)),
    u32(0x480000, 0x480000, 0),
    u16(1),
    zeros(32),
    u16(24, 0xffff),
    configBox === 'vpcC'
      ? fullBox(configBox, 1, 0, configuration(track))
      : box(configBox, entry === 'hev1' ? withOpenArrays(configuration(track)) : configuration(track)),
    ...displayBoxes(track),
  );
}

/** Builds `colr` and `pasp` (ISO/IEC 14496-12, 12.1.5 and 12.1.4) where a video differs from the defaults of players. */
function displayBoxes({ codec, colour, sar }: VideoTrack): Buffer[] {
  const boxes: Buffer[] = [];
  // vpcC has it already
  if (codec !== 'VP9' && colour !== undefined && !isUsual(colour)) {
    const { primaries, transfer, matrix, fullRange } = colour;
    boxes.push(box('colr', ascii('nclx'), u16(primaries, transfer, matrix), u8(fullRange ? FULL_RANGE : 0)));
  }
  if (sar !== undefined) boxes.push(box('pasp', u32(sar.num, sar.den)));
  return boxes;
}

/** ISO/IEC 14496-12, 12.2.3. A rate that 16 bits cannot hold is left to the decoder configuration. */
function audioEntry(track: AudioTrack): Buffer {
  if (track.codec === 'FLAC') return flacEntry(configuration(track));
  const rate = track.samplerate <= 0xffff ? track.samplerate : 0;
  const head = [zeros(6), u16(1), zeros(8), u16(fitting(track.channels, 16), 16, 0, 0), u32(rate * 0x10000)];
  if (track.codec === 'AAC')
    return box('mp4a', ...head, esds(track, AUDIO_ISO_14496_3, descriptor(5, configuration(track))));
  if (track.codec === 'MP3')
    return box('mp4a', ...head, esds(track, track.samplerate < 32_000 ? AUDIO_13818_3 : AUDIO_11172_3));
  if (track.codec === 'OPUS') return box('Opus', ...head, box('dOps', configuration(track)));
  throw new UnsupportedTrackError(`${track.codec} cannot be carried in fragmented MP4`);
}

const MAX_RATE = 0xffff;

/** "Encapsulation of FLAC in ISO Base Media File Format", 3.3.1: a rate that 16 bits cannot hold is halved until they can. */
function flacEntry(config: Buffer): Buffer {
  const { samplerate, channels, bitsPerSample } = parseStreamInfo(config);
  let rate = samplerate;
  while (rate > MAX_RATE) rate = Math.floor(rate / 2);
  const head = [zeros(6), u16(1), zeros(8), u16(channels, bitsPerSample, 0, 0), u32(rate * 0x10000)];
  return box('fLaC', ...head, fullBox('dfLa', 0, 0, streamInfoBlock(config)));
}

/** Elementary stream descriptor (ISO/IEC 14496-1, 7.2.6; 14496-14, 5.6). */
function esds(track: AudioTrack, objectType: number, ...specific: Buffer[]): Buffer {
  const AUDIO_STREAM = 0x15;
  const bitrate = fitting(track.bitrate, 32);
  const decoder = descriptor(4, u8(objectType, AUDIO_STREAM, 0, 0, 0), u32(bitrate, bitrate), ...specific);
  return fullBox('esds', 0, 0, descriptor(3, u16(0), u8(0), decoder, descriptor(6, u8(2))));
}

/** Descriptor with its size in one byte if that suffices, else in four of seven bits each. */
function descriptor(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80
      ? u8(length)
      : u8(0x80 | (length >> 21), 0x80 | ((length >> 14) & 0x7f), 0x80 | ((length >> 7) & 0x7f), length & 0x7f);
  return Buffer.concat([u8(tag), size, body]);
}

function configuration(track: MediaTrack): Buffer {
  if (track.config === undefined) throw new UnsupportedTrackError(`${track.codec} track without configuration`);
  return track.config;
}
