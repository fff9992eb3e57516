/** Parts, but for the last of a segment, must last this share of PART-TARGET (RFC 8216bis 4.4.4.9). */
export const MIN_PART_SHARE = 0.85;
/** Share of a frame by which parts may exceed the wanted duration to hold whole frames. */
const ROUND_UP = 0.1;

/** Number of frames in a part; both in seconds. */
export function wholeFrames(target: number, frame: number): number {
  return Math.max(1, Math.floor(target / frame + ROUND_UP));
}

/** Duration of parts, in seconds: the wanted one, unless whole frames exceed it or fall too short of it. */
export function fittingTarget(wanted: number, frame: number): number {
  const fitting = wholeFrames(wanted, frame) * frame;
  return fitting > wanted || fitting < MIN_PART_SHARE * wanted ? fitting : wanted;
}
