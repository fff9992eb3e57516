import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';

const deflateOffLoop = promisify(deflateRaw);

/** A piece of a text as DEFLATE blocks (RFC 1951) that refer to nothing outside of it, none of them the final one. */
export interface DeflatedPiece {
  readonly blocks: Buffer;
  /** CRC-32 of the text. */
  readonly crc: number;
  /** Bytes of the text. */
  readonly length: number;
}

/** RFC 1952 section 2.3: no file name, no time, any system. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** The final block: no data in the fixed code (RFC 1951 section 3.2.6). */
const FINAL_BLOCK = Buffer.from([3, 0]);
const CRC_POLYNOMIAL = 0xedb88320;
/** Polynomials have the coefficient of x^0 in the highest bit, as in CRC-32 of RFC 1952. */
const ONE = 0x80000000;
const X_TO_8 = ONE >>> 8;

/** Compresses a piece, in a thread of its own. */
export async function deflatePiece(text: Buffer): Promise<DeflatedPiece> {
  const blocks = await deflateOffLoop(text, { finishFlush: constants.Z_SYNC_FLUSH });
  return { blocks, crc: crc32(text), length: text.length };
}

/** Makes a gzip file (RFC 1952) of pieces in their order, without compressing anything anew. */
export function joinToGzip(pieces: readonly DeflatedPiece[]): Buffer {
  let crc = 0;
  let length = 0;
  for (const piece of pieces) {
    crc = (multiply(crc, powerOfX8(piece.length)) ^ piece.crc) >>> 0;
    length += piece.length;
  }
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc, 0);
  trailer.writeUInt32LE(length % 2 ** 32, 4);
  return Buffer.concat([HEADER, ...pieces.map(({ blocks }) => blocks), FINAL_BLOCK, trailer]);
}

/** x^(8n) modulo the polynomial: the checksum of a text is multiplied by it when n bytes follow. */
function powerOfX8(n: number): number {
  let power = ONE;
  let square = X_TO_8;
  for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

/** Product of two polynomials over GF(2), modulo that of CRC-32. */
function multiply(one: number, other: number): number {
  let product = 0;
  let shifted = other;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((one & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ CRC_POLYNOMIAL : shifted >>> 1;
  }
  return product >>> 0;
}
