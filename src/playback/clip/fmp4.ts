import { editList } from '../../containers/fmp4/edit-list.ts';
import { MOVIE_TIMESCALE } from '../../containers/fmp4/final-index.ts';
import { asDamage } from './error.ts';
import { fragmentedHead } from './fragmented-head.ts';
import { fragments } from './fragments.ts';
import { join, joinedTracks, type ClipFile, type ClipSpan, type Joined, type JoinedTrack } from './joined.ts';

/** A span of recordings as fragmented MP4, which needs no index in front. */
export interface Fmp4Clip extends Pick<Joined, 'start' | 'duration' | 'stop'> {
  /** The file in pieces: its head, then those of fragments of about a second. */
  readonly pieces: AsyncGenerator<Buffer>;
}

/**
 * Prepares a clip that begins with a key frame; an edit list hides what is before the first frame that was asked for.
 * @param files in the order of time
 * @throws ClipError: `empty` if there is no frame in that time; SourceError
 */
export async function openFmp4Clip(
  files: readonly ClipFile[],
  span: ClipSpan,
  signal?: AbortSignal,
): Promise<Fmp4Clip> {
  const joined = await join(files, span, signal);
  const { start, duration, stop } = joined;
  const tracks = joinedTracks(joined);
  try {
    const head = headOf(joined, tracks);
    return { start, duration, ...(stop !== undefined && { stop }), pieces: write(head, joined, tracks, signal) };
  } catch (error) {
    throw asDamage(error);
  }
}

function headOf(joined: Joined, tracks: readonly JoinedTrack[]): Buffer {
  const total = Math.round(joined.duration * MOVIE_TIMESCALE);
  const heads = tracks.map(({ track, empty, hidden }) => {
    const emptyTicks = Math.round(empty * MOVIE_TIMESCALE);
    return { track, edits: editList({ empty: emptyTicks, duration: total - emptyTicks, mediaTime: hidden }) };
  });
  return fragmentedHead(heads, total);
}

async function* write(
  head: Buffer,
  joined: Joined,
  tracks: readonly JoinedTrack[],
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  yield head;
  let sequence = 1;
  for (const { file } of joined.parts) {
    const ranges = tracks.flatMap(({ track: { id }, pieces }) =>
      pieces.filter((piece) => piece.file === file).map((piece) => ({ ...piece, track: { ...piece.track, id } })),
    );
    sequence = yield* fragments(file.recording.source, ranges, sequence, signal);
  }
}
