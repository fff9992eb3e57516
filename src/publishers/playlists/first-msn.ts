import type { HlsPublisherConfig } from '../../config/model.ts';
import type { PackageOptions } from './form.ts';

/** Media sequence number that a stream begins with: where it goes on, or what the clock says where that numbers segments. */
export function firstMsn(
  { serverTimeBasedSegmentNumbering, segmentDuration }: HlsPublisherConfig,
  next: PackageOptions['next'],
): number {
  const timed = serverTimeBasedSegmentNumbering ? Math.floor(Date.now() / (segmentDuration * 1000)) : 0;
  return Math.max(timed, next?.msn ?? 0);
}
