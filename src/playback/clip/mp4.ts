import { createHash } from 'node:crypto';
import { ascii, box, u32, u64 } from '../../containers/fmp4/box.ts';
import { editList } from '../../containers/fmp4/edit-list.ts';
import { MOVIE_TIMESCALE } from '../../containers/fmp4/final-index.ts';
import { movieHeader } from '../../containers/fmp4/movie.ts';
import { placedTrak } from '../../containers/fmp4/placed-trak.ts';
import { BOX_HEAD_BYTES } from '../../containers/fmp4/read-box.ts';
import { asDamage, ClipError, damaged } from './error.ts';
import {
  join,
  joinedTracks,
  type ClipFile,
  type ClipSpan,
  type ClipStop,
  type Joined,
  type JoinedTrack,
} from './joined.ts';
import { readParts, type ByteSpan } from './read-parts.ts';
import { durationOf, extents, lastDuration, loadSamples, type Samples } from './samples.ts';
import { lengthen, movePlaces, writtenTables, type WrittenPiece } from './written-table.ts';

/** Media of a recording: bytes from `from` to `to`. */
interface Media {
  readonly file: ClipFile;
  from: number;
  to: number;
}

interface LoadedTrack extends JoinedTrack {
  readonly samples: readonly Samples[];
}

/** Limit of the head: about 10 hours of video at 30 frames per second. */
const MAX_HEAD_BYTES = 32 * 1024 * 1024;
/** `mdat` with a size of 64 bits. */
const MEDIA_HEAD_BYTES = 16;
const FILE_TYPE = box('ftyp', ascii('isom'), u32(0x200), ascii('isomiso2iso6mp41'));

/**
 * MP4 file of a span of recordings, of which only the head is made: the media are bytes of the recordings. It begins with
 * a key frame, and an edit list hides what is before the first frame that was asked for.
 */
export class Mp4Clip {
  /** Bytes of the file. */
  readonly size: number;
  /** Strong entity tag, in quotes: the same on all nodes. */
  readonly etag: string;
  /** Time of the first frame that is shown, in milliseconds since the epoch. */
  readonly start: number;
  /** Seconds. */
  readonly duration: number;
  readonly stop: ClipStop | undefined;
  readonly #head: readonly Buffer[];
  readonly #media: readonly Media[];

  private constructor(joined: Joined, head: readonly Buffer[], media: readonly Media[]) {
    this.start = joined.start;
    this.duration = joined.duration;
    this.stop = joined.stop;
    this.#head = head;
    this.#media = media;
    this.size = bytesOf(head) + media.reduce((sum, { from, to }) => sum + to - from, 0);
    const hash = createHash('sha256');
    for (const piece of head) hash.update(piece);
    for (const { file, from, to } of media) hash.update(`${file.id} ${from} ${to}\n`);
    this.etag = `"${hash.digest('base64url')}"`;
  }

  /**
   * Reads what the clip needs of the indexes of recordings, and writes its head.
   * @param files in the order of time
   * @throws ClipError: `empty` if there is no frame in that time, `tooLong`, `damaged`; SourceError
   */
  static async open(files: readonly ClipFile[], span: ClipSpan, signal?: AbortSignal): Promise<Mp4Clip> {
    const joined = await join(files, span, signal);
    const tracks: LoadedTrack[] = [];
    let held = 0;
    for (const track of joinedTracks(joined)) {
      const samples: Samples[] = [];
      for (const { track: own, from, to } of track.pieces) {
        samples.push(await loadSamples(own, from, to, signal));
        held += bytesOfTables(samples.at(-1) as Samples);
        if (held > MAX_HEAD_BYTES) throw new ClipError('tooLong', 'the clip would be too long');
      }
      tracks.push({ ...track, samples });
    }
    const media = mediaOf(joined, tracks);
    try {
      return new Mp4Clip(joined, headOf(joined, tracks, media), media);
    } catch (error) {
      throw asDamage(error);
    }
  }

