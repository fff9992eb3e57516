/** What must not come again in the playlists of a stream that continues another. */
export interface Past {
  /** EXT-X-DISCONTINUITY-SEQUENCE of its last segment. */
  readonly discontinuities: number;
  /** By track id: the next version of an initialization. */
  readonly inits: ReadonlyMap<number, number>;
  /**
   * Segments before the first that were listed, or may have been: nobody knows. The playlist lists them as gaps, so that
   * players get from what they have to what follows.
   */
  readonly gaps: number;
}

/** How far the segments of a stream have come. */
export interface Progress extends Omit<Past, 'gaps'> {
  /** Media sequence number of the newest segment, that may be growing. */
  readonly msn: number;
}
