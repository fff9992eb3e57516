import { lstat, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { unless } from '../../../lib/files/unless.ts';
import { removeEmpty, RunFiles } from './run-files.ts';
import { folderName, RUN, STATE, type StreamNames } from './stream-folder.ts';

/** Streams of an application whose segments are below a folder. */
export interface SweptPlace extends Omit<StreamNames, 'stream'> {
  /** Absolute: TempStoragePath. */
  readonly root: string;
  /** Age of runs that are removed: the time since their last change, in milliseconds. */
  readonly olderThanMs: number;
}

/**
 * Removes the runs of all streams of an application that did not change for a time, and then the folders that are empty. Links are not
 * followed, and files of others stay.
 * @param openRun finds the run of a stream that is packaged here, by the name of its folder: that one stays
 * @returns whether no stream of it has left anything
 * @throws errors of the system
 */
export async function sweepRuns(
  { root, vhost, app, kind, olderThanMs }: SweptPlace,
  openRun: (stream: string) => string | undefined,
): Promise<boolean> {
  const host = join(root, folderName(vhost));
  const application = join(host, folderName(app));
  // such as a disk that is not mounted
  if ((await stat(root).catch(unless('ENOENT'))) === undefined) return false;
  if (!(await isFolder(host))) return true;
  let isEmpty = true;
  for (const stream of await foldersIn(application)) {
    const folder = join(application, stream, folderName(kind));
    const open = openRun(stream);
    for (const key of await foldersIn(folder)) {
      const run = new RunFiles(join(folder, key));
      const changedAt = RUN.test(key) && key !== open ? await run.changedAt() : undefined;
      if (changedAt !== undefined && Date.now() - changedAt > olderThanMs) await run.removeAll();
    }
    const isLeft = open !== undefined || (await foldersIn(folder)).length > 0;
    isEmpty &&= !isLeft;
    if (isLeft || !(await isFolder(folder))) continue;
    await unlink(join(folder, STATE)).catch(unless('ENOENT'));
    for (const left of [folder, join(application, stream)]) await removeEmpty(left);
  }
  if (isEmpty && (await isFolder(application))) for (const left of [application, host]) await removeEmpty(left);
  return isEmpty;
}

/** Names of folders in a folder, links left out; none if it does not exist, or is a link itself. */
async function foldersIn(folder: string): Promise<string[]> {
  if (!(await isFolder(folder))) return [];
  const entries = (await readdir(folder, { withFileTypes: true }).catch(unless('ENOENT'))) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(unless('ENOENT')))?.isDirectory() === true;
}
