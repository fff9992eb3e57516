import { parseAudioSpecificConfig, readAudioSpecificConfig } from './aac.ts';
import { BitReader, BitstreamError, BitWriter, tolerant } from './bits.ts';

/** Sync word and length of an AudioSyncStream frame, LOAS (ISO/IEC 14496-3 1.7.2). */
const LOAS_HEADER_BYTES = 3;
const LOAS_SYNC = 0x2b7;
const MAX_CONFIG_BITS = 8 * 256;

interface MuxConfig {
  readonly config: Buffer;
  readonly subFrames: number;
}

/** Bytes of the LOAS frame at `at`, header included; 0 when there is none, undefined when less than a header is left. */
export function loasBytes(data: Buffer, at: number): number | undefined {
  if (at + LOAS_HEADER_BYTES > data.length) return undefined;
  const head = data.readUIntBE(at, LOAS_HEADER_BYTES);
  return head >> 13 === LOAS_SYNC ? LOAS_HEADER_BYTES + (head & 0x1fff) : 0;
}

/** Reads raw AAC frames from LATM (ISO/IEC 14496-3 1.7.3) of one program with one layer; no known sender uses more. */
export class LatmReader {
  #mux: MuxConfig | undefined;

  /** AudioSpecificConfig of the latest frames. */
  get config(): Buffer | undefined {
    return this.#mux?.config;
  }

  /** Sets a StreamMuxConfig received apart from the frames. @throws BitstreamError */
  configure(muxConfig: Buffer): void {
    const read = tolerant(() => readMuxConfig(new BitReader(muxConfig), muxConfig, this.#mux));
    this.#mux = read ?? readUnboundedConfig(muxConfig);
  }

  /**
   * Reads the raw frames of one LOAS frame, copied; none before the configuration is known.
   * @throws BitstreamError when malformed, or of an unsupported form
   */
  frames(loas: Buffer): Buffer[] {
    return this.element(loas.subarray(LOAS_HEADER_BYTES), true);
  }

  /**
   * Reads the raw frames of one AudioMuxElement, as `frames` does.
   * @param hasConfig muxConfigPresent: the element may carry the configuration
   * @throws BitstreamError
   */
  element(element: Buffer, hasConfig: boolean): Buffer[] {
    const reader = new BitReader(element);
    if (hasConfig && !reader.flag()) this.#mux = readMuxConfig(reader, element, this.#mux);
    if (this.#mux === undefined) return [];
    const frames: Buffer[] = [];
    for (let frame = 0; frame < this.#mux.subFrames; frame++) {
      const bytes = readLength(reader);
      frames.push(bytesAt(element, reader, bytes));
    }
    return frames;
  }
}

/** StreamMuxConfig (table 1.42). */
function readMuxConfig(reader: BitReader, data: Buffer, known: MuxConfig | undefined): MuxConfig {
  const version = reader.read(1);
  if (version === 1 && reader.flag()) throw new BitstreamError('LATM of an unknown version');
  if (version === 1) readValue(reader);
  if (!reader.flag()) throw new BitstreamError('LATM whose streams differ in their framing');
  const subFrames = reader.read(6) + 1;
  if (reader.read(4) !== 0 || reader.read(3) !== 0) throw new BitstreamError('LATM of several programs or layers');
  const config = readConfig(reader, data, version === 1 ? readValue(reader) : undefined);
  if (reader.read(3) !== 0) throw new BitstreamError('LATM with frames of fixed length');
  reader.skip(8);
  if (reader.flag()) readOtherLength(reader, version);
  if (reader.flag()) reader.skip(8);
  return { subFrames, config: known?.config.equals(config) ? known.config : config };
}

/**
 * Reads a StreamMuxConfig of version 0 whose AudioSpecificConfig has extensions, as GStreamer sends it. Version 0 has no
 * field for the end of those; apart from the frames, nothing of use follows them.
 */
function readUnboundedConfig(data: Buffer): MuxConfig {
  const reader = new BitReader(data);
  if (reader.read(2) !== 1) throw new BitstreamError('LATM of an unknown form');
  const subFrames = reader.read(6) + 1;
  if (reader.read(7) !== 0) throw new BitstreamError('LATM of several programs or layers');
  const config = readConfig(reader, data, reader.bitsLeft);
  parseAudioSpecificConfig(config);
  return { subFrames, config };
}

/** @param bits length of the AudioSpecificConfig; undefined to find its end by parsing it */
function readConfig(reader: BitReader, data: Buffer, configBits: number | undefined): Buffer {
  const start = reader.position;
  if (configBits === undefined) readAudioSpecificConfig(reader);
  else reader.skip(configBits);
  const bits = reader.position - start;
  if (bits > MAX_CONFIG_BITS) throw new BitstreamError('LATM with a configuration of too many bits');
  const again = new BitReader(data);
  again.skip(start);
  const writer = new BitWriter();
  for (let left = bits; left > 0; left -= 32) writer.write(again.read(Math.min(left, 32)), Math.min(left, 32));
  return writer.finish();
}

/** LatmGetValue() (table 1.43). */
function readValue(reader: BitReader): number {
  return reader.read(8 * (reader.read(2) + 1));
}

function readOtherLength(reader: BitReader, version: number): void {
  if (version === 1) {
    readValue(reader);
    return;
  }
  let more: boolean;
  do {
    more = reader.flag();
    reader.skip(8);
  } while (more);
}

/** PayloadLengthInfo() (table 1.44). */
function readLength(reader: BitReader): number {
  let bytes = 0;
  let part: number;
  do {
    part = reader.read(8);
    bytes += part;
  } while (part === 255);
  return bytes;
}

/** Copies bytes that need not start at a byte boundary. */
function bytesAt(data: Buffer, reader: BitReader, bytes: number): Buffer {
  const start = reader.position;
  reader.skip(8 * bytes);
  const first = start >> 3;
  const shift = start & 7;
  if (shift === 0) return Buffer.from(data.subarray(first, first + bytes));
  const moved = Buffer.allocUnsafe(bytes);
  for (let i = 0; i < bytes; i++) {
    moved[i] = ((data[first + i] as number) << shift) | ((data[first + i + 1] as number) >> (8 - shift));
  }
  return moved;
}
