/** Parts, but for the last of a segment, must last this share of PART-TARGET (RFC 8216bis 4.4.4.9). */
export const MIN_PART_SHARE = 0.85;
/** Share of a frame that parts may last longer than asked, where that makes whole frames fit. */
const ROUND_UP = 0.1;

/** The nearest to a wanted duration of parts that whole frames fill; all in seconds. */
export function fittingTarget(wanted: number, frame: number): number {
  const fitting = Math.max(1, Math.floor(wanted / frame + ROUND_UP)) * frame;
  return fitting > wanted || fitting < MIN_PART_SHARE * wanted ? fitting : wanted;
}
