import { BitReader, tolerant } from '../../codecs/bits.ts';
import { sectionCrc } from './crc.ts';
import { TABLE_ID } from './stream-types.ts';
import { wrapped } from './times.ts';

const SPLICE_INSERT = 5;
const TIME_SIGNAL = 6;
/** Byte of pts_adjustment, which begins in its last bit. */
const ADJUSTMENT_AT = 4;
const CRC_BYTES = 4;
const COMMAND_AT = 14;
/** Size of a splice_insert() without a time, and of its break_duration(). */
const INSERT_BYTES = 10;
const BREAK_BYTES = 5;

/**
 * Time at which a splice takes effect, on CLOCK (SCTE 35 9.6, 9.7.3, 9.7.4).
 * @param section splice_info_section
 * @returns undefined if it takes effect at once, has no time, is encrypted or malformed
 */
export function spliceTime(section: Buffer): number | undefined {
  return tolerant(() => readTime(new BitReader(section)));
}

/**
 * Changes a splice to take effect at `pts` on CLOCK, by its pts_adjustment (9.6), which must follow changes of times
 * in transit. A splice without a time stays as it is.
 */
export function withSpliceTime(section: Buffer, pts: number): Buffer {
  const time = spliceTime(section);
  if (time === undefined) return section;
  const adjusted = Buffer.from(section);
  const flags = adjusted.readUInt8(ADJUSTMENT_AT);
  const before = (flags & 1) * 2 ** 32 + adjusted.readUInt32BE(ADJUSTMENT_AT + 1);
  const adjustment = wrapped(before + pts - time);
  adjusted[ADJUSTMENT_AT] = (flags & 0xfe) | Math.floor(adjustment / 2 ** 32);
  adjusted.writeUInt32BE(adjustment % 2 ** 32, ADJUSTMENT_AT + 1);
  const end = adjusted.length - CRC_BYTES;
  adjusted.writeUInt32BE(sectionCrc(adjusted.subarray(0, end)), end);
  return adjusted;
}

/** Splice that takes effect when it arrives. */
export interface ImmediateSplice {
  /** splice_event_id, 32 bits. */
  readonly id: number;
  /** Whether the break leaves the network, or returns to it. */
  readonly out: boolean;
  /** Duration of the break, in ticks of 90 kHz and 33 bits. */
  readonly duration?: number;
  /** Whether the break ends by itself after its duration. */
  readonly autoReturn: boolean;
}

/** Builds a splice_info_section with a splice_insert() of the whole program (SCTE 35 9.6, 9.7.3, 9.8.2). */
export function spliceInsert({ id, out, duration, autoReturn }: ImmediateSplice): Buffer {
  const command = Buffer.alloc(INSERT_BYTES + (duration === undefined ? 0 : BREAK_BYTES));
  command.writeUInt32BE(id, 0);
  // not cancelled; program_splice_flag, splice_immediate_flag
  command[4] = 0x7f;
  command[5] = 0x5f | (out ? 0x80 : 0) | (duration === undefined ? 0 : 0x20);
  if (duration !== undefined) {
    command[6] = (autoReturn ? 0x80 : 0) | 0x7e | Math.floor(duration / 2 ** 32);
    command.writeUInt32BE(duration % 2 ** 32, 7);
  }
  const section = Buffer.alloc(COMMAND_AT + command.length + 2 + CRC_BYTES);
  section[0] = TABLE_ID.splice;
  // sap_type 3: not specified
  section.writeUInt16BE(0x3000 | (section.length - 3), 1);
  // no encryption, no adjustment, all tiers
  section.writeUIntBE(0xfff000 | command.length, 10, 3);
  section[13] = SPLICE_INSERT;
  command.copy(section, COMMAND_AT);
  const end = section.length - CRC_BYTES;
  section.writeUInt32BE(sectionCrc(section.subarray(0, end)), end);
  return section;
}

/** Whether a section is a splice_info_section. */
export function isSplice(section: Buffer): boolean {
  return section[0] === TABLE_ID.splice;
}

function readTime(reader: BitReader): number | undefined {
  reader.skip(8 + 16 + 8);
  if (reader.flag()) return undefined;
  reader.skip(6);
  const adjustment = readClock(reader);
  reader.skip(8 + 12 + 12);
  const command = reader.read(8);
  if (command === SPLICE_INSERT) {
    reader.skip(32);
    if (reader.flag()) return undefined;
    reader.skip(7 + 1);
    const ofProgram = reader.flag();
    reader.skip(1);
    if (!ofProgram || reader.flag()) return undefined;
    reader.skip(4);
  } else if (command !== TIME_SIGNAL) {
    return undefined;
  }
  if (!reader.flag()) return undefined;
  reader.skip(6);
  return wrapped(readClock(reader) + adjustment);
}

function readClock(reader: BitReader): number {
  return reader.read(1) * 2 ** 32 + reader.read(32);
}
