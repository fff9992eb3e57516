import type { RecordedFile } from './recorded-files.ts';

/** Milliseconds by which a file may seem to begin after the end of the one that it follows: it is dated when its first frame comes. */
const JOIN_MS = 2000;

/** A time in which there is a recording without a break, in milliseconds since the epoch. */
export interface RecordedSpan {
  readonly start: number;
  readonly end: number;
}

function endOf({ startTime, recordTime }: RecordedFile): number {
  return startTime + recordTime;
}

/** Joins files that follow each other, or overlap, and have the same tracks. @param files in the order of their starts */
export function joined(files: Iterable<RecordedFile>): RecordedSpan[] {
  const spans: { start: number; end: number }[] = [];
  const lastOf = new Map<string | undefined, { start: number; end: number }>();
  for (const file of files) {
    const tracks = JSON.stringify(file.tracks);
    const last = lastOf.get(tracks);
    if (last !== undefined && file.startTime - last.end <= JOIN_MS) last.end = Math.max(last.end, endOf(file));
    else {
      const span = { start: file.startTime, end: endOf(file) };
      spans.push(span);
      lastOf.set(tracks, span);
    }
  }
  return spans;
}
