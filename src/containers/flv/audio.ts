import type { AudioCodec } from '../../core/track.ts';
import { FlvError } from './error.ts';
import { AUDIO_MULTITRACK, need, PacketType, readExtended, readModifiers } from './extended.ts';

/** The body of an audio tag of FLV, which is that of an audio message of RTMP. */
export interface AudioTag {
  readonly codec: AudioCodec;
  /** `config`: AudioSpecificConfig or Opus identification header; `frame`: coded audio. */
  readonly packet: 'config' | 'frame' | 'end';
  readonly trackId: number;
  /** Nanoseconds to add to the time of the message. */
  readonly nanos: number;
  readonly data: Buffer;
}

const EXTENDED_FORMAT = 9;
const AAC = 10;
const LEGACY_CODECS: Readonly<Record<number, AudioCodec>> = { 2: 'MP3', [AAC]: 'AAC', 14: 'MP3' };

export const AUDIO_FOUR_CC: Readonly<Record<string, AudioCodec>> = { Opus: 'OPUS', mp4a: 'AAC', '.mp3': 'MP3' };

const MULTICHANNEL_CONFIG = 4;

/** True for a tag in the form of Enhanced RTMP. */
export function isExtendedAudio(tag: Buffer): boolean {
  return (tag[0] ?? 0) >> 4 === EXTENDED_FORMAT;
}

/**
 * Reads an audio tag body (FLV specification annex E.4.2; Enhanced RTMP v2, "Enhanced Audio").
 * @param track the track to take of several; undefined for the first in the tag
 * @returns undefined for what carries no sound: speaker layouts, other tracks
 * @throws FlvError when the tag is malformed or its codec is not taken
 */
export function parseAudioTag(tag: Buffer, track?: number): AudioTag | undefined {
  need(tag, 0, 1);
  return isExtendedAudio(tag) ? parseExtended(tag, track) : parseLegacy(tag, track);
}

function parseLegacy(tag: Buffer, track: number | undefined): AudioTag | undefined {
  if (track !== undefined && track !== 0) return undefined;
  const format = tag.readUInt8(0) >> 4;
  const codec = LEGACY_CODECS[format];
  if (codec === undefined) throw new FlvError(`sound format ${format} is not taken`);
  if (format !== AAC) return { codec, packet: 'frame', trackId: 0, nanos: 0, data: tag.subarray(1) };
  need(tag, 0, 2);
  const packet = tag.readUInt8(1) === 0 ? 'config' : 'frame';
  return { codec, packet, trackId: 0, nanos: 0, data: tag.subarray(2) };
}

function parseExtended(tag: Buffer, track: number | undefined): AudioTag | undefined {
  const modifiers = readModifiers(tag, tag.readUInt8(0) & 0x0f);
  const header = readExtended(tag, modifiers, AUDIO_MULTITRACK, track);
  if (header === undefined || header.packetType === MULTICHANNEL_CONFIG) return undefined;
  const { packetType, fourCc, trackId, nanos, body: data } = header;
  const codec = AUDIO_FOUR_CC[fourCc];
  if (codec === undefined) throw new FlvError(`audio FourCC ${JSON.stringify(fourCc)} is not taken`);
  switch (packetType) {
    case PacketType.SequenceStart:
      return { codec, packet: 'config', trackId, nanos, data };
    case PacketType.CodedFrames:
      return { codec, packet: 'frame', trackId, nanos, data };
    case PacketType.SequenceEnd:
      return { codec, packet: 'end', trackId, nanos, data };
    default:
      throw new FlvError(`audio packet type ${packetType} is unknown`);
  }
}
