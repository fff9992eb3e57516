import { BitstreamError, type BitReader } from './bits.ts';

/** A picture of a short-term reference picture set. */
export interface ShortTermRef {
  /** Difference of picture order counts; not 0. */
  readonly delta: number;
  /** Whether the current picture may refer to it. */
  readonly used: boolean;
}

/** Negative differences from the nearest on, then positive ones. */
export type RefPicSet = readonly ShortTermRef[];

export const MAX_PICTURES = 16;

/**
 * Reads st_ref_pic_set() (H.265 7.3.7 and 7.4.8).
 * @param before sets of the SPS before this one; all of them for the set of a slice
 * @param isInSlice whether the set is in a slice header
 * @throws BitstreamError
 */
export function readRefPicSet(reader: BitReader, before: readonly RefPicSet[], isInSlice = false): RefPicSet {
  if (before.length > 0 && reader.flag()) return readPredicted(reader, before, isInSlice);
  const negative = reader.ueMax(MAX_PICTURES, 'num_negative_pics');
  const positive = reader.ueMax(MAX_PICTURES - negative, 'num_positive_pics');
  return [...readSide(reader, negative, -1), ...readSide(reader, positive, 1)];
}

function readSide(reader: BitReader, count: number, sign: 1 | -1): ShortTermRef[] {
  let delta = 0;
  return Array.from({ length: count }, () => {
    delta += sign * (reader.ue() + 1);
    return { delta, used: reader.flag() };
  });
}

/** Inter prediction of a set (equations 7-61 and 7-62). */
function readPredicted(reader: BitReader, before: readonly RefPicSet[], isInSlice: boolean): RefPicSet {
  const back = isInSlice ? reader.ueMax(before.length - 1, 'delta_idx_minus1') + 1 : 1;
  const from = before[before.length - back] as RefPicSet;
  const sign = reader.flag() ? -1 : 1;
  const shift = sign * (reader.ue() + 1);
  const refs: ShortTermRef[] = [];
  for (const delta of [...from.map((ref) => ref.delta), 0]) {
    const used = reader.flag();
    const isKept = used || reader.flag();
    if (isKept && delta + shift !== 0) refs.push({ delta: delta + shift, used });
  }
  if (refs.length > MAX_PICTURES) throw new BitstreamError('an H.265 reference picture set is too large');
  const rank = ({ delta }: ShortTermRef): number => (delta < 0 ? -delta : 2 ** 32 + delta);
  return refs.sort((one, other) => rank(one) - rank(other));
}