  /**
   * Reads bytes of the file, in pieces. The head is held no longer than it is read.
   * @param from first byte
   * @param to byte after the last one
   * @throws SourceError
   */
  read(from: number, to: number, signal?: AbortSignal): AsyncGenerator<Buffer> {
    const before = bytesOf(this.#head);
    return readClip(partsOf(this.#head, from, to), spansOf(this.#media, from - before, to - before), signal);
  }
}

async function* readClip(head: Buffer[], media: readonly ByteSpan[], signal?: AbortSignal): AsyncGenerator<Buffer> {
  for (let piece = head.shift(); piece !== undefined; piece = head.shift()) yield piece;
  yield* readParts(media, signal);
}

/** Bytes of buffers from a position to another. */
function partsOf(pieces: readonly Buffer[], from: number, to: number): Buffer[] {
  let at = 0;
  return pieces.flatMap((piece) => {
    const part = piece.subarray(Math.max(0, from - at), Math.max(0, to - at));
    at += piece.length;
    return part.length > 0 ? [part] : [];
  });
}

/** Spans of media from a position to another. */
function spansOf(media: readonly Media[], from: number, to: number): ByteSpan[] {
  let at = 0;
  return media.flatMap(({ file, from: first, to: last }) => {
    const { source } = file.recording;
    const span = { source, from: first + Math.max(0, from - at), to: Math.min(last, first + to - at) };
    at += last - first;
    return span.from < span.to ? [span] : [];
  });
}

function bytesOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

function bytesOfTables({ durations, offsets, sizes, keys, chunks }: Samples): number {
  return durations.length + (offsets?.length ?? 0) + sizes.length + (keys?.length ?? 0) + 12 * chunks.at.length;
}

/** The bytes of each recording that have all samples. */
function mediaOf({ parts }: Joined, tracks: readonly LoadedTrack[]): Media[] {
  const media = parts.map(({ file }): Media => ({ file, from: Infinity, to: 0 }));
  for (const { pieces, samples } of tracks) {
    for (const [index, { file }] of pieces.entries()) {
      const own = media.find((one) => one.file === file) as Media;
      for (const [at, bytes] of extents(samples[index] as Samples)) {
        own.from = Math.min(own.from, at);
        own.to = Math.max(own.to, at + bytes);
      }
    }
  }
  for (const { file, to } of media)
    if (to > file.recording.source.size) throw damaged('its index names media after its end');
  return media.filter(({ from, to }) => from < to);
}

/** All before the media. */
function headOf(joined: Joined, tracks: readonly LoadedTrack[], media: readonly Media[]): Buffer[] {
  const duration = Math.round(joined.duration * MOVIE_TIMESCALE);
  const nextTrackId = Math.max(...tracks.map(({ track }) => track.id)) + 1;
  const written = tracks.map((track) => trackOf(track, media, duration));
  const movie = [movieHeader(MOVIE_TIMESCALE, duration, nextTrackId), ...written.flatMap(({ boxes }) => boxes)];
  const mediaBytes = media.reduce((sum, { from, to }) => sum + to - from, 0);
  const head = [
    FILE_TYPE,
    Buffer.concat([u32(BOX_HEAD_BYTES + bytesOf(movie)), ascii('moov')]),
    ...movie,
    Buffer.concat([u32(1), ascii('mdat'), u64(MEDIA_HEAD_BYTES + mediaBytes)]),
  ];
  for (const { places } of written) movePlaces(places, bytesOf(head));
  return head;
}

/** `trak` in pieces. Positions are from the beginning of the media on. */
function trackOf({ track, pieces, samples, empty, hidden }: LoadedTrack, media: readonly Media[], duration: number) {
  let end = 0;
  const written = pieces.map(({ file, late = 0, early = 0 }, index): WrittenPiece => {
    const own = samples[index] as Samples;
    const next = pieces[index + 1];
    end += durationOf(own) - late;
    const stretch = next === undefined ? -early : Math.max(next.dts + next.shift - end, -lastDuration(own));
    end += stretch;
    return { samples: own, late, stretch, move: moveOf(file, media) };
  });
  const { timescale } = track;
  const emptyTicks = Math.round(empty * MOVIE_TIMESCALE);
  const shown = Math.round(((end + track.lead - hidden) * MOVIE_TIMESCALE) / timescale);
  const own = Math.max(0, Math.min(duration - emptyTicks, shown));
  const { boxes, places } = writtenTables(written);
  const trak = placedTrak(track.trak, {
    id: track.id,
    duration: emptyTicks + own,
    mediaDuration: end,
    edits: editList({ empty: emptyTicks, duration: own, mediaTime: hidden }),
    tables: [],
  });
  lengthen(trak, ['trak', 'mdia', 'minf', 'stbl'], bytesOf(boxes));
  return { boxes: [trak, ...boxes], places };
}

/** Bytes from a position in a recording to that in the media of the clip. */
function moveOf(file: ClipFile, media: readonly Media[]): number {
  let before = 0;
  for (const one of media) {
    if (one.file === file) return before - one.from;
    before += one.to - one.from;
  }
  return 0;
}
