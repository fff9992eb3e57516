import { tolerant } from '../../codecs/bits.ts';
import { parseStreamInfo, streamInfoOf } from '../../codecs/flac.ts';
import type { AudioTrack, SubtitleTrack, VideoCodec, VideoTrack } from '../../core/track.ts';
import { BOX_HEAD_BYTES, child } from './read-box.ts';
import { UnsupportedTrackError } from './sample-entry.ts';

/** Fields of a track that its sample entry has. */
export type SampleDescription =
  | Pick<VideoTrack, 'type' | 'codec' | 'config' | 'inBandSets' | 'width' | 'height'>
  | Pick<AudioTrack, 'type' | 'codec' | 'config' | 'samplerate' | 'channels'>;

/** Fields as of SampleDescription, or subtitles. */
export type AnyDescription = SampleDescription | Pick<SubtitleTrack, 'type' | 'codec'>;

const VIDEO: Readonly<Record<string, readonly [codec: VideoCodec, config: string, isOpen?: true]>> = {
  avc1: ['H264', 'avcC'],
  avc3: ['H264', 'avcC', true],
  hvc1: ['H265', 'hvcC'],
  hev1: ['H265', 'hvcC', true],
  av01: ['AV1', 'av1C'],
  vp09: ['VP9', 'vpcC'],
};

/** Fields before the boxes of an entry (ISO/IEC 14496-12, 12.1.3 and 12.2.3). */
const VIDEO_FIELDS = 78;
const AUDIO_FIELDS = 28;
/** Version and flags of a full box. */
const FULL = 4;

/** Descriptors of ISO/IEC 14496-1, 7.2.6, and the bytes before those inside. */
const INSIDE: Readonly<Record<number, number>> = { 3: 3, 4: 13 };
const SPECIFIC = 5;
const OBJECT_TYPES: Readonly<Record<number, 'AAC' | 'MP3'>> = { 0x40: 'AAC', 0x6b: 'MP3', 0x69: 'MP3' };

/**
 * Reads an entry of `stsd`, as `sampleEntry` writes it.
 * @throws UnsupportedTrackError for another codec; RangeError for a damaged one
 */
export function readSampleEntry(entry: Buffer): SampleDescription {
  const type = entry.toString('latin1', 4, 8);
  const content = entry.subarray(BOX_HEAD_BYTES);
  const video = VIDEO[type];
  if (video !== undefined) {
    const [codec, name, isOpen] = video;
    const { content: config } = child(content.subarray(VIDEO_FIELDS), name);
    return {
      type: 'video',
      codec,
      config: name === 'vpcC' ? config.subarray(FULL) : config,
      ...(isOpen && { inBandSets: true }),
      width: content.readUInt16BE(24),
      height: content.readUInt16BE(26),
    };
  }
  const shape = { type: 'audio', channels: content.readUInt16BE(16), samplerate: content.readUInt16BE(24) } as const;
  const boxes = content.subarray(AUDIO_FIELDS);
  if (type === 'Opus') return { ...shape, codec: 'OPUS', config: child(boxes, 'dOps').content };
  if (type === 'fLaC') {
    const config = tolerant(() => streamInfoOf(child(boxes, 'dfLa').content.subarray(FULL)));
    const format = config && tolerant(() => parseStreamInfo(config));
    if (format === undefined) throw new RangeError('a dfLa box without stream information');
    const { samplerate, channels } = format;
    return { type: 'audio', codec: 'FLAC', config, samplerate, channels };
  }
  if (type !== 'mp4a') throw new UnsupportedTrackError(`${type} is no codec that Kiln records in MP4`);
  const { objectType, specific } = readDescriptors(child(boxes, 'esds').content.subarray(FULL));
  const codec = OBJECT_TYPES[objectType];
  if (codec === undefined) throw new UnsupportedTrackError(`mp4a of object type ${objectType}`);
  return { ...shape, codec, ...(specific !== undefined && { config: specific }) };
}

function readDescriptors(bytes: Buffer): { readonly objectType: number; readonly specific: Buffer | undefined } {
  let objectType = 0;
  for (let at = 0; at < bytes.length;) {
    const tag = bytes.readUInt8(at++);
    let size = 0;
    for (let next = 0x80; next & 0x80;) {
      next = bytes.readUInt8(at++);
      size = size * 128 + (next & 0x7f);
    }
    if (tag === 4) objectType = bytes.readUInt8(at);
    if (tag === SPECIFIC) return { objectType, specific: bytes.subarray(at, at + size) };
    at += INSIDE[tag] ?? size;
  }
  return { objectType, specific: undefined };
}
