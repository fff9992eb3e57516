import { cut, type Cut, type Range } from './cut.ts';
import { ClipError } from './error.ts';
import type { RecordedMp4, RecordedTrack } from './recording.ts';

/** A recording, and where it comes from. */
export interface ClipFile {
  readonly recording: RecordedMp4;
  /** Equal on all nodes. */
  readonly id: string;
  /** Time of its first frame, in milliseconds since the epoch. */
  readonly startTime: number;
}

/** Time that is asked for. */
export interface ClipSpan {
  /** Milliseconds since the epoch. */
  readonly start: number;
  /** Milliseconds. */
  readonly duration: number;
}

/** Why a clip ends before what was asked for: no recording goes on, or one of another format does. */
export type ClipStop = 'gap' | 'change';

/** Cuts of recordings that follow each other. */
export interface Joined {
  readonly parts: readonly JoinedPart[];
  /** Time of its first frame, in milliseconds since the epoch. */
  readonly start: number;
  /** Seconds. */
  readonly duration: number;
  /** Absent if it has all that was asked for. */
  readonly stop?: ClipStop;
}

export interface JoinedPart {
  readonly file: ClipFile;
  readonly cut: Cut;
  /** Seconds from times of the movie to those of the clip. */
  readonly offset: number;
}

/** Samples of a track in a clip. */
export interface JoinedTrack {
  /** Track of the first recording. */
  readonly track: RecordedTrack;
  readonly pieces: readonly Piece[];
  /** Seconds before the track begins, and ticks of its media that are not shown. */
  readonly empty: number;
  readonly hidden: number;
}

export interface Piece extends Range {
  readonly file: ClipFile;
  /** Ticks from times of the recording's media to those of the clip's. */
  readonly shift: number;
}

/** Milliseconds by which a recording may seem to begin later or earlier than the one before ends: it is dated when its first frame comes. */
const SLACK_MS = 2000;

/**
 * Cuts recordings that follow each other.
 * @param files in the order of time
 * @throws ClipError `empty` if there is no frame in that time; SourceError
 */
export async function join(files: readonly ClipFile[], span: ClipSpan, signal?: AbortSignal): Promise<Joined> {
  const parts: JoinedPart[] = [];
  const end = span.start + span.duration;
  let start = 0;
  let stop: ClipStop | undefined;
  const secondsAt = (part: JoinedPart, time: number): number => (time - start) / 1000 - part.offset;
  for (const file of files) {
    const { recording, startTime } = file;
    const before = parts.at(-1);
    const offset = before === undefined ? undefined : following(before, file);
    if (before !== undefined && secondsAt(before, end) <= before.cut.recording.end) break;
    if (typeof offset === 'string') {
      stop = offset;
      break;
    }
    const inMovie = (time: number): number => (time - startTime) / 1000 + recording.begin;
    // the end of a later one is counted from the beginning of the clip
    const to = offset === undefined ? inMovie(end) : (end - start) / 1000 - offset;
    const found = await cut(recording, offset === undefined ? inMovie(span.start) : -Infinity, to, signal);
    if (found === undefined) continue;
    if (offset === undefined) start = startTime + (found.start - recording.begin) * 1000;
    parts.push({ file, cut: found, offset: offset ?? -found.start });
  }
  const last = parts.at(-1);
  if (last === undefined) throw new ClipError('empty', 'nothing was recorded in that time');
  if (stop === undefined && secondsAt(last, end) > last.cut.recording.end + SLACK_MS / 1000) stop = 'gap';
  return { parts, start, duration: last.cut.end + last.offset, ...(stop !== undefined && { stop }) };
}

/** Offset of a recording that goes on with another one, or why it does not. */
function following({ file, cut: { recording }, offset }: JoinedPart, next: ClipFile): number | ClipStop {
  const ended = file.startTime + (recording.end - recording.begin) * 1000;
  if (Math.abs(next.startTime - ended) > SLACK_MS) return 'gap';
  if (!isSameFormat(recording, next.recording)) return 'change';
  const [one, other] = [recording.leader, next.recording.leader];
  return offset + (one.shift + one.duration) / one.timescale - other.shift / other.timescale;
}

function isSameFormat({ tracks }: RecordedMp4, other: RecordedMp4): boolean {
  return (
    tracks.length === other.tracks.length &&
    tracks.every((track, index) => {
      const same = other.tracks[index] as RecordedTrack;
      return track.timescale === same.timescale && isSameEntry(track, same);
    })
  );
}

/** Whether what decodes one decodes the other: entries of audio also tell its bitrate. */
function isSameEntry(track: RecordedTrack, same: RecordedTrack): boolean {
  const { description: one, format, shown } = track;
  const { description: other, format: next } = same;
  if (shown?.label !== same.shown?.label) return false;
  if (one.type !== 'audio' || other.type !== 'audio') return format.equals(next);
  const configs = [one, other].map(({ config }) => config?.toString('hex'));
  const isSameShape = one.samplerate === other.samplerate && one.channels === other.channels;
  return one.codec === other.codec && isSameShape && configs[0] === configs[1];
}

/** The tracks of a clip that have samples. */
export function joinedTracks({ parts }: Joined): JoinedTrack[] {
  const count = parts[0]?.cut.ranges.length ?? 0;
  return Array.from({ length: count }, (_, index) => {
    const pieces = parts.flatMap(({ file, cut: { ranges }, offset }) => {
      const range = ranges[index] as Range;
      const { shift, timescale } = range.track;
      return range.to > range.from ? [{ ...range, file, shift: shift + Math.round(offset * timescale) }] : [];
    });
    return pieces.length === 0 ? [] : [joinedTrack(pieces as [Piece, ...Piece[]])];
  }).flat();
}

function joinedTrack(pieces: readonly [Piece, ...Piece[]]): JoinedTrack {
  const [{ track, from, dts, shift }] = pieces;
  const begin = dts + shift;
  const lead = from === 0 ? track.lead : 0;
  const [empty, hidden] = begin > 0 ? [(begin + lead) / track.timescale, lead] : [0, -begin];
  // its media begins at 0
  return { track, pieces: pieces.map((piece) => ({ ...piece, shift: piece.shift - begin })), empty, hidden };
}
