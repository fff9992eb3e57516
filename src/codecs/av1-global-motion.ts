import { readNonSymmetric } from './av1-tile-info.ts';
import { REFERENCES_PER_FRAME } from './av1-references.ts';
import type { BitReader } from './bits.ts';

const IDENTITY: readonly number[] = [0, 0, 1 << 16, 0, 0, 1 << 16];
/** Parameters of a frame without a frame before it. */
export const NO_MOTION: readonly (readonly number[])[] = Array.from({ length: REFERENCES_PER_FRAME }, () => IDENTITY);

/** Number of bits of a parameter, and of its fraction (AV1 7.20). */
const ALPHA = { bits: 12, precision: 15 };
const TRANSLATION = { bits: 12, precision: 6 };
const TRANSLATION_ONLY = { bits: 9, precision: 3 };

/**
 * Reads `global_motion_params()` (AV1 5.9.24) of a frame that is not intra.
 * @param before parameters that these are differences to
 */
export function readGlobalMotion(
  reader: BitReader,
  before: readonly (readonly number[])[],
  highPrecision: boolean,
): number[][] {
  return before.map((previous) => {
    const found = [...IDENTITY];
    if (!reader.flag()) return found;
    const rotates = reader.flag();
    const onlyMoves = !rotates && reader.flag();
    const read = (index: number): void =>
      void (found[index] = readParameter(reader, previous, index, onlyMoves, highPrecision));
    if (!onlyMoves) {
      read(2);
      read(3);
      if (rotates) {
        found[4] = -(found[3] as number);
        found[5] = found[2] as number;
      } else {
        read(4);
        read(5);
      }
    }
    read(0);
    read(1);
    return found;
  });
}

function readParameter(
  reader: BitReader,
  previous: readonly number[],
  index: number,
  onlyMoves: boolean,
  highPrecision: boolean,
): number {
  const less = onlyMoves && index < 2 && !highPrecision ? 1 : 0;
  const { bits, precision } = index >= 2 ? ALPHA : onlyMoves ? TRANSLATION_ONLY : TRANSLATION;
  const shift = 16 - (precision - less);
  const isDiagonal = index % 3 === 2;
  const limit = 1 << (bits - less);
  const reference = ((previous[index] as number) >> shift) - (isDiagonal ? 1 << (precision - less) : 0);
  const value = readNear(reader, 2 * limit + 1, reference + limit) - limit;
  return value * (1 << shift) + (isDiagonal ? 1 << 16 : 0);
}

/** Reads a number below a limit that is probably near a reference (`decode_unsigned_subexp_with_ref`, AV1 5.9.27). */
function readNear(reader: BitReader, limit: number, reference: number): number {
  const value = readSubexponential(reader, limit);
  return reference * 2 <= limit ? recentred(reference, value) : limit - 1 - recentred(limit - 1 - reference, value);
}

function readSubexponential(reader: BitReader, limit: number): number {
  const k = 3;
  for (let step = 0, least = 0; ; step++) {
    const bits = step === 0 ? k : k + step - 1;
    if (limit <= least + 3 * 2 ** bits) return readNonSymmetric(reader, limit - least) + least;
    if (!reader.flag()) return reader.read(bits) + least;
    least += 2 ** bits;
  }
}

function recentred(reference: number, value: number): number {
  if (value > 2 * reference) return value;
  return value % 2 === 1 ? reference - (value + 1) / 2 : reference + value / 2;
}
