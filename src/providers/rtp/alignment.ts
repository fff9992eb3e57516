import type { RtpLane } from './lane.ts';

/** Lanes of which nothing has come are waited for so long, from the first packet of the others on. */
export const SILENT_WAIT_MS = 1000;

/**
 * Whether the tracks of a source have told how they are to each other, or need not.
 * @param waitsForSilent those of which nothing has come may still come, and tell
 */
export function areAligned(lanes: readonly RtpLane[], waitsForSilent: boolean): boolean {
  const expected = waitsForSilent ? lanes : lanes.filter(({ packets }) => packets > 0);
  return expected.length < 2 || expected.every(({ isReported }) => isReported);
}
