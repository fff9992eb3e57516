import type { RtpLane } from './lane.ts';

/** Wait for silent lanes after the first packet of another. */
export const SILENT_WAIT_MS = 1000;

/**
 * Whether sender reports align the tracks of a source, or none are needed.
 * @param waitsForSilent whether tracks without packets may still begin
 */
export function areAligned(lanes: readonly RtpLane[], waitsForSilent: boolean): boolean {
  const expected = waitsForSilent ? lanes : lanes.filter(({ packets }) => packets > 0);
  return expected.length < 2 || expected.every(({ isReported }) => isReported);
}
