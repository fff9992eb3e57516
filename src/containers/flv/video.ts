import type { VideoCodec } from '../../core/track.ts';
import { FlvError } from './error.ts';
import { need, PacketType, readExtended, readModifiers, VIDEO_MULTITRACK } from './extended.ts';

/** The body of a video tag of FLV, which is that of a video message of RTMP. */
export interface VideoTag {
  readonly codec: VideoCodec;
  /** `config`: a decoder configuration record; `frame`: one frame; `end`: nothing follows for now. */
  readonly packet: 'config' | 'frame' | 'end';
  readonly trackId: number;
  /** What the sender says of the frame. */
  readonly key: boolean;
  /** Milliseconds to add to the time of the message for the presentation time. */
  readonly compositionTime: number;
  /** Nanoseconds to add to the time of the message. */
  readonly nanos: number;
  readonly data: Buffer;
}

/** Codec ids; 12 is not in the specification, yet what encoders sent HEVC as before Enhanced RTMP. */
const LEGACY_CODECS: Readonly<Record<number, VideoCodec>> = { 7: 'H264', 12: 'H265' };

export const VIDEO_FOUR_CC: Readonly<Record<string, VideoCodec>> = {
  avc1: 'H264', hvc1: 'H265', av01: 'AV1', vp09: 'VP9', vp08: 'VP8',
};

const KEY_FRAME = 1;
const COMMAND_FRAME = 5;
const LEGACY_PACKETS = ['config', 'frame', 'end'] as const;
const AV1_DESCRIPTOR_TAG = 0x80;

/** True for a tag in the form of Enhanced RTMP. */
export function isExtendedVideo(tag: Buffer): boolean {
  return ((tag[0] ?? 0) & 0x80) !== 0;
}

/**
 * Reads a video tag body (FLV specification annex E.4.3; Enhanced RTMP v2, "Enhanced Video").
 * @param track the track to take of several; undefined for the first in the tag
 * @returns undefined for what carries no picture: commands, colour metadata, other tracks
 * @throws FlvError when the tag is malformed or its codec is not taken
 */
export function parseVideoTag(tag: Buffer, track?: number): VideoTag | undefined {
  need(tag, 0, 1);
  return isExtendedVideo(tag) ? parseExtended(tag, track) : parseLegacy(tag, track);
}

function parseLegacy(tag: Buffer, track: number | undefined): VideoTag | undefined {
  const first = tag.readUInt8(0);
  const frameType = first >> 4;
  if (frameType === COMMAND_FRAME || (track !== undefined && track !== 0)) return undefined;
  const codec = LEGACY_CODECS[first & 0x0f];
  if (codec === undefined) throw new FlvError(`video codec id ${first & 0x0f} is not taken`);
  need(tag, 0, 5);
  const packet = LEGACY_PACKETS[tag.readUInt8(1)];
  if (packet === undefined) throw new FlvError(`video packet type ${tag.readUInt8(1)} is unknown`);
  return {
    codec, packet, trackId: 0, key: frameType === KEY_FRAME,
    compositionTime: packet === 'frame' ? tag.readIntBE(2, 3) : 0, nanos: 0, data: tag.subarray(5),
  };
}

function parseExtended(tag: Buffer, track: number | undefined): VideoTag | undefined {
  const first = tag.readUInt8(0);
  const frameType = (first >> 4) & 0b111;
  const modifiers = readModifiers(tag, first & 0x0f);
  if (modifiers.packetType === PacketType.Metadata || frameType === COMMAND_FRAME) return undefined;
  const header = readExtended(tag, modifiers, VIDEO_MULTITRACK, track);
  if (header === undefined || header.packetType === PacketType.Metadata) return undefined;
  const { packetType, fourCc, trackId, nanos, body } = header;
  const codec = VIDEO_FOUR_CC[fourCc];
  if (codec === undefined) throw new FlvError(`video FourCC ${JSON.stringify(fourCc)} is not taken`);
  const base = { codec, trackId, nanos, key: frameType === KEY_FRAME, compositionTime: 0 };
  switch (packetType) {
    case PacketType.SequenceStart:
      return { ...base, packet: 'config', data: body };
    case PacketType.Mpeg2TsSequenceStart:
      return { ...base, packet: 'config', data: fromDescriptor(codec, body) };
    case PacketType.SequenceEnd:
      return { ...base, packet: 'end', data: body };
    case PacketType.CodedFramesX:
      return { ...base, packet: 'frame', data: body };
    case PacketType.CodedFrames:
      // Only the codecs with reordered frames carry a composition time.
      if (codec !== 'H264' && codec !== 'H265') return { ...base, packet: 'frame', data: body };
      need(body, 0, 3);
      return { ...base, packet: 'frame', compositionTime: body.readIntBE(0, 3), data: body.subarray(3) };
    default:
      throw new FlvError(`video packet type ${packetType} is unknown`);
  }
}

/** The av1C header out of an AV1 video descriptor (AV1 in MPEG-2 TS, section 2.1). */
function fromDescriptor(codec: VideoCodec, body: Buffer): Buffer {
  if (codec !== 'AV1' || body[0] !== AV1_DESCRIPTOR_TAG) throw new FlvError('MPEG-2 TS sequence start is not of AV1');
  need(body, 2, 4);
  const record = Buffer.from(body.subarray(2, 6));
  // The top bits tell the colour range there and are reserved in av1C.
  record[3] = (record[3] as number) & 0x1f;
  return record;
}
