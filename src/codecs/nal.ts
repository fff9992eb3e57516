import { BitstreamError } from './bits.ts';

const START_CODE = Buffer.of(0, 0, 1);
const EMULATION_PREVENTION = Buffer.of(0, 0, 3);

/** A picture has a few, or some thousand when each fits into a packet; millions of empty ones would take seconds to read. */
export const MAX_NALS = 8192;
const TOO_MANY = `more than ${MAX_NALS} NAL units in a frame`;

export type LengthSize = 1 | 2 | 3 | 4;

/** Treatment of a NAL unit by `canonicalizeNals`. */
export type NalRole = 'slice' | 'media' | 'parameterSet' | 'disposable';

export interface CanonicalUnit {
  /** 4-byte length-prefixed NAL units without parameter sets; empty when there was nothing else. */
  readonly data: Buffer;
  /** Parameter sets of the unit, in order. */
  readonly parameterSets: Buffer[];
  /** Set when a NAL unit of the source held start codes and was split at them. */
  readonly hadStartCodes?: true;
}

/** Splits length-prefixed data into NAL units, as slices, without empty ones. @throws BitstreamError when a length is too large */
export function* nalUnits(data: Buffer, lengthSize: LengthSize = 4): IterableIterator<Buffer> {
  for (let at = 0; at < data.length;) {
    const end = nalEnd(data, at, lengthSize);
    if (end > at + lengthSize) yield data.subarray(at + lengthSize, end);
    at = end;
  }
}

/**
 * Splits an Annex B byte stream into NAL units, as slices without surrounding zero bytes; drops bytes before the first start code.
 * @throws BitstreamError when there are more than `most`
 */
export function splitAnnexB(data: Buffer, most = MAX_NALS): Buffer[] {
  const nals: Buffer[] = [];
  split(data, data.indexOf(START_CODE), most, nals);
  return nals;
}

/**
 * Adds the NAL units after start codes to `nals`, except empty ones.
 * @param code offset of the first start code; negative when there is none
 * @returns the number of start codes: empty units cost as much as others, so they count
 * @throws BitstreamError when there are more than `most`
 */
function split(data: Buffer, code: number, most: number, nals: Buffer[]): number {
  let codes = 0;
  while (code >= 0) {
    if (++codes > most) throw new BitstreamError(TOO_MANY);
    const start = code + START_CODE.length;
    code = data.indexOf(START_CODE, start);
    const end = trimmedEnd(data, start, code < 0 ? data.length : code);
    if (end > start) nals.push(data.subarray(start, end));
  }
  return codes;
}

/** End of the range without its trailing zero bytes. */
function trimmedEnd(data: Buffer, start: number, end: number): number {
  let trimmed = end;
  while (trimmed > start && data[trimmed - 1] === 0) trimmed--;
  return trimmed;
}

/** Whether data starts with a start code (Annex B). */
export function startsWithCode(data: Buffer): boolean {
  return data.length >= 4 && data[0] === 0 && data[1] === 0 && (data[2] === 1 || (data[2] === 0 && data[3] === 1));
}

/**
 * Splits length-prefixed data into NAL units without empty ones, and splits those that hold a byte stream at its start codes.
 * @throws BitstreamError when a length is too large, or there are more than `MAX_NALS`
 */
export function bareNals(data: Buffer, lengthSize: LengthSize = 4): Buffer[] {
  const bare: Buffer[] = [];
  let count = 0;
  for (let at = 0, end = 0; at < data.length; at = end) {
    end = nalEnd(data, at, lengthSize);
    count += addBareNals(data.subarray(at + lengthSize, end), MAX_NALS - count, bare);
  }
  return bare;
}

/** @returns the number of units, empty ones included */
function addBareNals(nal: Buffer, most: number, bare: Buffer[]): number {
  const code = nal.indexOf(START_CODE);
  const end = code < 0 ? nal.length : trimmedEnd(nal, 0, code);
  const isAlone = code < 0 || end > 0;
  if (isAlone && most < 1) throw new BitstreamError(TOO_MANY);
  if (end > 0) bare.push(nal.subarray(0, end));
  return isAlone ? 1 + split(nal, code, most - 1, bare) : split(nal, code, most, bare);
}

/** Whether data can be NAL units with 4-byte lengths. */
export function areLengths(data: Buffer): boolean {
  let at = 0;
  while (at + 4 <= data.length) at += 4 + data.readUInt32BE(at);
  return at === data.length;
}

