import { BitstreamError } from './bits.ts';
import { ByteReader } from './byte-reader.ts';

/** Content of OpusHead and dOps. */
export interface OpusConfig {
  readonly channels: number;
  /** Samples at 48 kHz to discard at the start. */
  readonly preSkip: number;
  /** Rate of the original, informative; decoding is at 48 kHz. */
  readonly inputSamplerate: number;
  /** Q7.8 dB. */
  readonly outputGain: number;
  /** 0: mono or stereo in one stream. */
  readonly mappingFamily: number;
  /** Undefined for family 0 only. */
  readonly mapping: OpusMapping | undefined;
}

export interface OpusMapping {
  readonly streams: number;
  readonly coupled: number;
  /** Stream channel by output channel, 255 for silence. */
  readonly channels: Buffer;
}

const MAGIC = Buffer.from('OpusHead');
const SILENCE = 255;
/** RFC 6716 section 3.1: 48 kHz samples of a frame, for each of the 32 configurations. */
const FRAME_SAMPLES = [
  480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 480, 960, 120, 240, 480, 960, 120, 240,
  480, 960, 120, 240, 480, 960, 120, 240, 480, 960,
];
/** 120 ms (RFC 6716 section 3.2.5). */
const MAX_PACKET_SAMPLES = 5760;

/** Reads an identification header (RFC 7845 section 5.1). @throws BitstreamError */
export function parseOpusHead(head: Buffer): OpusConfig {
  const reader = new ByteReader(head);
  if (!reader.bytes(MAGIC.length).equals(MAGIC)) throw new BitstreamError('not an OpusHead');
  if (reader.u8() > 15) throw new BitstreamError('an OpusHead of an unknown version');
  const channels = reader.u8();
  const preSkip = reader.bytes(2).readUInt16LE();
  const inputSamplerate = reader.bytes(4).readUInt32LE();
  const outputGain = reader.bytes(2).readInt16LE();
  return { channels, preSkip, inputSamplerate, outputGain, ...readMapping(reader, channels) };
}

/** Writes an identification header (RFC 7845 section 5.1). @public */
export function buildOpusHead(config: OpusConfig): Buffer {
  const head = Buffer.alloc(MAGIC.length + 11);
  MAGIC.copy(head);
  head[8] = 1;
  head[9] = config.channels;
  head.writeUInt16LE(config.preSkip, 10);
  head.writeUInt32LE(config.inputSamplerate, 12);
  head.writeInt16LE(config.outputGain, 16);
  head[18] = config.mappingFamily;
  return Buffer.concat([head, ...mappingBytes(config)]);
}

/**
 * Reads a dOps payload ("Encapsulation of Opus in ISO Base Media File Format" 4.3.2).
 * @public
 * @throws BitstreamError
 */
export function parseOpusConfig(record: Buffer): OpusConfig {
  const reader = new ByteReader(record);
  if (reader.u8() !== 0) throw new BitstreamError('an Opus configuration record of an unknown version');
  const channels = reader.u8();
  const preSkip = reader.u16();
  const inputSamplerate = reader.u32();
  const outputGain = reader.bytes(2).readInt16BE();
  return { channels, preSkip, inputSamplerate, outputGain, ...readMapping(reader, channels) };
}

/** Writes a dOps payload. */
export function buildOpusConfig(config: OpusConfig): Buffer {
  const record = Buffer.alloc(11);
  record[1] = config.channels;
  record.writeUInt16BE(config.preSkip, 2);
  record.writeUInt32BE(config.inputSamplerate, 4);
  record.writeInt16BE(config.outputGain, 8);
  record[10] = config.mappingFamily;
  return Buffer.concat([record, ...mappingBytes(config)]);
}

/**
 * Duration of a packet in samples at 48 kHz, from its first bytes (RFC 6716 section 3.1).
 * @throws BitstreamError for an empty packet and one of no or too many frames
 */
export function packetSamples(packet: Buffer): number {
  const toc = packet[0];
  if (toc === undefined) throw new BitstreamError('an Opus packet is empty');
  const samples = (FRAME_SAMPLES[toc >> 3] as number) * frameCount(packet, toc & 3);
  if (samples === 0 || samples > MAX_PACKET_SAMPLES) throw new BitstreamError('an Opus packet has a wrong duration');
  return samples;
}

function frameCount(packet: Buffer, code: number): number {
  if (code === 0) return 1;
  if (code !== 3) return 2;
  const count = packet[1];
  if (count === undefined) throw new BitstreamError('an Opus packet ends before its frame count');
  return count & 0x3f;
}

function readMapping(reader: ByteReader, channels: number): Pick<OpusConfig, 'mappingFamily' | 'mapping'> {
  const mappingFamily = reader.u8();
  if (channels === 0) throw new BitstreamError('Opus without channels');
  if (mappingFamily === 0) {
    if (channels > 2) throw new BitstreamError(`${channels} channels need an Opus channel mapping`);
    return { mappingFamily, mapping: undefined };
  }
  const streams = reader.u8();
  const coupled = reader.u8();
  if (streams === 0 || coupled > streams || streams + coupled > 255) {
    throw new BitstreamError('wrong counts of Opus streams');
  }
  const mapping = reader.bytes(channels);
  if (mapping.some((channel) => channel !== SILENCE && channel >= streams + coupled)) {
    throw new BitstreamError('the Opus channel mapping names a channel that does not exist');
  }
  return { mappingFamily, mapping: { streams, coupled, channels: mapping } };
}

function mappingBytes({ mapping }: OpusConfig): Buffer[] {
  return mapping === undefined ? [] : [Buffer.of(mapping.streams, mapping.coupled), mapping.channels];
}
