/** Parts, but for the last of a segment, must last this share of PART-TARGET (RFC 8216bis 4.4.4.9). */
export const MIN_PART_SHARE = 0.85;
/** Share of a frame that parts may last longer than asked, where that makes whole frames fit. */
const ROUND_UP = 0.1;

/** How many frames a part of some duration is made of. */
export function wholeFrames(target: number, frame: number): number {
  return Math.max(1, Math.floor(target / frame + ROUND_UP));
}

/** The nearest to a wanted duration of parts that whole frames fill; all in seconds. */
export function fittingTarget(wanted: number, frame: number): number {
  const fitting = wholeFrames(wanted, frame) * frame;
  return fitting > wanted || fitting < MIN_PART_SHARE * wanted ? fitting : wanted;
}
