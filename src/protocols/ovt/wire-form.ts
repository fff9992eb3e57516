import { buildAdtsHeader, parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { isParameterSet as isAvcSet, parseAvcConfig } from '../../codecs/h264.ts';
import { isParameterSet as isHevcSet, parseHevcConfig } from '../../codecs/h265.ts';
import { nalUnits } from '../../codecs/nal.ts';
import { tolerant } from '../../codecs/bits.ts';
import type { Packet } from '../../core/packet.ts';
import type { Codec, DataTrack, Track } from '../../core/track.ts';
import { BITSTREAM, PACKET_TYPE } from './enumerations.ts';

/**
 * Bitstream form of frames on the wire. `plain`: as in `Packet`. `framed`: as OvenMediaEngine sends them, H.264 and H.265 with
 * start codes and with parameter sets before key frames, AAC with ADTS headers.
 */
export type WireForms = 'plain' | 'framed';

/** Encodes the packets of one track for the wire. */
export interface WireForm {
  readonly bitstream: number;
  readonly packetType: number;
  /** Bytes of a packet on the wire: slices of its data, and the bytes between them. */
  pieces(packet: Packet): readonly Buffer[];
}

const PLAIN: Readonly<Record<Codec, number>> = Object.freeze({
  H264: BITSTREAM.avcc,
  H265: BITSTREAM.hvcc,
  AV1: BITSTREAM.av1,
  VP8: BITSTREAM.vp8,
  VP9: BITSTREAM.vp9,
  AAC: BITSTREAM.aacRaw,
  OPUS: BITSTREAM.opus,
  MP3: BITSTREAM.mp3,
  MP2: BITSTREAM.mp2,
  JPEG: BITSTREAM.jpeg,
  PNG: BITSTREAM.png,
  WEBP: BITSTREAM.webp,
  AVIF: BITSTREAM.avif,
  ID3v2: BITSTREAM.id3v2,
  AC3: BITSTREAM.ac3,
  EAC3: BITSTREAM.eac3,
  FLAC: BITSTREAM.flac,
  PCMA: BITSTREAM.pcma,
  PCMU: BITSTREAM.pcmu,
  G722: BITSTREAM.g722,
  SCTE35: BITSTREAM.scte35,
  CUE: BITSTREAM.cue,
  INTERSTITIAL: BITSTREAM.interstitial,
  AMF: BITSTREAM.amf,
  KLV: BITSTREAM.klv,
  WebVTT: BITSTREAM.webvtt,
});

/** Packet types by the target of the events. */
const EVENT_TYPE = Object.freeze({
  all: PACKET_TYPE.event,
  video: PACKET_TYPE.videoEvent,
  audio: PACKET_TYPE.audioEvent,
});

/** Type of the tracks that an event of this packet type belongs to; undefined for all of them. */
export function eventTarget(packetType: number): DataTrack['target'] {
  if (packetType === EVENT_TYPE.video) return 'video';
  return packetType === EVENT_TYPE.audio ? 'audio' : undefined;
}

/** Codecs that only nodes of Kiln send each other. */
const OWN: ReadonlySet<Codec> = new Set<Codec>([
  'VP9',
  'AC3',
  'EAC3',
  'FLAC',
  'PCMA',
  'PCMU',
  'G722',
  'SCTE35',
  'CUE',
  'INTERSTITIAL',
  'AMF',
  'KLV',
  'WebVTT',
]);

/** Returns undefined for a track that has no such form. */
export function wireForm(track: Track, forms: WireForms): WireForm | undefined {
  if (forms === 'framed') {
    if (OWN.has(track.codec)) return undefined;
    if (track.codec === 'H264') return new AnnexBForm(BITSTREAM.h264AnnexB, avcSets(track.config), isAvcSet);
    if (track.codec === 'H265') return new AnnexBForm(BITSTREAM.h265AnnexB, hevcSets(track.config), isHevcSet);
    if (track.codec === 'AAC') return adtsForm(track.config) ?? plainForm(track);
  }
  return plainForm(track);
}

function plainForm(track: Track): WireForm {
  return { bitstream: PLAIN[track.codec], packetType: packetTypeOf(track), pieces: ({ data }) => [data] };
}

function packetTypeOf(track: Track): number {
  if (track.type === 'data') return EVENT_TYPE[track.target ?? 'all'];
  return track.codec === 'H264' || track.codec === 'H265' ? PACKET_TYPE.nalUnits : PACKET_TYPE.raw;
}

const START_CODE = Buffer.of(0, 0, 0, 1);
/** A unit of more NAL units than this is copied: so many pieces would cost more. */
const MAX_PIECES = 64;

class AnnexBForm implements WireForm {
  readonly bitstream: number;
  readonly packetType = PACKET_TYPE.nalUnits;
  /** Parameter sets for a decoder that starts at a key frame. */
  readonly #sets: Buffer;
  readonly #isSet: (nal: Buffer) => boolean;

  constructor(bitstream: number, sets: readonly Buffer[], isSet: (nal: Buffer) => boolean) {
    this.bitstream = bitstream;
    this.#isSet = isSet;
    this.#sets = Buffer.concat(sets.flatMap((nal) => [START_CODE, nal]));
  }

  pieces({ data, key }: Packet): readonly Buffer[] {
    // key frames may contain all sets that they need
    const before = key && this.#sets.length > 0 && !this.#isSet(data.subarray(4, 6)) ? [this.#sets] : [];
    const pieces = [...before];
    for (const nal of nalUnits(data)) {
      if (pieces.length >= MAX_PIECES) return [...before, withStartCodes(data)];
      pieces.push(START_CODE, nal);
    }
    return pieces;
  }
}

function withStartCodes(data: Buffer): Buffer {
  const copy = Buffer.from(data);
  for (const nal of nalUnits(data)) START_CODE.copy(copy, nal.byteOffset - data.byteOffset - START_CODE.length);
  return copy;
}

function avcSets(config: Buffer | undefined): readonly Buffer[] {
  const record = config && tolerant(() => parseAvcConfig(config));
  return record === undefined ? [] : [...record.sps, ...record.spsExtensions, ...record.pps];
}

function hevcSets(config: Buffer | undefined): readonly Buffer[] {
  const record = config && tolerant(() => parseHevcConfig(config));
  return record === undefined ? [] : [...record.vps, ...record.sps, ...record.pps];
}

/** Returns undefined where ADTS cannot represent the configuration. */
function adtsForm(config: Buffer | undefined): WireForm | undefined {
  const format = config && tolerant(() => parseAudioSpecificConfig(config));
  if (format === undefined || format.channelConfiguration === 0) return undefined;
  if (tolerant(() => buildAdtsHeader(format, 0)) === undefined) return undefined;
  return {
    bitstream: BITSTREAM.aacAdts,
    packetType: PACKET_TYPE.raw,
    pieces: ({ data }) => [buildAdtsHeader(format, data.length), data],
  };
}
