import { PACKET_BYTES } from './stream-types.ts';

/**
 * Readers of a transport packet's header (ISO/IEC 13818-1 2.4.3.2) and adaptation field (2.4.3.4): `data` holds the
 * whole packet, which begins at `at`.
 */

const HEADER_BYTES = 4;
const PCR_BYTES = 6;

export function pidOf(data: Buffer, at: number): number {
  return (((data[at + 1] as number) & 0x1f) << 8) | (data[at + 2] as number);
}

/** Whether the packet is marked as damaged, by the sender or on the way. */
export function hasError(data: Buffer, at: number): boolean {
  return ((data[at + 1] as number) & 0x80) !== 0;
}

/** Whether a section or a PES packet starts in the payload. */
export function startsUnit(data: Buffer, at: number): boolean {
  return ((data[at + 1] as number) & 0x40) !== 0;
}

export function isScrambled(data: Buffer, at: number): boolean {
  return ((data[at + 3] as number) & 0xc0) !== 0;
}

export function hasPayload(data: Buffer, at: number): boolean {
  return ((data[at + 3] as number) & 0x10) !== 0;
}

export function hasAdaptation(data: Buffer, at: number): boolean {
  return ((data[at + 3] as number) & 0x20) !== 0;
}

export function continuityCounter(data: Buffer, at: number): number {
  return (data[at + 3] as number) & 0xf;
}

/** Start of the payload; the end of the packet, or more, when there is none. */
export function payloadStart(data: Buffer, at: number): number {
  const start = at + HEADER_BYTES;
  if (!hasPayload(data, at)) return at + PACKET_BYTES;
  return hasAdaptation(data, at) ? start + 1 + (data[start] as number) : start;
}

/** Whether counters and clock continue from other values. */
export function isDiscontinuity(data: Buffer, at: number): boolean {
  return (adaptationFlags(data, at) & 0x80) !== 0;
}

/** Program clock in ticks of 90 kHz, 33 bits wide; undefined when the packet has none. */
export function pcrOf(data: Buffer, at: number): number | undefined {
  const length = hasAdaptation(data, at) ? (data[at + HEADER_BYTES] as number) : 0;
  if ((adaptationFlags(data, at) & 0x10) === 0 || length < 1 + PCR_BYTES) return undefined;
  return data.readUInt32BE(at + 6) * 2 + (data.readUInt8(at + 10) >> 7);
}

/** Whether the adaptation field has padding, which moves the payload to the packet's end. */
export function isFilled(data: Buffer, at: number): boolean {
  if (!hasAdaptation(data, at)) return false;
  const start = at + HEADER_BYTES;
  const length = data[start] as number;
  if (length === 0) return true;
  const flags = adaptationFlags(data, at);
  const end = start + 1 + length;
  let used = start + 2;
  if ((flags & 0x10) !== 0) used += PCR_BYTES;
  if ((flags & 0x08) !== 0) used += PCR_BYTES;
  if ((flags & 0x04) !== 0) used += 1;
  if ((flags & 0x02) !== 0 && used < end) used += 1 + (data[used] as number);
  if ((flags & 0x01) !== 0 && used < end) used += 1 + (data[used] as number);
  return used < end;
}

function adaptationFlags(data: Buffer, at: number): number {
  return hasAdaptation(data, at) && (data[at + HEADER_BYTES] as number) > 0
    ? (data[at + HEADER_BYTES + 1] as number)
    : 0;
}
