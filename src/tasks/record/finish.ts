import { appendInfo } from './info-file.ts';
import type { JournalEntry } from './journal.ts';
import { placeBelow, renameFree, type PathValues } from './paths.ts';
import { partsOf } from './settings.ts';

/** What is known of a file when nothing is written to it any more. */
export interface Finished {
  readonly recordBytes: number;
  /** Milliseconds. */
  readonly recordTime: number;
  readonly lastSequence: boolean;
  /** Milliseconds since the epoch. */
  readonly finishTime: number;
}

/** What the macros of a file's paths stand for. */
export function valuesOf(entry: JournalEntry, finishTime: number): PathValues {
  return { ...entry, start: new Date(entry.startTime), end: new Date(finishTime) };
}

/**
 * Gives a file its name, and adds it to the info file.
 * @returns where they are
 * @throws PathError, what the system says; `onInfoFailure` is told of what keeps the info file from being written
 */
export async function finishFile(
  entry: JournalEntry,
  finished: Finished,
  onInfoFailure: (error: Error) => void,
): Promise<{ readonly file: string; readonly info: string }> {
  const { temporary, root } = entry;
  const parts = partsOf(entry, valuesOf(entry, finished.finishTime));
  const file = await renameFree(temporary, await placeBelow(root, parts.file));
  const info = await placeBelow(root, parts.info);
  await appendInfo(info, { ...entry, ...finished, filePath: file }).catch(onInfoFailure);
  return { file, info };
}
