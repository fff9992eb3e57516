import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import type { PesHeader } from '../../containers/mpegts/pes-header.ts';
import type { Track } from '../../core/track.ts';
import type { MediaUnit } from '../intake/media-unit.ts';

/** Converter of one elementary stream to one track. */
export interface Lane {
  readonly stream: ElementaryStream;
  /** Track id in the input stream. */
  readonly id: number;
  /** Number among the tracks of its kind. */
  readonly index: number;
  readonly track: Track | undefined;
  /**
   * @param payload is not kept
   * @param now time of the program; undefined before its first audio or video
   */
  pes(header: PesHeader, payload: Buffer, now: number | undefined): void;
  lost(): void;
  /** Emits the last unit, since nothing follows. */
  flush(): void;
}

export interface LaneEvents {
  unit(unit: MediaUnit): void;
  fault(reason: string): void;
}
