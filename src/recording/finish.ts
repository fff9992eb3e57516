import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { appendInfo } from './info-file.ts';
import type { Finished, FinishedFile, Journal, JournalEntry, WrittenSubtitles } from './journal.ts';
import { placeBelow, renameFree } from '../lib/files/paths.ts';
import type { PathValues } from './macros.ts';
import { partsOf } from './settings.ts';
import { nameSubtitles, writtenSubtitles } from './subtitles-beside.ts';

/** Values of the macros in a file's paths. */
export function valuesOf(entry: JournalEntry, finishTime: number): PathValues {
  return { ...entry, start: new Date(entry.startTime), end: new Date(finishTime) };
}

/**
 * Moves a file to its final name, and its subtitles beside it, adds it to the info file, and hands it to delivery. A crash at any point loses
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
  const subtitles = await writtenSubtitles(entry);
  const hasSubtitles = subtitles.length > 0;
  await journal.finish({ ...entry, finished: { ...finished, inode, ...(hasSubtitles && { subtitles }) } });
  const filePath = await renameFree(temporary, await placeBelow(root, parts.file));
  const info = await placeBelow(root, parts.info);
  const file = await named(entry, finished, parts.file, filePath, subtitles);
  await appendInfo(info, file).catch(onInfoFailure);
  await journal.hand(file);
  return { file: filePath, info };
}

/**
 * Gives subtitles their names beside a file that has its own.
 * @param parts wanted path of the file below the root; another file may have had that name
 * @throws errors of the system
 */
export async function named(
  entry: JournalEntry,
  finished: Finished,
  parts: readonly string[],
  filePath: string,
  written: readonly WrittenSubtitles[],
): Promise<FinishedFile> {
  const pathBelow = [...parts.slice(0, -1), basename(filePath)].join('/');
  const subtitles = await nameSubtitles(entry, written, filePath);
  return { ...entry, ...finished, filePath, pathBelow, ...(subtitles.length > 0 && { subtitles }) };
}
