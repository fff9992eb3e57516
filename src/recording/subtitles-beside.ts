import { stat, unlink } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { cutName, findRenamed, MAX_PART_BYTES, renameFree } from '../lib/files/paths.ts';
import { unless } from '../lib/files/unless.ts';
import type { SubtitleTrack } from '../core/track.ts';
import type { JournalEntry, Label, NamedSubtitles, WrittenSubtitles } from './journal.ts';
import { mendFile } from './mend.ts';

const EXTENSION = '.vtt';

export function labelOf({ publicName = '', language }: SubtitleTrack): Label {
  return { label: publicName, ...(language !== undefined && { language }) };
}

/** Path of the subtitles of a file until it is finished. @param index of its labels */
export function temporarySubtitles(temporary: string, index: number): string {
  return `${temporary}.${index}${EXTENSION}`;
}

/** Name that subtitles get beside a file: `talk.mp4` has `talk.English.en.vtt`. */
export function besideName(file: string, { label, language }: Label): string {
  const end = [label, ...(language === undefined ? [] : [language])]
    .map((part) => `.${part.replaceAll(/[\p{Cc}\p{Cs}/\\:*?"<>|]/gu, '_')}`)
    .join('');
  const name = cutName(end, MAX_PART_BYTES / 2) + EXTENSION;
  const stem = basename(file, extname(file));
  return join(dirname(file), cutName(stem, MAX_PART_BYTES - Buffer.byteLength(name)) + name);
}

/** Subtitles that a file has got. @throws errors of the system */
export async function writtenSubtitles({ temporary, labels = [] }: JournalEntry): Promise<WrittenSubtitles[]> {
  const written: WrittenSubtitles[] = [];
  for (const index of labels.keys()) {
    const found = await stat(temporarySubtitles(temporary, index)).catch(unless('ENOENT'));
    if (found !== undefined) written.push({ index, inode: found.ino });
  }
  return written;
}

/**
 * Gives subtitles their names beside a file that has its own. After a crash it goes on with those that have none.
 * @throws errors of the system
 */
export async function nameSubtitles(
  { temporary, labels = [] }: JournalEntry,
  written: readonly WrittenSubtitles[],
  filePath: string,
): Promise<NamedSubtitles[]> {
  const named: NamedSubtitles[] = [];
  for (const { index, inode } of written) {
    const label = labels[index];
    if (label === undefined) continue;
    const from = temporarySubtitles(temporary, index);
    const wanted = besideName(filePath, label);
    const found = await stat(from).catch(unless('ENOENT'));
    // linked to its name already
    if (found !== undefined && found.nlink > 1) await unlink(from);
    const path = found?.nlink === 1 ? await renameFree(from, wanted) : await findRenamed(inode, wanted);
    if (path !== undefined) named.push({ ...label, name: basename(path), inode });
  }
  return named;
}

/** Completes the subtitles of a file that was interrupted. @throws errors of the system */
export async function mendSubtitles(entry: JournalEntry): Promise<void> {
  for (const { index } of await writtenSubtitles(entry)) {
    const path = temporarySubtitles(entry.temporary, index);
    if ((await mendFile(path, EXTENSION)) === 0) await unlink(path);
  }
}

/** Deletes the subtitles of a file that has no media. @throws errors of the system */
export async function dropSubtitles(entry: JournalEntry): Promise<void> {
  for (const { index } of await writtenSubtitles(entry)) await unlink(temporarySubtitles(entry.temporary, index));
}
