import { lstat, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { KilnError, kilnError } from '../../errors.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { KeyedMutex } from '../../lib/files/keyed-mutex.ts';
import { PathError, placeBelow } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';
import type { Logger } from '../../log/log.ts';
import type { Deliveries } from '../delivery/deliveries.ts';
import { removeInfo } from '../info-file.ts';
import { containerOf } from '../container.ts';
import type { FinishedFile, Journal } from '../journal.ts';
import { DumpChangedError, removeDump } from './dump-files.ts';
import type { DerivedFiles } from './derived-files.ts';
import { idOf, storedOf, temporaryOf, type Entry, type Upload } from './entry.ts';
import type { ApplicationNames, Page, Query, Recorded, RecordedIndex } from './recorded-index.ts';

export interface RecordingsOptions {
  readonly index: RecordedIndex;
  readonly derived: DerivedFiles;
  readonly journal: Pick<Journal, 'has'>;
  readonly deliveries: Pick<Deliveries, 'isUploading'>;
  /** Whether a dump writes to a folder. */
  readonly isDumping: (folder: string) => boolean;
  readonly log: Logger;
}

/** A file that is finished, and in the index. */
export interface Added extends ApplicationNames {
  readonly id: string;
  readonly container: string;
}

const MAX_STAYS = 10_000;

/** The finished files of this node. */
export class Recordings {
  /** Data derived from the files, which goes with them. */
  readonly derived: DerivedFiles;
  readonly #options: RecordingsOptions;
  /** By id. */
  readonly #mutex = new KeyedMutex();
  /** Ids of files that are due, and may not be deleted. */
  readonly #stays = new BoundedMap<string, true>(MAX_STAYS);
  readonly #listeners = new Set<(added: Added) => void>();

  constructor(options: RecordingsOptions) {
    this.#options = options;
    this.derived = options.derived;
  }

  /** Calls a function for each file that is added. @returns an undo */
  onAdded(listener: (added: Added) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Adds a file that has its name; nothing for one that is gone. Idempotent. @throws errors of the system */
  async add(file: FinishedFile): Promise<void> {
    await this.#options.index.add(file);
    const { vhost, app, startTime, temporary, filePath } = file;
    const added = { vhost, app, id: idOf(startTime, temporary), container: containerOf(filePath).name };
    for (const listener of this.#listeners) listener(added);
  }

  /** Notes the end of an upload; nothing for an unknown id. @throws errors of the system */
  async note(application: ApplicationNames, id: string, upload: Upload, isLocal: boolean): Promise<void> {
    await this.#options.index.note(application, id, upload, isLocal);
    if (!isLocal) await this.derived.remove(id);
  }

  /** @throws errors of the system */
  page(application: ApplicationNames, query: Query): Promise<Page> {
    return this.#options.index.page(application, query);
  }

  /** @returns undefined for an unknown id; @throws errors of the system */
  find(application: ApplicationNames, id: string): Promise<Entry | undefined> {
    return this.#options.index.find(application, id);
  }

  /**
   * Deletes a file, its entry in its info file, what is derived from it, and its entry in the index, in this order: what fails can be repeated.
   * @returns false for an unknown id
   * @throws recordingBusy, recordingChanged: nothing is touched then; errors of the system
   */
  remove(application: ApplicationNames, id: string): Promise<boolean> {
    return this.#mutex.run(id, async () => {
      const { index, journal, log } = this.#options;
      // before it is in the index
      if (await journal.has(temporaryOf(id))) throw kilnError('recordingBusy', id, 'written');
      const entry = await index.find(application, id);
      if (entry === undefined) return false;
      await this.#demandFree(id, false);
      await this.#removeFiles(entry, id);
      await index.remove(application, [id]);
      log.info({ event: 'record.deleted', file: entry.filePath, bytes: entry.size }, 'a recording was deleted');
      return true;
    });
  }

  /**
   * Deletes files that are due. Those that may not be deleted stay; each is logged once. What is deleted for want of space stays in the
   * index if it is in a bucket.
   * @param force deletes those that wait for their upload, too
   * @throws errors of the system
   */
  async removeAll(
    application: ApplicationNames,
    due: readonly Recorded[],
    reason: 'age' | 'space',
    force: boolean,
  ): Promise<void> {
    const { index, log } = this.#options;
    const gone: string[] = [];
    try {
      for (const { id, entry } of due) {
        const { filePath: file, size: bytes } = entry;
        try {
          await this.#demandFree(id, force);
          await this.#removeFiles(entry, id);
        } catch (error) {
          if (!(error instanceof KilnError)) throw error;
          this.#keep(id, error.message);
          continue;
        }
        const stored = reason === 'space' ? entry.upload : undefined;
        if (stored !== undefined && storedOf({ ...entry, isLocal: false }) !== undefined)
          await this.note(application, id, stored, false);
        else gone.push(id);
        log.info({ event: 'record.deleted', file, bytes, reason }, 'a recording was deleted');
      }
    } finally {
      await index.remove(application, gone);
    }
  }

  /** @throws recordingBusy, recordingChanged: nothing is touched then; errors of the system */
  async #removeFiles(entry: Entry, id: string): Promise<void> {
    const { root, dump } = entry;
    if (dump === undefined) {
      await removeFiles(entry, id);
      return await this.derived.remove(id);
    }
    if (this.#options.isDumping(root)) throw kilnError('recordingBusy', id, 'written');
    try {
      await removeDump(root, dump.lists, dump.others);
    } catch (error) {
      throw error instanceof DumpChangedError ? kilnError('recordingChanged', id, error.message) : error;
    }
  }

  /** @throws recordingBusy */
  async #demandFree(id: string, force: boolean): Promise<void> {
    const { journal, deliveries } = this.#options;
    if (await journal.has(temporaryOf(id))) throw kilnError('recordingBusy', id, 'written');
    if (!force && (await deliveries.isUploading(temporaryOf(id))))
      throw kilnError('recordingBusy', id, 'to be uploaded');
  }

  #keep(id: string, reason: string): void {
    if (this.#stays.has(id)) return;
    this.#stays.set(id, true);
    this.#options.log.warn({ event: 'record.kept', reason }, 'a recording that is due could not be deleted');
  }
}

