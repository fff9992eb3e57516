import type { TrackPackager } from './track-packager.ts';

/** Intervals of at least this share of the longest one count as equal to it. */
const AS_RARE = 0.9;

/**
 * Tracks of a stream at whose key frames segments begin: of the video tracks that deliver frames, those with the rarest
 * key frames, because they have the fewest places to cut. Without video, the first track.
 */
export class Leaders<Data> {
  readonly #chunkDuration: number;
  #elected: readonly TrackPackager<Data>[] = [];
  /** Seconds of video parts, fixed with the leader's first part; 0 before. */
  #videoTarget = 0;

  /** @param chunkDuration configured seconds of a part */
  constructor(chunkDuration: number) {
    this.#chunkDuration = chunkDuration;
  }

  /** Elects anew. @param since media time, in seconds: a track without a frame since then has stopped, or has not begun */
  elect(all: readonly TrackPackager<Data>[], since: number): void {
    const present = all.filter(({ standIn }) => !standIn.hasLeft);
    const videos = present.filter(({ track }) => track.type === 'video');
    this.#elected = videos.length === 0 ? present.slice(0, 1) : rarest(videos, since);
  }

  has(one: TrackPackager<Data>): boolean {
    return this.#elected.includes(one);
  }

  /**
   * Whether a frame of a leader may begin a segment: no other leader has passed its time.
   * @param time of the frame, in seconds
   */
  isFirst(one: TrackPackager<Data>, time: number): boolean {
    return (
      this.has(one) &&
      this.#elected.every((other) => other === one || (other.lastTime ?? -Infinity) < time + other.frameSeconds)
    );
  }

  /**
   * Media time at which a track that does not lead is expected to begin a segment, in seconds; undefined if the leaders'
   * key frames are irregular.
   * @param earliest time from which a key frame of a leader begins a segment
   */
  dueFor({ frameSeconds }: TrackPackager<Data>, earliest: (leader: TrackPackager<Data>) => number): number | undefined {
    for (const leader of this.#elected) {
      const from = earliest(leader);
      const due = leader.track.type === 'audio' ? from : leader.keyInterval.due(from);
      if (due !== undefined) return due - frameSeconds / 2;
    }
    return undefined;
  }

  /** Seconds of the leader's video parts; the configured duration without video. */
  get videoTarget(): number {
    if (this.#videoTarget > 0) return this.#videoTarget;
    const [leader] = this.#elected;
    return leader === undefined || leader.track.type !== 'video' ? this.#chunkDuration : leader.target;
  }

  /** Records a part of a track. */
  notePart(one: TrackPackager<Data>): void {
    if (one === this.#elected[0]) this.#videoTarget = this.videoTarget;
  }
}

function rarest<Data>(videos: readonly TrackPackager<Data>[], since: number): readonly TrackPackager<Data>[] {
  const coming = videos.filter(({ lastTime = -Infinity }) => lastTime >= since);
  const candidates = coming.length > 0 ? coming : videos;
  const longest = Math.max(...candidates.map((one) => rarity(one, candidates)));
  return candidates.filter((one) => rarity(one, candidates) >= longest * AS_RARE);
}

/** Key frame interval; unknown ones of bypassed tracks count as the rarest, unless that of another is known. */
function rarity<Data>({ keyInterval: { seconds } }: TrackPackager<Data>, all: readonly TrackPackager<Data>[]): number {
  if (seconds !== Infinity) return seconds;
  return all.some(({ track, keyInterval }) => track.bypass && keyInterval.seconds !== Infinity) ? 0 : Infinity;
}