/** Joins NAL units, each after its 4-byte length. */
export function joinNals(nals: readonly Uint8Array[]): Buffer {
  let size = 0;
  for (const nal of nals) size += 4 + nal.length;
  const joined = Buffer.allocUnsafe(size);
  let at = 0;
  for (const nal of nals) {
    at = joined.writeUInt32BE(nal.length, at);
    joined.set(nal, at);
    at += nal.length;
  }
  return joined;
}

/**
 * Converts an Annex B byte stream to length-prefixed data: in place when every start code has 4 bytes, so the caller must own
 * the memory; otherwise in a copy.
 */
export function annexBToLengths(data: Buffer): Buffer {
  const nals = splitAnnexB(data);
  let end = 0;
  for (const nal of nals) {
    const start = nal.byteOffset - data.byteOffset;
    if (start !== end + 4) return joinNals(nals);
    end = start + nal.length;
  }
  if (end !== data.length) return joinNals(nals);
  let at = 0;
  for (const nal of nals) at = data.writeUInt32BE(nal.length, at) + nal.length;
  return data;
}

/** Removes emulation prevention; returns the same buffer when there is none. */
export function unescapeNal(nal: Buffer): Buffer {
  let at = nal.indexOf(EMULATION_PREVENTION);
  if (at < 0) return nal;
  const clean = Buffer.allocUnsafe(nal.length);
  let from = 0;
  let size = 0;
  while (at >= 0) {
    size += nal.copy(clean, size, from, at + 2);
    from = at + 3;
    at = nal.indexOf(EMULATION_PREVENTION, from);
  }
  size += nal.copy(clean, size, from);
  return clean.subarray(0, size);
}

/** Bytes at the begin of a NAL unit that hold its first `bytes` without emulation prevention. */
export function escapedLength(nal: Buffer, bytes: number): number {
  let at = nal.indexOf(EMULATION_PREVENTION);
  let length = bytes;
  while (at >= 0 && at + 2 < length) {
    length++;
    at = nal.indexOf(EMULATION_PREVENTION, at + 3);
  }
  return Math.min(length, nal.length);
}

/** Adds emulation prevention (H.264 7.4.1): 0 to 3 do not follow two zeros. */
export function escapeNal(payload: Buffer): Buffer {
  const out: number[] = [];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      out.push(3);
      zeros = 0;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(out);
}

/**
 * Converts a length-prefixed access unit to the canonical form. Returns a slice when lengths have 4 bytes and everything to
 * remove is at the ends, which is nearly always so; otherwise copies once. Disposable units (access unit delimiters, filler)
 * alone cause no copy. Some senders put a whole byte stream into one NAL unit: as none may hold a start code (H.264 7.4.1,
 * H.265 7.4.2), it is split at each.
 * @param trusts do not search slices for start codes
 * @throws BitstreamError when a length is too large, or there are more than `MAX_NALS` units
 */
export function canonicalizeNals(
  data: Buffer,
  lengthSize: LengthSize,
  role: (nal: Buffer) => NalRole,
  trusts = false,
): CanonicalUnit {
  const parameterSets: Buffer[] = [];
  const media: Buffer[] = [];
  let first = -1;
  let last = 0;
  let holes = false;
  let pending = false;
  let count = 0;
  for (let at = 0; at < data.length;) {
    if (++count > MAX_NALS) throw new BitstreamError(TOO_MANY);
    const end = nalEnd(data, at, lengthSize);
    const nal = data.subarray(at + lengthSize, end);
    const kind = nal.length === 0 ? 'empty' : role(nal);
    if (!(kind === 'slice' && trusts) && nal.includes(START_CODE)) {
      const plain = joinNals(bareNals(data, lengthSize));
      return { ...canonicalizeNals(plain, 4, role, true), hadStartCodes: true };
    }
    if (kind === 'media' || kind === 'slice') {
      if (first < 0) first = at;
      else holes ||= pending;
      pending = false;
      last = end;
      media.push(nal);
    } else {
      if (kind !== 'disposable') pending = true;
      if (kind === 'parameterSet') parameterSets.push(nal);
    }
    at = end;
  }
  if (first < 0) return { data: data.subarray(0, 0), parameterSets };
  if (lengthSize !== 4 || holes) return { data: joinNals(media), parameterSets };
  return { data: first === 0 && last === data.length ? data : data.subarray(first, last), parameterSets };
}

function nalEnd(data: Buffer, at: number, lengthSize: LengthSize): number {
  const start = at + lengthSize;
  const end = start <= data.length ? start + data.readUIntBE(at, lengthSize) : Infinity;
  if (end > data.length) throw new BitstreamError('a NAL unit is longer than its access unit');
  return end;
}
