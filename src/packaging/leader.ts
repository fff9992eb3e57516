import type { TrackPackager } from './track-packager.ts';

/** Key frames that are this share of the longest interval apart are as rare as those. */
const AS_RARE = 0.9;

/**
 * At whose key frames the segments of a stream begin: the pictures with the rarest ones of those that come, for they
 * have the least choice. Without a picture, the first track.
 * @param since media time, in seconds: what has brought nothing since then has gone, or has not come yet
 */
export function electLeaders<Data>(all: readonly TrackPackager<Data>[], since: number): readonly TrackPackager<Data>[] {
  const present = all.filter(({ hasLeft }) => !hasLeft);
  const pictures = present.filter(({ track }) => track.type === 'video');
  if (pictures.length === 0) return present.slice(0, 1);
  const coming = pictures.filter(({ lastTime = -Infinity }) => lastTime >= since);
  const candidates = coming.length > 0 ? coming : pictures;
  const rarest = Math.max(...candidates.map((one) => rarity(one, candidates)));
  return candidates.filter((one) => rarity(one, candidates) >= rarest * AS_RARE);
}

/**
 * Whether a frame of a leader may begin a segment: the first to come of those whose key frames are equally rare, so that
 * the same frame of the others is still to come.
 * @param time of the frame, in seconds
 */
export function isFirst<Data>(
  one: TrackPackager<Data>,
  time: number,
  leaders: readonly TrackPackager<Data>[],
): boolean {
  return (
    leaders.includes(one) &&
    leaders.every((other) => other === one || (other.lastTime ?? -Infinity) < time + other.frameSeconds)
  );
}

/** A source whose key frames nobody has seen yet may have rare ones, but for one beside another that is known. */
function rarity<Data>({ keyInterval: { seconds } }: TrackPackager<Data>, all: readonly TrackPackager<Data>[]): number {
  if (seconds !== Infinity) return seconds;
  return all.some(({ track, keyInterval }) => track.bypass && keyInterval.seconds !== Infinity) ? 0 : Infinity;
}
