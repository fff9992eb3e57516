import type { Track } from '../../core/track.ts';
import type { MediaUnit } from '../intake/media-unit.ts';
import type { Announced } from '../intake/start-gate.ts';
import type { MediaKind } from '../intake/track-id.ts';

/** Converts the segments of a playlist to units, whose times are in ticks of VIDEO_TIMEBASE. */
export interface SegmentReader {
  /** Known tracks in their latest form. */
  readonly tracks: readonly Track[];
  /** @param bytes any portion of a segment @throws PullError when they are of another form */
  push(bytes: Buffer): void;
  /** A segment is over. */
  flush(): void;
  /** Notes that media is missing here. */
  lost(): void;
  /** Notes that the next segment does not go on from here, and has another clock. */
  restart(): void;
}

export interface SegmentReaderEvents {
  /** Reports the tracks of the segments, at first and after each change. @param ids of all of them */
  tracks(announced: Announced, ids: ReadonlySet<number>): void;
  unit(unit: MediaUnit): void;
}

/** Which tracks are read: undefined for all. Those of other kinds are in a playlist of their own. */
export type Wanted = MediaKind | undefined;

export function isWanted(kind: Track['type'], wanted: Wanted): boolean {
  return wanted === undefined || kind === wanted || (kind === 'data' && wanted === 'video');
}
