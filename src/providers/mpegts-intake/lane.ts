import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import type { PesHeader } from '../../containers/mpegts/pes-header.ts';
import type { Track } from '../../core/track.ts';
import type { MediaUnit } from '../intake/media-unit.ts';

/** One stream of a program on its way to a track. */
export interface Lane {
  readonly stream: ElementaryStream;
  /** Of the track in its stream. */
  readonly id: number;
  /** Among those of its kind. */
  readonly index: number;
  /** undefined until the source told what it is. */
  readonly track: Track | undefined;
  /** @param payload is not kept */
  pes(header: PesHeader, payload: Buffer): void;
  /** Something is missing before what comes next. */
  lost(): void;
  /** Nothing follows. */
  flush(): void;
}

export interface LaneEvents {
  unit(unit: MediaUnit): void;
  fault(reason: string): void;
}
