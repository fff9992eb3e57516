import { FlvError } from './error.ts';

/** What a tag does, as the low bits of its first byte say; audio and video number it alike but for Multitrack. */
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

const ONE_TRACK = 0;
const MANY_TRACKS_MANY_CODECS = 2;
const MOD_EX_TIMESTAMP_NANO = 0;
const MAX_NANOS = 999_999;

export interface ExtendedHeader {
  readonly packetType: number;
  readonly fourCc: string;
  readonly trackId: number;
  /** Nanoseconds to add to the time of the message. */
  readonly nanos: number;
  readonly body: Buffer;
}

/** The packet type behind the modifiers of a tag, the position behind them, and what they say. */
export interface Modifiers {
  readonly packetType: number;
  readonly nanos: number;
  readonly at: number;
}

/**
 * Skips the ModEx chain of an Enhanced RTMP v2 tag.
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
 * Reads the FourCC and, of a tag with many tracks, the part of one track.
 * @param multitrack the packet type that announces several tracks
 * @param wanted track id to pick; undefined for the first in the tag
 * @returns undefined when the wanted track is not in the tag
 * @throws FlvError when it is malformed
 */
export function readExtended(
  tag: Buffer, modifiers: Modifiers, multitrack: number, wanted: number | undefined,
): ExtendedHeader | undefined {
  const { nanos, packetType } = modifiers;
  let at = modifiers.at;
  if (packetType !== multitrack) {
    if (wanted !== undefined && wanted !== 0) return undefined;
    need(tag, at, 4);
    return { packetType, fourCc: tag.toString('latin1', at, at + 4), trackId: 0, nanos, body: tag.subarray(at + 4) };
  }
  need(tag, at, 1);
  const mode = tag.readUInt8(at) >> 4;
  const inner = tag.readUInt8(at) & 0x0f;
  at++;
  if (inner === multitrack || mode > MANY_TRACKS_MANY_CODECS) throw new FlvError('malformed multitrack tag');
  let fourCc = '';
  if (mode !== MANY_TRACKS_MANY_CODECS) {
    need(tag, at, 4);
    fourCc = tag.toString('latin1', at, at + 4);
    at += 4;
  }
  while (at < tag.length) {
    if (mode === MANY_TRACKS_MANY_CODECS) {
      need(tag, at, 4);
      fourCc = tag.toString('latin1', at, at + 4);
      at += 4;
    }
    need(tag, at, 1);
    const trackId = tag.readUInt8(at++);
    let end = tag.length;
    if (mode !== ONE_TRACK) {
      need(tag, at, 3);
      end = at + 3 + tag.readUIntBE(at, 3);
      at += 3;
      need(tag, at, end - at);
    }
    if (wanted === undefined || wanted === trackId) {
      return { packetType: inner, fourCc, trackId, nanos, body: tag.subarray(at, end) };
    }
    at = end;
  }
  return undefined;
}

/** @throws FlvError when the tag does not hold `bytes` more */
export function need(tag: Buffer, at: number, bytes: number): void {
  if (tag.length - at < bytes) throw new FlvError('tag is cut off');
}
