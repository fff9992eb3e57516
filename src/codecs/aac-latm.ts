import { parseAudioSpecificConfig, readAudioSpecificConfig } from './aac.ts';
import { BitReader, BitstreamError, BitWriter, tolerant } from './bits.ts';

/** The head of an AudioSyncStream's frame, LOAS (ISO/IEC 14496-3 1.7.2): sync word and length. */
const LOAS_HEADER_BYTES = 3;
const LOAS_SYNC = 0x2b7;
const MAX_CONFIG_BITS = 8 * 256;

/** What a StreamMuxConfig says of the frames. */
interface MuxConfig {
  readonly config: Buffer;
  readonly subFrames: number;
}

/** Bytes of the LOAS frame that starts at `at`, its head included; 0 where none does, undefined when there is less than a head. */
export function loasBytes(data: Buffer, at: number): number | undefined {
  if (at + LOAS_HEADER_BYTES > data.length) return undefined;
  const head = data.readUIntBE(at, LOAS_HEADER_BYTES);
  return head >> 13 === LOAS_SYNC ? LOAS_HEADER_BYTES + (head & 0x1fff) : 0;
}

/** AAC in LATM (ISO/IEC 14496-3 1.7.3), one program with one layer, as everybody sends it: to raw frames. */
export class LatmReader {
  #mux: MuxConfig | undefined;

  /** AudioSpecificConfig of the frames that were read last. */
  get config(): Buffer | undefined {
    return this.#mux?.config;
  }

  /** Takes a StreamMuxConfig that comes apart from the frames. @throws BitstreamError */
  configure(muxConfig: Buffer): void {
    const read = tolerant(() => readMuxConfig(new BitReader(muxConfig), muxConfig, this.#mux));
    this.#mux = read ?? readOpenConfig(muxConfig);
  }

  /**
   * The raw frames of one LOAS frame, in memory of their own; none before the configuration came.
   * @throws BitstreamError when it is malformed, or holds what nobody sends
   */
  frames(loas: Buffer): Buffer[] {
    return this.element(loas.subarray(LOAS_HEADER_BYTES), true);
  }

  /**
   * The same of one AudioMuxElement.
   * @param hasConfig it may bring the configuration: muxConfigPresent
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
 * StreamMuxConfig of version 0 whose AudioSpecificConfig has extensions, which version 0 cannot tell the end of. GStreamer
 * sends it so; apart from the frames there is nothing behind it that matters.
 */
function readOpenConfig(data: Buffer): MuxConfig {
  const reader = new BitReader(data);
  if (reader.read(2) !== 1) throw new BitstreamError('LATM of an unknown form');
  const subFrames = reader.read(6) + 1;
  if (reader.read(7) !== 0) throw new BitstreamError('LATM of several programmes or layers');
  const config = readConfig(reader, data, reader.bitsLeft);
  parseAudioSpecificConfig(config);
  return { subFrames, config };
}

/** @param told bits of it; undefined where it ends by itself */
function readConfig(reader: BitReader, data: Buffer, told: number | undefined): Buffer {
  const start = reader.position;
  if (told === undefined) readAudioSpecificConfig(reader);
  else reader.skip(told);
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

/** Bytes that begin at any bit. */
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
