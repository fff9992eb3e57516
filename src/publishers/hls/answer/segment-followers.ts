/** A complete segment of a media playlist, for consumers that keep it longer than the window. */
export interface FollowedSegment {
  /** File name of its media playlist. */
  readonly list: string;
  /** File name of its media; no such file exists for a gap. */
  readonly name: string;
  /** Media sequence number: the same time in all playlists of the stream. */
  readonly msn: number;
  /** Seconds. */
  readonly duration: number;
  /** First presentation time, in milliseconds since the epoch. */
  readonly wallClock: number;
  readonly discontinuity: boolean;
  /** Discontinuities before this segment, its own not counted (EXT-X-DISCONTINUITY-SEQUENCE). */
  readonly discontinuitySequence: number;
  readonly gap: boolean;
  /** Playlist lines for ad breaks that begin or end with it; '' or ended by a line feed. */
  readonly breaks: string;
  /** Playlist lines for ad breaks that began before it and last until this segment at least. */
  readonly breaksBefore: string;
  readonly bytes: number;
  /** With playlist lines of the keys of its segments (EXT-X-KEY), ended by a line feed; '' or absent for segments in clear. */
  readonly init?: { readonly name: string; readonly data: Buffer; readonly keys?: string };
  /** Bytes from the begin of its media to the end of its first frame, if that can be decoded alone. */
  readonly keyFrame?: number;
  body(): Promise<readonly Buffer[]> | readonly Buffer[];
}

/** A media playlist with its segments, oldest first. */
export interface FollowedList<S> {
  readonly listed: readonly S[];
  /** Includes segments that are no longer listed. */
  readonly kept: readonly S[];
  followed(segment: S): FollowedSegment;
}

/** Receives the segments of a stream as they are completed, each once. */
export interface Follower {
  segment(segment: FollowedSegment): void;
  /** Called after the last segment: the publisher has left, or the playlists were concluded. */
  end(): void;
}

export class Followers {
  readonly #all = new Set<Follower>();

  get size(): number {
    return this.#all.size;
  }

  /**
   * Passes on the segments of the playlists, oldest first, from the earliest one that any playlist lists: all tracks begin at the
   * same time, as far as they have kept it. Later segments follow as they are completed.
   * @returns a function that ends this without calling `end`
   */
  add<S extends { readonly msn: number }>(follower: Follower, lists: readonly FollowedList<S>[]): () => void {
    const first = Math.min(...lists.flatMap(({ listed }) => listed[0]?.msn ?? []));
    const there = lists.flatMap((list) => list.kept.map((segment) => ({ list, segment })));
    there.sort((one, other) => one.segment.msn - other.segment.msn);
    for (const { list, segment } of there) if (segment.msn >= first) follower.segment(list.followed(segment));
    this.#all.add(follower);
    return () => this.#all.delete(follower);
  }

  segment(segment: FollowedSegment): void {
    for (const follower of this.#all) follower.segment(segment);
  }

  end(): void {
    const all = [...this.#all];
    this.#all.clear();
    for (const follower of all) follower.end();
  }
}
