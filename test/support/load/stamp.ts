/**
 * A clock and a counter in every frame: an H.264 SEI of user_data_unregistered (ISO/IEC 14496-10, D.1.6).
 * The payload is text behind the UUID, so it needs no emulation prevention and is found by a search for bytes.
 */
const UUID = Buffer.from('kiln-load-stamp\u007f', 'latin1');
const CLOCK_DIGITS = 16;
const NUMBER_DIGITS = 8;
const PAYLOAD = UUID.length + CLOCK_DIGITS + NUMBER_DIGITS;
const SEI = 6;
const USER_DATA_UNREGISTERED = 5;
const STOP_BIT = 0x80;

export interface Stamp {
  /** Milliseconds of the machine's monotonic clock, the same in all its processes. */
  readonly time: number;
  readonly frame: number;
}

/** Milliseconds of the clock that stamps tell. */
export function monotonic(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** Bytes of `stampUnit`. */
export const STAMP_BYTES = 4 + 3 + PAYLOAD + 1;

/** Writes a NAL unit, its four bytes of length included, that says now. */
export function writeStamp(into: Buffer, at: number, frame: number): void {
  into.writeUInt32BE(STAMP_BYTES - 4, at);
  into[at + 4] = SEI;
  into[at + 5] = USER_DATA_UNREGISTERED;
  into[at + 6] = PAYLOAD;
  UUID.copy(into, at + 7);
  const clock = process.hrtime.bigint().toString(16).padStart(CLOCK_DIGITS, '0');
  const number = frame.toString(16).padStart(NUMBER_DIGITS, '0');
  into.write(clock + number, at + 7 + UUID.length, 'latin1');
  into[at + STAMP_BYTES - 1] = STOP_BIT;
}

/** The first stamp in some bytes, from a place on. */
export function findStamp(bytes: Buffer, from = 0): (Stamp & { readonly end: number }) | undefined {
  return read(bytes, bytes.indexOf(UUID, from));
}

/** The last stamp in some bytes. */
export function lastStamp(bytes: Buffer): Stamp | undefined {
  return read(bytes, bytes.lastIndexOf(UUID));
}

/** Numbers of all stamped frames in some bytes. */
export function* stampedFrames(bytes: Buffer): IterableIterator<number> {
  for (let stamp = findStamp(bytes); stamp !== undefined; stamp = findStamp(bytes, stamp.end)) yield stamp.frame;
}

function read(bytes: Buffer, found: number) {
  const at = found + UUID.length;
  const end = at + CLOCK_DIGITS + NUMBER_DIGITS;
  if (found < 0 || end > bytes.length) return undefined;
  return {
    time: Number(BigInt(`0x${bytes.toString('latin1', at, at + CLOCK_DIGITS)}`) / 1000n) / 1000,
    frame: Number.parseInt(bytes.toString('latin1', at + CLOCK_DIGITS, end), 16),
    end,
  };
}
