import type { HlsPublisherConfig } from '../../config/model.ts';
import type { PackageOptions } from './form.ts';

/** Shorter than any segment: what begins anew has higher numbers than what was before. */
const SHORTEST_MS = 100;

/**
 * Media sequence number that a stream begins with: where it goes on, or what the clock says where that numbers segments. In
 * OriginMode names of streams that begin anew differ in nothing else, and caches keep them.
 */
export function firstMsn(
  { serverTimeBasedSegmentNumbering, originMode, segmentDuration }: HlsPublisherConfig,
  next: PackageOptions['next'],
): number {
  const byClock = serverTimeBasedSegmentNumbering ? segmentDuration * 1000 : originMode ? SHORTEST_MS : Infinity;
  return Math.max(Math.floor(Date.now() / byClock), next?.msn ?? 0);
}
