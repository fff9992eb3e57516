import { stat, unlink } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import type { Logger } from '../log/log.ts';
import { finishFile, named, valuesOf } from './finish.ts';
import { appendInfoOnce } from './info-file.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { mendFile } from './mend.ts';
import { findRenamed, placeBelow } from '../lib/files/paths.ts';
import { partsOf } from './settings.ts';
import { dropSubtitles, mendSubtitles } from './subtitles-beside.ts';
import { unless } from '../lib/files/unless.ts';

/** Time that a file waits for a missing disk. */
const WAITS_MS = 7 * 24 * 3600_000;

/**
 * Finishes the files that this node was writing when it was killed, one after the other. Never rejects: failures are
 * logged.
 * @param entries entries of the journal before the first recording of this run
 * @param signal leaves the others to the next start
 */
export async function finishLeftovers(
  entries: readonly JournalEntry[],
  journal: Journal,
  log: Logger,
  signal?: AbortSignal,
): Promise<void> {
  for (const entry of entries) {
    if (signal?.aborted === true) break;
    try {
      await finishLeftover(entry, journal, log);
    } catch (error) {
      const { temporary } = entry;
      const reason = error instanceof Error ? error.message : String(error);
      log.warn(
        { file: temporary, reason },
        'a recording that was interrupted could not be finished: its file stays, and the next start of this node tries again',
      );
    }
  }
}

async function finishLeftover(entry: JournalEntry, journal: Journal, log: Logger): Promise<void> {
  const { temporary, startTime, finished } = entry;
  const onInfoFailure = (error: Error): void =>
    log.warn({ reason: error.message }, 'the info file of a recording could not be written');
  const found = await stat(temporary).catch(unless('ENOENT'));
  if (found === undefined && (await isFolderAway(entry)))
    throw new Error('its folder is not there: the disk may not be mounted');
  // it has its name already
  if (found === undefined || found.nlink > 1) {
    if (found !== undefined) await unlink(temporary);
    if (finished === undefined) {
      await dropSubtitles(entry);
      return await journal.remove(entry);
    }
    return await completeNamed(entry, finished, journal, onInfoFailure);
  }
  const size = finished?.recordBytes ?? (await mendFile(temporary, extname(entry.file).toLowerCase()));
  if (size === 0) {
    await dropSubtitles(entry);
    await unlink(temporary);
    return await journal.remove(entry);
  }
  if (finished === undefined) await mendSubtitles(entry);
  const finishTime = Math.max(startTime, Math.round(found.mtimeMs));
  const cut = { recordBytes: size, recordTime: finishTime - startTime, lastSequence: false, finishTime };
  const { file } = await finishFile(entry, finished ?? cut, journal, onInfoFailure);
  const { sequence } = entry;
  log.info({ event: 'record.finished', file, sequence, bytes: size }, 'a recording that was interrupted is finished');
}

/** Whether the folder that a file was written to is missing or replaced by another. */
async function isFolderAway({ temporary, folder, startTime }: JournalEntry): Promise<boolean> {
  if (folder === undefined || Date.now() - startTime > WAITS_MS) return false;
  const found = await stat(dirname(temporary)).catch(unless('ENOENT'));
  return found?.ino !== folder;
}

/** Resumes after the step that named the file. */
async function completeNamed(
  entry: JournalEntry,
  { inode, subtitles = [], ...finished }: NonNullable<JournalEntry['finished']>,
  journal: Journal,
  onInfoFailure: (error: Error) => void,
): Promise<void> {
  const parts = partsOf(entry, valuesOf(entry, finished.finishTime));
  const filePath = await findRenamed(inode, await placeBelow(entry.root, parts.file));
  if (filePath === undefined) return await journal.remove(entry);
  const file = await named(entry, finished, parts.file, filePath, subtitles);
  await appendInfoOnce(await placeBelow(entry.root, parts.info), file).catch(onInfoFailure);
  await journal.hand(file);
}
