import { BitstreamError } from '../../codecs/bits.ts';
import type { Codec } from '../../core/track.ts';
import { BITSTREAM, PACKET_TYPE } from '../../protocols/ovt/enumerations.ts';
import type { Frame } from '../../protocols/ovt/media.ts';

/** Accepted bitstream formats of each codec. */
const FORMS: Readonly<Record<Codec, readonly number[]>> = {
  H264: [BITSTREAM.avcc, BITSTREAM.h264AnnexB],
  H265: [BITSTREAM.hvcc, BITSTREAM.h265AnnexB],
  AV1: [BITSTREAM.av1],
  VP8: [BITSTREAM.vp8],
  VP9: [BITSTREAM.vp9],
  AAC: [BITSTREAM.aacRaw, BITSTREAM.aacAdts],
  OPUS: [BITSTREAM.opus],
  MP3: [BITSTREAM.mp3],
  MP2: [BITSTREAM.mp2],
  JPEG: [BITSTREAM.jpeg],
  PNG: [BITSTREAM.png],
  WEBP: [BITSTREAM.webp],
  AVIF: [BITSTREAM.avif],
  ID3v2: [BITSTREAM.id3v2],
  AC3: [BITSTREAM.ac3],
  EAC3: [BITSTREAM.eac3],
  FLAC: [BITSTREAM.flac],
  PCMA: [BITSTREAM.pcma],
  PCMU: [BITSTREAM.pcmu],
  G722: [BITSTREAM.g722],
  SCTE35: [BITSTREAM.scte35],
  CUE: [BITSTREAM.cue],
  INTERSTITIAL: [BITSTREAM.interstitial],
  AMF: [BITSTREAM.amf],
  KLV: [BITSTREAM.klv],
  WebVTT: [BITSTREAM.webvtt],
};

export function isOfForm(codec: Codec, { bitstream }: Frame): boolean {
  return FORMS[codec].includes(bitstream);
}

/** @throws BitstreamError for another format than the codec may have */
export function checkForm(codec: Codec, frame: Frame): void {
  if (!isOfForm(codec, frame)) throw new BitstreamError(`${codec} in bitstream format ${frame.bitstream}`);
}

/** Whether a frame is a decoder configuration, without media. */
export function isConfiguration({ packetType }: Frame): boolean {
  return packetType === PACKET_TYPE.sequenceHeader;
}
