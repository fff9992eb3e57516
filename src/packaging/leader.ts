import type { TrackPackager } from './track-packager.ts';

/** Intervals of at least this share of the longest one count as equal to it. */
const AS_RARE = 0.9;

/**
 * Elects the tracks at whose key frames segments begin: of the video tracks that deliver frames, those with the rarest
 * key frames, because they have the fewest places to cut. Without video, the first track.
 * @param since media time, in seconds: a track without a frame since then has stopped, or has not begun
 */
export function electLeaders<Data>(all: readonly TrackPackager<Data>[], since: number): readonly TrackPackager<Data>[] {
  const present = all.filter(({ standIn }) => !standIn.hasLeft);
  const videos = present.filter(({ track }) => track.type === 'video');
  if (videos.length === 0) return present.slice(0, 1);
  const coming = videos.filter(({ lastTime = -Infinity }) => lastTime >= since);
  const candidates = coming.length > 0 ? coming : videos;
  const rarest = Math.max(...candidates.map((one) => rarity(one, candidates)));
  return candidates.filter((one) => rarity(one, candidates) >= rarest * AS_RARE);
}

/**
 * Whether a frame of a leader may begin a segment: no other leader has passed its time.
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

/** Key frame interval; unknown ones of bypassed tracks count as the rarest, unless that of another is known. */
function rarity<Data>({ keyInterval: { seconds } }: TrackPackager<Data>, all: readonly TrackPackager<Data>[]): number {
  if (seconds !== Infinity) return seconds;
  return all.some(({ track, keyInterval }) => track.bypass && keyInterval.seconds !== Infinity) ? 0 : Infinity;
}
