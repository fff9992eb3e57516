import type { TrackPackager } from './track-packager.ts';

/** Key frames that are this share of the longest interval apart are as rare as those. */
const AS_RARE = 0.9;

/**
 * At whose key frames the segments of a stream begin: the picture with the rarest ones of those that come, for it has
 * the least choice; the first of equals. Without a picture, the first track.
 * @param since media time, in seconds: what has brought nothing since then has gone, or has not come yet
 */
export function elect(all: readonly TrackPackager[], since: number): TrackPackager | undefined {
  const pictures = all.filter(({ track }) => track.type === 'video');
  const coming = pictures.filter(({ lastTime = -Infinity }) => lastTime >= since);
  let best: TrackPackager | undefined;
  for (const one of coming.length > 0 ? coming : pictures) {
    if (best === undefined || one.keyInterval.seconds * AS_RARE > best.keyInterval.seconds) best = one;
  }
  return best ?? all[0];
}

/** Whether segments may begin at the key frames of a track too: those of the leader are no rarer. */
export function leads(one: TrackPackager, leader: TrackPackager | undefined): boolean {
  if (one === leader || leader === undefined) return one === leader;
  if (one.track.type !== 'video' || leader.track.type !== 'video') return false;
  return one.keyInterval.seconds >= leader.keyInterval.seconds * AS_RARE;
}
