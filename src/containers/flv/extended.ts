import { FlvError } from './error.ts';

/** Packet type, in the low bits of a tag's first byte; equal for audio and video except for Multitrack. */
export const PacketType = {
  SequenceStart: 0,
  CodedFrames: 1,
  SequenceEnd: 2,
  CodedFramesX: 3,
  Metadata: 4,
  Mpeg2TsSequenceStart: 5,
  ModEx: 7,
} as const;

/** Multitrack packet types of Enhanced RTMP. */
export const VIDEO_MULTITRACK = 6;
export const AUDIO_MULTITRACK = 5;

/** Layout of the tracks of a Multitrack tag (`AvMultitrackType`). */
export const Multitrack = { OneTrack: 0, ManyTracks: 1, ManyTracksManyCodecs: 2 } as const;

const MOD_EX_TIMESTAMP_NANO = 0;
const MAX_NANOS = 999_999;
/** Track ids have one byte. */
const MAX_PARTS = 256;

/** Part of a tag that belongs to one track; a plain tag is one part, of track 0. */
export interface TrackPart {
  readonly packetType: number;
  readonly fourCc: string;
  readonly trackId: number;
  /** Nanoseconds to add to the time of the message. */
  readonly nanos: number;
  readonly body: Buffer;
}

/** Packet type after the modifiers of a tag, the position after them, and their values. */
export interface Modifiers {
  readonly packetType: number;
  readonly nanos: number;
  readonly at: number;
}

/**
 * Reads the ModEx chain of an Enhanced RTMP v2 tag.
 * @param packetType the low bits of the tag's first byte
 * @throws FlvError when it is cut off
 */
export function readModifiers(tag: Buffer, packetType: number): Modifiers {
  let at = 1;
  let nanos = 0;
  while (packetType === PacketType.ModEx) {
    need(tag, at, 1);
    let size = tag.readUInt8(at++) + 1;
    if (size === 256) {
      need(tag, at, 2);
      size = tag.readUInt16BE(at) + 1;
      at += 2;
    }
    need(tag, at, size + 1);
    const next = tag.readUInt8(at + size);
    if (next >> 4 === MOD_EX_TIMESTAMP_NANO && size >= 3) nanos = Math.min(tag.readUIntBE(at, 3), MAX_NANOS);
    packetType = next & 0x0f;
    at += size + 1;
  }
  return { packetType, nanos, at };
}

/**
 * Splits an Enhanced RTMP tag into its tracks ("ExAudioTagBody", "ExVideoTagBody").
 * @param multitrack the packet type that announces several tracks
 * @throws FlvError when it is malformed; earlier tracks have been returned
 */
export function* trackParts(tag: Buffer, modifiers: Modifiers, multitrack: number): Generator<TrackPart, void> {
  const { nanos, packetType } = modifiers;
  let { at } = modifiers;
  if (packetType !== multitrack) {
    yield { packetType, fourCc: fourCcAt(tag, at), trackId: 0, nanos, body: tag.subarray(at + 4) };
    return;
  }
  need(tag, at, 1);
  const kind = tag.readUInt8(at) >> 4;
  const inner = tag.readUInt8(at) & 0x0f;
  at++;
  if (inner === multitrack || kind > Multitrack.ManyTracksManyCodecs) throw new FlvError('malformed multitrack tag');
  let fourCc = '';
  if (kind !== Multitrack.ManyTracksManyCodecs) {
    fourCc = fourCcAt(tag, at);
    at += 4;
  }
  let parts = 0;
  do {
    if (++parts > MAX_PARTS) throw new FlvError('more tracks in a tag than there are ids');
    if (kind === Multitrack.ManyTracksManyCodecs) {
      fourCc = fourCcAt(tag, at);
      at += 4;
    }
    need(tag, at, 1);
    const trackId = tag.readUInt8(at++);
    let end = tag.length;
    if (kind !== Multitrack.OneTrack) {
      need(tag, at, 3);
      end = at + 3 + tag.readUIntBE(at, 3);
      at += 3;
      need(tag, at, end - at);
    }
    yield { packetType: inner, fourCc, trackId, nanos, body: tag.subarray(at, end) };
    at = end;
  } while (at < tag.length);
}

function fourCcAt(tag: Buffer, at: number): string {
  need(tag, at, 4);
  return tag.toString('latin1', at, at + 4);
}

/** @throws FlvError when the tag does not hold `bytes` more */
export function need(tag: Buffer, at: number, bytes: number): void {
  if (tag.length - at < bytes) throw new FlvError('tag is cut off');
}