async function removeFiles(entry: Entry, id: string): Promise<void> {
  const { root, path, infoPath, filePath, inode, size, subtitles = [] } = entry;
  const refuse = (reason: string) => kilnError('recordingChanged', id, reason);
  if ((await stat(root).catch(unless('ENOENT'))) === undefined)
    throw refuse(`${root} is not there: its disk may not be mounted`);
  const [place, info] = await Promise.all([path, infoPath].map((one) => placeBelow(root, one.split('/'), false))).catch(
    (error: unknown) => {
      throw error instanceof PathError ? refuse(error.message) : error;
    },
  );
  if (place !== filePath || info === undefined)
    throw refuse(`a link leads elsewhere since it was recorded: ${filePath}`);
  const [found, foundInfo] = await Promise.all([place, info].map((one) => lstat(one).catch(unless('ENOENT'))));
  if (found?.isFile() === false) throw refuse(`it is no regular file any more: ${place}`);
  if (found !== undefined && found.ino !== inode) throw refuse(`another file has its name: ${place}`);
  if (found !== undefined && found.size !== size)
    throw refuse(`its size has changed from ${size} to ${found.size} bytes: ${place}`);
  if (foundInfo?.isFile() === false) throw refuse(`its info file is no regular file: ${info}`);
  for (const one of subtitles) {
    const file = join(dirname(place), one.name);
    // another file that has got the name stays
    if ((await lstat(file).catch(unless('ENOENT')))?.ino === one.inode) await unlink(file);
  }
  if (found !== undefined) await unlink(place);
  if (foundInfo !== undefined) await removeInfo(info, filePath);
}
