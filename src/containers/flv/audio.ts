import type { AudioCodec } from '../../core/track.ts';
import { FlvError } from './error.ts';
import { AUDIO_MULTITRACK, need, PacketType, readModifiers, trackParts, type TrackPart } from './extended.ts';

/** One track of an FLV audio tag, which is the body of an RTMP audio message. */
export interface AudioTag {
  readonly codec: AudioCodec;
  /** `config`: AudioSpecificConfig, Opus identification header or FLAC header; `frame`: coded audio. */
  readonly packet: 'config' | 'frame' | 'end';
  readonly nanos: number;
  readonly data: Buffer;
}

const EXTENDED_FORMAT = 9;
const AAC = 10;
/** Audio formats of the classic form, as the FourCC of Enhanced RTMP. */
const LEGACY_CODECS: Readonly<Record<number, string>> = { 2: '.mp3', [AAC]: 'mp4a', 14: '.mp3' };

export const AUDIO_FOUR_CC: Readonly<Record<string, AudioCodec>> = {
  Opus: 'OPUS',
  mp4a: 'AAC',
  '.mp3': 'MP3',
  'ac-3': 'AC3',
  'ec-3': 'EAC3',
  fLaC: 'FLAC',
};

const MULTICHANNEL_CONFIG = 4;

/** Whether a tag has the form of Enhanced RTMP. */
export function isExtendedAudio(tag: Buffer): boolean {
  return (tag[0] ?? 0) >> 4 === EXTENDED_FORMAT;
}

/**
 * Splits an audio tag into its tracks (FLV specification annex E.4.2; Enhanced RTMP v2, "Enhanced Audio"), each to be
 * read by `readAudioPart`.
 * @throws FlvError when the tag is malformed; earlier tracks have been returned
 */
export function* audioParts(tag: Buffer): Generator<TrackPart, void> {
  need(tag, 0, 1);
  if (isExtendedAudio(tag)) yield* trackParts(tag, readModifiers(tag, tag.readUInt8(0) & 0x0f), AUDIO_MULTITRACK);
  else yield legacyPart(tag);
}

function legacyPart(tag: Buffer): TrackPart {
  const format = tag.readUInt8(0) >> 4;
  const fourCc = LEGACY_CODECS[format];
  if (fourCc === undefined) throw new FlvError(`audio format ${format} is not supported`);
  const base = { fourCc, trackId: 0, nanos: 0 };
  if (format !== AAC) return { ...base, packetType: PacketType.CodedFrames, body: tag.subarray(1) };
  need(tag, 0, 2);
  const packetType = tag.readUInt8(1) === 0 ? PacketType.SequenceStart : PacketType.CodedFrames;
  return { ...base, packetType, body: tag.subarray(2) };
}

/**
 * @returns undefined for parts without audio: speaker layouts
 * @throws FlvError when the part is malformed or its codec is not supported
 */
export function readAudioPart({ packetType, fourCc, nanos, body: data }: TrackPart): AudioTag | undefined {
  if (packetType === MULTICHANNEL_CONFIG) return undefined;
  const codec = AUDIO_FOUR_CC[fourCc];
  if (codec === undefined) throw new FlvError(`audio FourCC ${JSON.stringify(fourCc)} is not supported`);
  switch (packetType) {
    case PacketType.SequenceStart:
      return { codec, packet: 'config', nanos, data };
    case PacketType.CodedFrames:
      return { codec, packet: 'frame', nanos, data };
    case PacketType.SequenceEnd:
      return { codec, packet: 'end', nanos, data };
    default:
      throw new FlvError(`audio packet type ${packetType} is unknown`);
  }
}
