/** A moment of the wall clock (milliseconds since the epoch) and the media time, in seconds, it belongs to. */
export interface Anchor {
  readonly wall: number;
  readonly media: number;
}

/** Where all tracks of a stream begin a segment. */
export interface Cut {
  /** Media sequence number of the segments that it begins. */
  readonly msn: number;
  /** Media time in seconds. */
  readonly time: number;
  /** Seconds that a frame of the track lasts at whose frame it is: so far off are the key frames of others. */
  readonly slack: number;
  readonly discontinuity: boolean;
  /** The clock jumped: a track is there when it has jumped too, whatever its times say. */
  readonly jump: boolean;
  /** Discontinuities of the stream so far, this one included. */
  readonly discontinuities: number;
  readonly anchor: Anchor;
}

/** Beyond this the wall clock and the source's clock have parted. */
const MAX_DRIFT_MS = 1000;

/** A media time, in seconds, that is now. */
export function anchorAt(media: number): Anchor {
  return { wall: Date.now(), media };
}

/** The anchor of what is at a media time now: a new one, where the old one is too far off. */
export function steadied(anchor: Anchor, media: number): Anchor {
  const now = anchorAt(media);
  return Math.abs(now.wall - wallClock(anchor, media)) > MAX_DRIFT_MS ? now : anchor;
}

/** Milliseconds since the epoch at a media time, by its anchor. */
export function wallClock(anchor: Anchor, media: number): number {
  return anchor.wall + (media - anchor.media) * 1000;
}
