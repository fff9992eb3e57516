import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { appendInfo } from './info-file.ts';
import type { Finished, FinishedFile, Journal, JournalEntry } from './journal.ts';
import { placeBelow, renameFree } from '../lib/files/paths.ts';
import type { PathValues } from './macros.ts';
import { partsOf } from './settings.ts';

/** Values of the macros in a file's paths. */
export function valuesOf(entry: JournalEntry, finishTime: number): PathValues {
  return { ...entry, start: new Date(entry.startTime), end: new Date(finishTime) };
}

/**
 * Moves a file to its final name, adds it to the info file, and hands it to delivery. A crash at any point loses
 * nothing: the next start resumes by the journal.
 * @returns places of both files
 * @throws PathError, errors of the system; errors of the info file go to `onInfoFailure`
 */
export async function finishFile(
  entry: JournalEntry,
  finished: Finished,
  journal: Journal,
  onInfoFailure: (error: Error) => void,
): Promise<{ readonly file: string; readonly info: string }> {
  const { temporary, root } = entry;
  const parts = partsOf(entry, valuesOf(entry, finished.finishTime));
  const { ino: inode } = await stat(temporary);
  await journal.finish({ ...entry, finished: { ...finished, inode } });
  const filePath = await renameFree(temporary, await placeBelow(root, parts.file));
  const info = await placeBelow(root, parts.info);
  const file = named(entry, finished, parts.file, filePath);
  await appendInfo(info, file).catch(onInfoFailure);
  await journal.hand(file);
  return { file: filePath, info };
}

/** @param parts wanted path below the root; another file may have had that name */
export function named(
  entry: JournalEntry,
  finished: Finished,
  parts: readonly string[],
  filePath: string,
): FinishedFile {
  const pathBelow = [...parts.slice(0, -1), basename(filePath)].join('/');
  return { ...entry, ...finished, filePath, pathBelow };
}
