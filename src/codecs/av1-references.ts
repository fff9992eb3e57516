import { BitstreamError } from './bits.ts';

export const REFERENCE_SLOTS = 8;
export const REFERENCES_PER_FRAME = 7;

/** Positions of references in a frame's list of them (AV1 6.10.24), from LAST_FRAME on. */
const [LAST, LAST2, LAST3, GOLDEN, BACKWARD, ALTERNATE2, ALTERNATE] = [0, 1, 2, 3, 4, 5, 6] as const;

/** Distance between two order hints (AV1 5.9.3). @param bits of an order hint; 0: there are none */
export function relativeDistance(one: number, other: number, bits: number): number {
  if (bits === 0) return 0;
  const sign = 1 << (bits - 1);
  const difference = one - other;
  return (difference & (sign - 1)) - (difference & sign);
}

/**
 * Chooses the references of a frame that names but two of them (AV1 7.8).
 * @param hints order hints of the slots
 * @returns slots, for LAST_FRAME to ALTREF_FRAME
 */
export function chooseReferences(
  hints: readonly number[],
  orderHint: number,
  bits: number,
  last: number,
  golden: number,
): number[] {
  const distances = hints.map((hint) => relativeDistance(hint, orderHint, bits));
  const found: (number | undefined)[] = Array.from({ length: REFERENCES_PER_FRAME });
  const used = new Set([last, golden]);
  found[LAST] = last;
  found[GOLDEN] = golden;
  /** Slot that is before all others; the earliest or the latest of equal ones. */
  const find = (isCandidate: (distance: number) => boolean, isBetter: (one: number, other: number) => boolean) => {
    let slot: number | undefined;
    distances.forEach((distance, index) => {
      if (used.has(index) || !isCandidate(distance)) return;
      if (slot === undefined || isBetter(distance, distances[slot] as number)) slot = index;
    });
    if (slot !== undefined) used.add(slot);
    return slot;
  };
  const isBackward = (distance: number): boolean => distance >= 0;
  const latest = (one: number, other: number): boolean => one >= other;
  const earliest = (one: number, other: number): boolean => one < other;
  found[ALTERNATE] = find(isBackward, latest);
  found[BACKWARD] = find(isBackward, earliest);
  found[ALTERNATE2] = find(isBackward, earliest);
  for (const place of [LAST2, LAST3, BACKWARD, ALTERNATE2, ALTERNATE])
    found[place] ??= find((distance) => distance < 0, latest);
  used.clear();
  const first = find(() => true, earliest);
  return found.map((slot) => slot ?? first ?? 0);
}

/**
 * Whether a frame says if it skips modes: it has a reference before it, and another one after it or before that (AV1 5.9.22).
 * @param hints order hints of the references of the frame
 */
export function allowsSkipMode(hints: readonly number[], orderHint: number, bits: number): boolean {
  const distances = hints.map((hint) => relativeDistance(hint, orderHint, bits));
  const before = distances.filter((distance) => distance < 0);
  if (before.length === 0) return false;
  if (distances.some((distance) => distance > 0)) return true;
  const nearest = hints[distances.indexOf(Math.max(...before))] as number;
  return hints.some((hint) => relativeDistance(hint, nearest, bits) < 0);
}

/** Properties of a reference that later frame headers depend on. */
export interface Av1Reference {
  readonly isKeyFrame: boolean;
  readonly orderHint: number;
  readonly upscaledWidth: number;
  readonly width: number;
  readonly height: number;
  /** Global motion parameters, six of each reference (AV1 5.9.24). */
  readonly motion: readonly (readonly number[])[];
  /** Changes of the quantizer by segment; undefined where the segment has none. */
  readonly quantizers: readonly (number | undefined)[];
}

/** @throws BitstreamError for a slot that is empty, such as after a start in the middle of a stream */
export function referenceAt(slots: readonly (Av1Reference | undefined)[], slot: number): Av1Reference {
  const found = slots[slot];
  if (found === undefined) throw new BitstreamError('an AV1 frame has a reference that is not there');
  return found;
}
