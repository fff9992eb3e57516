import type { RecordedFile } from './recorded-files.ts';

/** Milliseconds by which a file may seem to begin after the end of the one that it follows: it is dated when its first frame comes. */
export const JOIN_MS = 2000;

/** A time in which there is a recording without a break, in milliseconds since the epoch. */
export interface RecordedSpan {
  readonly start: number;
  readonly end: number;
}

export function endOf({ startTime, recordTime }: RecordedFile): number {
  return startTime + recordTime;
}

/** Joins files that follow each other, or overlap, and have tracks of the same format, as clips do. @param files in the order of their starts */
export function joined(files: Iterable<RecordedFile>): RecordedSpan[] {
  const spans: { start: number; end: number }[] = [];
  const lastOf = new Map<string | undefined, { start: number; end: number }>();
  /** Tracks of the newest file of each recording. */
  const tracksOf = new Map<string, string | undefined>();
  for (const file of files) {
    const tracks = JSON.stringify(file.tracks);
    const last = lastOf.get(tracks);
    const isChanged = tracksOf.has(file.recordId) && tracksOf.get(file.recordId) !== tracks;
    tracksOf.set(file.recordId, tracks);
    if (last !== undefined && !isChanged && file.startTime - last.end <= JOIN_MS)
      last.end = Math.max(last.end, endOf(file));
    else {
      const span = { start: file.startTime, end: endOf(file) };
      spans.push(span);
      lastOf.set(tracks, span);
    }
  }
  return spans;
}

/**
 * Chooses the files that a clip plays, so that each moment is played once: a recording is followed as long as it has a next file,
 * whatever other recordings there are.
 * @param files in the order of their starts
 */
export function playedOf(files: readonly RecordedFile[], start: number, end: number): RecordedFile[] {
  const played: RecordedFile[] = [];
  let at = start;
  let last: RecordedFile | undefined;
  while (at < end) {
    const left = files.filter((file) => endOf(file) > at && file.startTime < end && file !== last);
    const next =
      left.find(({ recordId, startTime }) => recordId === last?.recordId && startTime <= at + JOIN_MS) ??
      longest(left.filter(({ startTime }) => startTime <= at)) ??
      left[0];
    if (next === undefined) break;
    played.push(next);
    at = endOf(next);
    last = next;
  }
  return played;
}

/** The files up to the first break. @param files as of `playedOf` */
export function unbroken(files: readonly RecordedFile[]): readonly RecordedFile[] {
  const broken = files.findIndex((file, index) => {
    const before = files[index - 1];
    return before !== undefined && file.startTime - endOf(before) > JOIN_MS;
  });
  return broken < 0 ? files : files.slice(0, broken);
}

function longest(files: readonly RecordedFile[]): RecordedFile | undefined {
  return files.reduce<RecordedFile | undefined>(
    (best, file) => (best === undefined || endOf(file) > endOf(best) ? file : best),
    undefined,
  );
}
