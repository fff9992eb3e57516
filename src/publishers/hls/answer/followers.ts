/** A complete segment of a media playlist, for consumers that keep it longer than the window. */
export interface FollowedSegment {
  /** File name of its media playlist. */
  readonly list: string;
  /** File name of its media; a gap has no file. */
  readonly name: string;
  /** Media sequence number: the same time in all playlists of the stream. */
  readonly msn: number;
  /** Seconds. */
  readonly duration: number;
  /** Milliseconds since the epoch, of its first presentation time. */
  readonly wallClock: number;
  readonly discontinuity: boolean;
  /** Discontinuities of the stream before it, its own not counted (EXT-X-DISCONTINUITY-SEQUENCE). */
  readonly discontinuitySequence: number;
  readonly gap: boolean;
  /** Lines of its playlist that tell of ad breaks which begin or end with it; '' or ended by a line feed. */
  readonly breaks: string;
  /** The same of ad breaks that began in front of earlier segments, and last until this one at least. */
  readonly breaksBefore: string;
  /** Of media. */
  readonly bytes: number;
  /** What decoders need before it, in fragmented MP4. */
  readonly init?: { readonly name: string; readonly data: Buffer };
  /** The media, in pieces that follow each other. */
  body(): Promise<readonly Buffer[]> | readonly Buffer[];
}

/** A media playlist with its segments, oldest first. */
export interface FollowedList<S> {
  readonly listed: readonly S[];
  /** Listed or not. */
  readonly kept: readonly S[];
  followed(segment: S): FollowedSegment;
}

/** Gets the segments of a stream as they are completed, each once. */
export interface Follower {
  segment(segment: FollowedSegment): void;
  /** The last segment was passed on: the publisher has gone, or the playlists were concluded. */
  end(): void;
}

/** The followers of a stream's segments. */
export class Followers {
  readonly #all = new Set<Follower>();

  get size(): number {
    return this.#all.size;
  }

  /**
   * Passes on the segments that the playlists have, oldest first, beginning with the first one that any of them lists: so
   * all tracks begin at the same time, as far as they have kept it. Later ones follow as they are completed.
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

  /** Passes on a segment that has just been completed. */
  segment(segment: FollowedSegment): void {
    for (const follower of this.#all) follower.segment(segment);
  }

  /** Ends all of them. */
  end(): void {
    const all = [...this.#all];
    this.#all.clear();
    for (const follower of all) follower.end();
  }
}
