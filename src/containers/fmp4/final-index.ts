import type { Patch } from '../file-muxer.ts';
import { ascii, box, u32, u64 } from './box.ts';
import { movieHeader, type TrackPlace } from './movie.ts';
import type { SampleTable } from './sample-table.ts';

/** Timescale of files with several tracks. */
export const MOVIE_TIMESCALE = 90_000;
/** Bytes of the `free` box that becomes the header of the one `mdat`. */
export const PLACE_BYTES = 16;

export interface IndexedTrack {
  readonly id: number;
  /** Has at least one sample. */
  readonly table: SampleTable;
  trak(place: TrackPlace): Buffer;
}

/**
 * Builds the boxes that turn a file of fragments into one with a full index: a `moov` after them, and a `mdat` around
 * them.
 * @param tracks at least one
 * @param nextTrackId greater than all ids
 * @param placeAt position of the `free` box
 * @param end of the fragments
 */
export function finalIndex(
  tracks: readonly IndexedTrack[],
  nextTrackId: number,
  placeAt: number,
  end: number,
): { readonly movie: Buffer; readonly patch: Patch } {
  const duration = Math.max(...tracks.map(({ table }) => table.duration(MOVIE_TIMESCALE)));
  const movie = box(
    'moov',
    movieHeader(MOVIE_TIMESCALE, duration, nextTrackId),
    ...tracks.map(({ id, table, trak }) => trak(table.place(id, MOVIE_TIMESCALE))),
  );
  return { movie, patch: { at: placeAt, data: Buffer.concat([u32(1), ascii('mdat'), u64(end - placeAt)]) } };
}
