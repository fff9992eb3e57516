import { parseAudioSpecificConfig } from './aac.ts';
import { BitWriter, tolerant } from './bits.ts';
import { readMpegAudioFrame } from './mpeg-audio.ts';
import { parseOpusConfig } from './opus.ts';

/** id_syn_ele (ISO/IEC 14496-3 table 4.85). */
const SCE = 0;
const CPE = 1;
const LFE = 3;
const END = 7;
/** Elements of a frame by channelConfiguration (ISO/IEC 14496-3 1.6.3.5). */
const ELEMENTS: Readonly<Record<number, readonly number[]>> = {
  1: [SCE],
  2: [CPE],
  3: [SCE, CPE],
  4: [SCE, CPE, SCE],
  5: [SCE, CPE, CPE],
  6: [SCE, CPE, CPE, LFE],
  7: [SCE, CPE, CPE, CPE, LFE],
  11: [SCE, CPE, CPE, SCE, LFE],
  12: [SCE, CPE, CPE, CPE, LFE],
  14: [SCE, CPE, CPE, LFE, CPE],
};
/** Main, LC and LTP: their frames have the same form while they predict nothing. */
const PLAIN_TYPES = new Set([1, 2, 4]);
/** Duration of a packet by `silentPacket` for Opus. */
export const OPUS_SILENCE_SECONDS = 0.02;
/** 20 ms at full bandwidth in one frame (RFC 6716 3.1), mono; and the bit for stereo. */
const OPUS_TOC = 0xf8;
const OPUS_STEREO = 0x04;
/** CELT frame with its silence flag and nothing else (RFC 6716 4.3). */
const OPUS_SILENCE = [0xff, 0xfe];

/** Properties of a track that decide how its silence is coded. */
export interface Silenceable {
  readonly codec: string;
  readonly config?: Buffer;
}

/**
 * Builds a silent packet in canonical form for a track's codec and configuration; undefined where that is not possible.
 * @param like the newest packet of the track
 */
export function silentPacket({ codec, config }: Silenceable, like?: Buffer): Buffer | undefined {
  switch (codec) {
    case 'AAC':
      return config && tolerant(() => silentAac(config));
    case 'OPUS':
      return tolerant(() => silentOpus(config));
    case 'MP3':
      return like && silentMp3(like);
    default:
      return undefined;
  }
}

/** Writes raw_data_block() (4.4.2.1) of channels without a spectrum. */
function silentAac(config: Buffer): Buffer | undefined {
  const { objectType, channelConfiguration } = parseAudioSpecificConfig(config);
  const elements = ELEMENTS[channelConfiguration];
  if (elements === undefined || !PLAIN_TYPES.has(objectType)) return undefined;
  const writer = new BitWriter();
  const tags = new Map<number, number>();
  for (const element of elements) {
    const tag = tags.get(element) ?? 0;
    tags.set(element, tag + 1);
    writer.write(element, 3).write(tag, 4);
    if (element === CPE) {
      writer.flag(false);
      writeSilentChannel(writer);
    }
    writeSilentChannel(writer);
  }
  return writer.write(END, 3).finish();
}

/** Writes individual_channel_stream() (4.4.2.7): one long window, no scale factor bands, pulses, TNS or gain control. */
function writeSilentChannel(writer: BitWriter): void {
  const globalGain = 0;
  // ics_reserved_bit, window_sequence, window_shape, max_sfb, predictor_data_present
  writer.write(globalGain, 8).write(0, 1).write(0, 2).write(0, 1).write(0, 6).write(0, 1);
  writer.write(0, 3);
}

/** One packet of 20 ms; all of several streams but the last are self-delimited (RFC 6716 appendix B, RFC 7845 5.1.1). */
function silentOpus(config: Buffer | undefined): Buffer {
  const { channels, mapping } = config === undefined ? { channels: 2 } : parseOpusConfig(config);
  const { streams, coupled } = mapping ?? { streams: 1, coupled: channels - 1 };
  const bytes: number[] = [];
  for (let stream = 0; stream < streams; stream++) {
    bytes.push(stream < coupled ? OPUS_TOC | OPUS_STEREO : OPUS_TOC);
    if (stream < streams - 1) bytes.push(OPUS_SILENCE.length);
    bytes.push(...OPUS_SILENCE);
  }
  return Buffer.from(bytes);
}

/** Keeps the header without CRC and clears the rest: no granule has a bit of its own (ISO/IEC 11172-3 2.4.1.7). */
function silentMp3(like: Buffer): Buffer | undefined {
  const frame = readMpegAudioFrame(like, 0);
  if (frame === undefined || frame.layer !== 3 || frame.bytes !== like.length) return undefined;
  const silent = Buffer.alloc(like.length);
  like.copy(silent, 0, 0, 4);
  silent[1] = (silent[1] as number) | 1;
  return silent;
}
