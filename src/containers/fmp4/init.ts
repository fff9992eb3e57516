import type { MediaTrack, SubtitleTrack } from '../../core/track.ts';
import { ascii, box, fullBox, u32 } from './box.ts';
import { movieHeader, trackBox } from './movie.ts';

/** Id of the one track in files of `initSegment`. */
export const TRACK_ID = 1;

const MOVIE_TIMESCALE = 1000;

/** Encryption of a track, as its initialization describes it. */
export interface InitProtection {
  /** Sample entry, by `protectedEntry`. */
  readonly entry: Buffer;
  /** Boxes `pssh`. */
  readonly boxes: readonly Buffer[];
}

/**
 * `ftyp` and `moov` of a fragmented file with one track (CMAF header, ISO/IEC 23000-19, 7.3.1).
 * Its timescale is the track's timebase.
 * @throws UnsupportedTrackError
 */
export function initSegment(track: MediaTrack | SubtitleTrack, protection?: InitProtection): Buffer {
  const ftyp = box('ftyp', ascii('iso6'), u32(0), ascii('iso6cmfcmp41'));
  return Buffer.concat([ftyp, fragmentedMovie([track], MOVIE_TIMESCALE, protection)]);
}

/**
 * `moov` of a fragmented file: the ids of its tracks count from 1.
 * @param protection of a file with one track
 * @throws UnsupportedTrackError
 */
export function fragmentedMovie(
  tracks: readonly (MediaTrack | SubtitleTrack)[],
  timescale: number,
  protection?: InitProtection,
): Buffer {
  const ids = tracks.map((_, index) => TRACK_ID + index);
  return box(
    'moov',
    movieHeader(timescale, 0, TRACK_ID + tracks.length),
    ...tracks.map((track, index) =>
      trackBox(track, {
        id: TRACK_ID + index,
        duration: 0,
        mediaDuration: 0,
        tables: emptyTables(),
        entry: protection?.entry,
      }),
    ),
    movieExtends(ids),
    ...(protection?.boxes ?? []),
  );
}

/** Boxes of `stbl` after the sample description, in a file whose samples are in fragments. */
export function emptyTables(): Buffer[] {
  return [
    fullBox('stts', 0, 0, u32(0)),
    fullBox('stsc', 0, 0, u32(0)),
    fullBox('stsz', 0, 0, u32(0, 0)),
    fullBox('stco', 0, 0, u32(0)),
  ];
}

/** `mvex` (ISO/IEC 14496-12, 8.8.1). @param before boxes before those of the tracks */
export function movieExtends(ids: readonly number[], before: readonly Buffer[] = []): Buffer {
  return box('mvex', ...before, ...ids.map((id) => fullBox('trex', 0, 0, u32(id, 1, 0, 0, 0))));
}
