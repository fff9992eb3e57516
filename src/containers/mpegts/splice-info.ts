import { BitReader, tolerant } from '../../codecs/bits.ts';

/** Break in a splice_info_section. Times in seconds. */
export interface SpliceInfo {
  /** Begin of a break, its end, or anything else. */
  readonly kind: 'out' | 'in' | 'command';
  /** Id of a break, 32 bits, the same at its begin and end; undefined if absent. */
  readonly eventId: number | undefined;
  /** Duration of a break that begins. */
  readonly duration: number | undefined;
  /** Whether the break ends after that time without a further section. */
  readonly autoReturn: boolean;
}

const SPLICE_NULL = 0;
const SPLICE_INSERT = 5;
const TIME_SIGNAL = 6;
const BANDWIDTH_RESERVATION = 7;
const SEGMENTATION_DESCRIPTOR = 2;
const CUEI = 0x43554549;
const HEAD_BYTES = 14;
const CLOCK_HZ = 90_000;
/** Segmentation types that begin a break or an advertisement; the type of the end is the next number (SCTE 35 10.3.3.1). */
const STARTS: ReadonlySet<number> = new Set([0x22, 0x30, 0x32, 0x34, 0x36, 0x38, 0x3a, 0x44, 0x46]);

/**
 * Reads a splice_info_section (SCTE 35 9.6, 9.7, 10.3.3).
 * @returns undefined if it has no event (a null command, bandwidth reservation), is encrypted or malformed
 */
export function spliceInfo(section: Buffer): SpliceInfo | undefined {
  return tolerant(() => {
    const reader = new BitReader(section);
    reader.skip(8 + 16 + 8);
    if (reader.flag()) return undefined;
    reader.skip(6 + 33 + 8 + 12);
    const length = reader.read(12);
    switch (reader.read(8)) {
      case SPLICE_NULL:
      case BANDWIDTH_RESERVATION:
        return undefined;
      case SPLICE_INSERT:
        return readInsert(reader);
      case TIME_SIGNAL:
        // older senders leave the length out; that of a time signal follows from its first bit
        return readDescriptors(section, HEAD_BYTES + (length === 0xfff ? timeBytes(section) : length));
      default:
        return spliceOf('command');
    }
  });
}

function spliceOf(kind: SpliceInfo['kind'], eventId?: number, duration?: number, autoReturn = false): SpliceInfo {
  return { kind, eventId, duration, autoReturn };
}

function timeBytes(section: Buffer): number {
  return ((section[HEAD_BYTES] ?? 0) & 0x80) === 0 ? 1 : 5;
}

function readInsert(reader: BitReader): SpliceInfo {
  const eventId = reader.read(32);
  if (reader.flag()) return spliceOf('command', eventId);
  reader.skip(7);
  const isOut = reader.flag();
  const ofProgram = reader.flag();
  const hasDuration = reader.flag();
  const immediate = reader.flag();
  reader.skip(4);
  if (ofProgram) {
    if (!immediate) skipTime(reader);
  } else {
    for (let components = reader.read(8); components > 0; components--) {
      reader.skip(8);
      if (!immediate) skipTime(reader);
    }
  }
  if (!isOut) return spliceOf('in', eventId);
  if (!hasDuration) return spliceOf('out', eventId);
  const autoReturn = reader.flag();
  reader.skip(6);
  return spliceOf('out', eventId, (reader.read(1) * 2 ** 32 + reader.read(32)) / CLOCK_HZ, autoReturn);
}

function skipTime(reader: BitReader): void {
  reader.skip(reader.flag() ? 6 + 33 : 7);
}

/** Reads the first descriptor that begins or ends a break, else the first with an event. */
function readDescriptors(section: Buffer, at: number): SpliceInfo {
  let found = spliceOf('command');
  if (at + 2 > section.length) return found;
  const end = Math.min(section.length, at + 2 + section.readUInt16BE(at));
  for (let next = at + 2; next + 6 <= end;) {
    const length = section.readUInt8(next + 1);
    const body = section.subarray(next + 2, Math.min(end, next + 2 + length));
    if (section[next] === SEGMENTATION_DESCRIPTOR) {
      const info = tolerant(() => readSegmentation(new BitReader(body)));
      if (info !== undefined && info.kind !== 'command') return info;
      if (found.eventId === undefined) found = info ?? found;
    }
    next += 2 + length;
  }
  return found;
}

function readSegmentation(reader: BitReader): SpliceInfo | undefined {
  if (reader.read(32) !== CUEI) return undefined;
  const eventId = reader.read(32);
  if (reader.flag()) return spliceOf('command', eventId);
  reader.skip(7);
  const ofProgram = reader.flag();
  const hasDuration = reader.flag();
  reader.skip(6);
  if (!ofProgram) for (let components = reader.read(8); components > 0; components--) reader.skip(48);
  const duration = hasDuration ? (reader.read(8) * 2 ** 32 + reader.read(32)) / CLOCK_HZ : undefined;
  reader.skip(8);
  reader.skip(8 * reader.read(8));
  const type = reader.read(8);
  if (STARTS.has(type)) return spliceOf('out', eventId, duration);
  return spliceOf(STARTS.has(type - 1) ? 'in' : 'command', eventId);
}
