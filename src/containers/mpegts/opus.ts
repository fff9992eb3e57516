import { buildOpusHead } from '../../codecs/opus.ts';

/**
 * Opus in MPEG-TS ("Encapsulation of Opus in ISO/IEC 13818-1:2007", ETSI TS 103 491 annex): stream type 0x06, a
 * registration descriptor `Opus`, an extension descriptor (EXTENSION.opus) with the channels, and in front of each
 * packet a control header with its length.
 */

const PREFIX = 0x3ff;
const PREFIX_BITS = 11;
const START_TRIM = 0x10;
const END_TRIM = 0x08;
const EXTENSION = 0x04;
const DUAL_MONO = 0;
const DECODER_RATE = 48_000;

/** Vorbis order of up to 8 channels for channel_config_code 1 to 8: streams, coupled, channels. */
const MAPPINGS: readonly (readonly [streams: number, coupled: number, channels: readonly number[]])[] = [
  [1, 0, [0]],
  [1, 1, [0, 1]],
  [2, 1, [0, 2, 1]],
  [2, 2, [0, 1, 2, 3]],
  [3, 2, [0, 4, 1, 2, 3]],
  [4, 2, [0, 4, 1, 2, 3, 5]],
  [4, 3, [0, 4, 1, 2, 3, 5, 6]],
  [5, 3, [0, 6, 1, 2, 3, 4, 5, 7]],
];

/**
 * Builds the identification header for a channel_config_code.
 * @returns undefined for reserved codes and those whose channels are described elsewhere
 */
export function opusHeadOf(channelConfigCode: number): Buffer | undefined {
  const decoding = { preSkip: 0, inputSamplerate: DECODER_RATE, outputGain: 0 };
  if (channelConfigCode === DUAL_MONO) {
    return buildOpusHead({
      ...decoding,
      channels: 2,
      mappingFamily: 255,
      mapping: { streams: 2, coupled: 0, channels: Buffer.of(0, 1) },
    });
  }
  const mapping = MAPPINGS[channelConfigCode - 1];
  if (mapping === undefined) return undefined;
  const [streams, coupled, order] = mapping;
  const channels = order.length;
  if (channels <= 2) return buildOpusHead({ ...decoding, channels, mappingFamily: 0, mapping: undefined });
  return buildOpusHead({
    ...decoding,
    channels,
    mappingFamily: 1,
    mapping: { streams, coupled, channels: Buffer.from(order) },
  });
}

/** Builds the control header of a packet with `bytes`. */
export function opusControlHeader(bytes: number): Buffer {
  const sizes = Math.floor(bytes / 255);
  const header = Buffer.alloc(3 + sizes, 255);
  header.writeUInt16BE(PREFIX << (16 - PREFIX_BITS));
  header[header.length - 1] = bytes % 255;
  return header;
}

/**
 * Reads the packet after a control header.
 * @returns undefined if the data ends before the packet, 'none' where no control header is
 */
export function readOpusUnit(
  data: Buffer,
  start: number,
): { readonly packet: Buffer; readonly end: number } | 'none' | undefined {
  if (start + 2 > data.length) return undefined;
  const flags = data.readUInt16BE(start);
  if (flags >> (16 - PREFIX_BITS) !== PREFIX) return 'none';
  let at = start + 2;
  let bytes = 0;
  let size: number | undefined;
  do {
    size = data[at++];
    bytes += size ?? 0;
  } while (size === 255);
  if ((flags & START_TRIM) !== 0) at += 2;
  if ((flags & END_TRIM) !== 0) at += 2;
  if ((flags & EXTENSION) !== 0) at += 1 + (data[at] ?? 0);
  const end = at + bytes;
  return end > data.length ? undefined : { packet: data.subarray(at, end), end };
}
