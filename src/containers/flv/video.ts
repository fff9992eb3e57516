import type { VideoCodec } from '../../core/track.ts';
import { FlvError } from './error.ts';
import { need, PacketType, readModifiers, trackParts, VIDEO_MULTITRACK, type TrackPart } from './extended.ts';

/** One track of an FLV video tag, which is the body of an RTMP video message. */
export interface VideoTag {
  readonly codec: VideoCodec;
  /** `config`: a decoder configuration record; `frame`: one frame; `end`: nothing follows for now. */
  readonly packet: 'config' | 'frame' | 'end';
  /** Milliseconds to add to the time of the message for the presentation time. */
  readonly compositionTime: number;
  readonly nanos: number;
  readonly data: Buffer;
}

/**
 * Codec ids of the classic form, as the FourCC of Enhanced RTMP; 12 is not in the specification, but encoders sent HEVC
 * with it before Enhanced RTMP.
 */
const LEGACY_CODECS: Readonly<Record<number, string>> = { 7: 'avc1', 12: 'hvc1' };

export const VIDEO_FOUR_CC: Readonly<Record<string, VideoCodec>> = {
  avc1: 'H264',
  hvc1: 'H265',
  av01: 'AV1',
  vp09: 'VP9',
  vp08: 'VP8',
};

const COMMAND_FRAME = 5;
const AV1_DESCRIPTOR_TAG = 0x80;

/** Whether a tag has the form of Enhanced RTMP. */
export function isExtendedVideo(tag: Buffer): boolean {
  return ((tag[0] ?? 0) & 0x80) !== 0;
}

/**
 * Splits a video tag into its tracks (FLV specification annex E.4.3; Enhanced RTMP v2, "Enhanced Video"), each to be
 * read by `readVideoPart`; none of a command.
 * @throws FlvError when the tag is malformed; earlier tracks have been returned
 */
export function* videoParts(tag: Buffer): Generator<TrackPart, void> {
  need(tag, 0, 1);
  const first = tag.readUInt8(0);
  if (!isExtendedVideo(tag)) {
    if (first >> 4 !== COMMAND_FRAME) yield legacyPart(tag);
    return;
  }
  const modifiers = readModifiers(tag, first & 0x0f);
  const command = ((first >> 4) & 0b111) === COMMAND_FRAME && modifiers.packetType !== PacketType.Metadata;
  if (!command) yield* trackParts(tag, modifiers, VIDEO_MULTITRACK);
}

function legacyPart(tag: Buffer): TrackPart {
  const codec = tag.readUInt8(0) & 0x0f;
  const fourCc = LEGACY_CODECS[codec];
  if (fourCc === undefined) throw new FlvError(`video codec id ${codec} is not supported`);
  need(tag, 0, 5);
  // start, frames and end have the numbers of Enhanced RTMP, but each has a composition time
  const packetType = tag.readUInt8(1);
  if (packetType > PacketType.SequenceEnd) throw new FlvError(`video packet type ${packetType} is unknown`);
  const body = tag.subarray(packetType === PacketType.CodedFrames ? 2 : 5);
  return { packetType, fourCc, trackId: 0, nanos: 0, body };
}

/**
 * @returns undefined for parts without video: colour metadata
 * @throws FlvError when the part is malformed or its codec is not supported
 */
export function readVideoPart({ packetType, fourCc, nanos, body }: TrackPart): VideoTag | undefined {
  if (packetType === PacketType.Metadata) return undefined;
  const codec = VIDEO_FOUR_CC[fourCc];
  if (codec === undefined) throw new FlvError(`video FourCC ${JSON.stringify(fourCc)} is not supported`);
  const base = { codec, nanos, compositionTime: 0 };
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
      // only the codecs with reordered frames carry a composition time
      if (codec !== 'H264' && codec !== 'H265') return { ...base, packet: 'frame', data: body };
      need(body, 0, 3);
      return { codec, nanos, packet: 'frame', compositionTime: body.readIntBE(0, 3), data: body.subarray(3) };
    default:
      throw new FlvError(`video packet type ${packetType} is unknown`);
  }
}

/** Returns the av1C header of an AV1 video descriptor (AV1 in MPEG-2 TS, section 2.1). */
function fromDescriptor(codec: VideoCodec, body: Buffer): Buffer {
  if (codec !== 'AV1' || body[0] !== AV1_DESCRIPTOR_TAG) throw new FlvError('MPEG-2 TS sequence start is not of AV1');
  need(body, 2, 4);
  const record = Buffer.from(body.subarray(2, 6));
  // the top bits are the colour range there, and reserved in av1C
  record[3] = (record[3] as number) & 0x1f;
  return record;
}
