import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { PackageOptions } from './hls-form.ts';

/** Shorter than any segment, so that a new stream has higher numbers than the one before. */
const SHORTEST_MS = 250;
/** Origin of the count: some players read numbers of 31 bits, which last until 2043. */
const SINCE_MS = Date.UTC(2026, 0);

/**
 * First media sequence number of a stream: where it continues, or by the clock where that numbers segments. In OriginMode nothing
 * else distinguishes the file names of a new stream from those of the one before, which caches may keep.
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
