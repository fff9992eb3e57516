import { lstat, readdir, readFile, realpath, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { unless } from '../../lib/files/unless.ts';
import type { DumpFile } from './entry.ts';

const PLAYLIST = '.m3u8';
/** Limit of a playlist that is read. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Why a dump may not be deleted. */
export class DumpChangedError extends Error {
  override readonly name = 'DumpChangedError';
}

/** Describes the playlists and the info file of a dump that has ended. Missing ones are left out. @throws errors of the system */
export async function describeFiles(paths: readonly string[]): Promise<DumpFile[]> {
  const found = await Promise.all(paths.map((path) => lstat(path).catch(unless('ENOENT'))));
  return paths.flatMap((path, at) => {
    const { ino: inode, size } = found[at] ?? {};
    return inode === undefined || size === undefined ? [] : [{ path, inode, size }];
  });
}

/**
 * Deletes the files of a dump: media that its own media playlists name, and no other playlist of the folder; its playlists, its
 * info file, and the folder if nothing else is in it. Master playlists that another dump has replaced stay. Can be repeated.
 * @param folder with links resolved
 * @throws DumpChangedError: nothing is touched then; errors of the system
 */
export async function removeDump(
  folder: string,
  lists: readonly DumpFile[],
  others: readonly DumpFile[],
): Promise<void> {
  const place = await realpath(folder).catch(unless('ENOENT'));
  if (place === undefined) {
    if ((await stat(dirname(folder)).catch(unless('ENOENT'))) === undefined)
      throw new DumpChangedError(`${dirname(folder)} is not there: its disk may not be mounted`);
    return;
  }
  if (place !== folder) throw new DumpChangedError(`a link leads elsewhere since it was written: ${folder}`);
  const media = new Set<string>();
  const own: string[] = [];
  for (const list of lists) {
    const state = await stateOf(list);
    if (state === 'other')
      throw new DumpChangedError(`a playlist was changed, as by a later dump that goes on with it: ${list.path}`);
    if (state === 'gone') continue;
    own.push(list.path);
    for (const name of namesIn(await readFile(list.path, 'utf8'))) media.add(name);
  }
  for (const name of await namesOfOthers(folder, own)) media.delete(name);
  const paths: string[] = [];
  for (const name of media) {
    const path = join(folder, name);
    const found = await lstat(path).catch(unless('ENOENT'));
    if (found?.isFile() === false) throw new DumpChangedError(`it is no regular file: ${path}`);
    if (found !== undefined) paths.push(path);
  }
  for (const other of others) if ((await stateOf(other)) === 'same') paths.push(other.path);
  for (const path of [...paths, ...own]) await unlink(path).catch(unless('ENOENT'));
  await rmdir(folder).catch(unless('ENOTEMPTY'));
}

async function stateOf({ path, inode, size }: DumpFile): Promise<'gone' | 'same' | 'other'> {
  const found = await lstat(path).catch(unless('ENOENT'));
  if (found === undefined) return 'gone';
  return found.isFile() && found.ino === inode && found.size === size ? 'same' : 'other';
}

/** Files that a playlist names, in its own folder. */
function namesIn(text: string): string[] {
  const names = Array.from(
    text.matchAll(/^([^#\r\n][^\r\n]*)|URI="([^"\r\n]*)"/gm),
    ([, line, uri]) => line ?? uri ?? '',
  );
  return names.filter((name) => name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name));
}

async function namesOfOthers(folder: string, own: readonly string[]): Promise<Set<string>> {
  const names = new Set<string>();
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!name.endsWith(PLAYLIST) || own.includes(path)) continue;
    const found = await lstat(path);
    if (!found.isFile() || found.size > MAX_BYTES) continue;
    for (const named of namesIn(await readFile(path, 'utf8'))) names.add(named);
  }
  return names;
}
