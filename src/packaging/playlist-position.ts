/** Playlist state of the stream before, which a stream that continues it must not repeat. */
export interface Resumption {
  /** Discontinuity sequence number of the last segment (EXT-X-DISCONTINUITY-SEQUENCE). */
  readonly discontinuities: number;
  /** Next version of the initialization, by track id. */
  readonly inits: ReadonlyMap<number, number>;
  /**
   * Number of segments before the first that may have been listed. The playlist lists them as gaps, so that players
   * can continue from the segments that they have.
   */
  readonly gaps: number;
}

/** Playlist position of a stream. */
export interface PlaylistPosition extends Omit<Resumption, 'gaps'> {
  /** Media sequence number of the newest segment, which may be growing. */
  readonly msn: number;
}
