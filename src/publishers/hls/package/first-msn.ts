import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { PackageOptions } from './form.ts';

/** Shorter than segments are: what begins anew has higher numbers than what was before. */
const SHORTEST_MS = 250;
/** Since when they are counted: some players read numbers of 31 bits, which last until 2043. */
const SINCE_MS = Date.UTC(2026, 0);

/**
 * Media sequence number that a stream begins with: where it goes on, or what the clock says where that numbers segments. In
 * OriginMode names of streams that begin anew differ in nothing else, and caches keep them.
 */
export function firstMsn(
  { serverTimeBasedSegmentNumbering, originMode, segmentDuration }: HlsPublisherConfig,
  next: PackageOptions['next'],
): number {
  let byClock = 0;
  if (serverTimeBasedSegmentNumbering) byClock = Date.now() / (segmentDuration * 1000);
  else if (originMode) byClock = (Date.now() - SINCE_MS) / SHORTEST_MS;
  return Math.max(0, Math.floor(byClock), next?.msn ?? 0);
}
