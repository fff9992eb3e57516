import { ascii, box, fullBox, u32, u64 } from '../../containers/fmp4/box.ts';
import { MOVIE_TIMESCALE } from '../../containers/fmp4/final-index.ts';
import { emptyTables, movieExtends } from '../../containers/fmp4/init.ts';
import { movieHeader } from '../../containers/fmp4/movie.ts';
import { placedTrak } from '../../containers/fmp4/placed-trak.ts';
import type { RecordedTrack } from './recording.ts';

export interface HeadTrack {
  readonly track: RecordedTrack;
  /** Box `edts`. */
  readonly edits?: Buffer;
}

/**
 * `ftyp` and `moov` in front of fragments of recorded tracks, which keep their ids.
 * @param duration in ticks of the movie; 0 for that of segments
 */
export function fragmentedHead(tracks: readonly HeadTrack[], duration: number): Buffer {
  const ids = tracks.map(({ track }) => track.id);
  const traks = tracks.map(({ track, edits }) =>
    placedTrak(track.trak, {
      id: track.id,
      duration: 0,
      mediaDuration: 0,
      ...(edits !== undefined && { edits }),
      tables: emptyTables(),
    }),
  );
  const total = duration === 0 ? [] : [fullBox('mehd', 1, 0, u64(duration))];
  return Buffer.concat([
    box('ftyp', ascii('iso6'), u32(0), ascii('iso6isommp41')),
    box('moov', movieHeader(MOVIE_TIMESCALE, 0, Math.max(...ids) + 1), ...traks, movieExtends(ids, total)),
  ]);
}
