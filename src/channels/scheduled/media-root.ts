import { constants } from 'node:fs';
import { open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { MediaError } from './media-error.ts';
import { readFileUrl } from './media-url.ts';

/**
 * Opens the file that a `file://` URL names below a folder. Links may point to other files below it; devices and
 * pipes are never opened. The descriptor stays the checked file, whatever replaces it under that name.
 * @param root MediaRootDir; empty where none is configured
 * @throws MediaError
 */
export async function openBelow(root: string, url: string): Promise<FileHandle> {
  const path = readFileUrl(url);
  if (path === undefined) throw new MediaError('the URL does not name a file below MediaRootDir');
  if (root === '') throw new MediaError('no MediaRootDir is configured for files of channels');
  try {
    const folder = await realpath(root);
    const file = await realpath(join(folder, path));
    if (!isBelow(file, folder)) throw new MediaError('the file is outside MediaRootDir');
    // opening a device may already have effects
    if (!(await stat(file)).isFile()) throw new MediaError('it is not a regular file');
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    let isRight = false;
    try {
      isRight = (await handle.stat()).isFile() && isBelow(await readlink(`/proc/self/fd/${handle.fd}`), folder);
    } finally {
      if (!isRight) await handle.close();
    }
    if (isRight) return handle;
    throw new MediaError('another file took its place while it was opened');
  } catch (error) {
    if (error instanceof MediaError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new MediaError(code === 'ENOENT' ? 'the file does not exist' : message);
  }
}

function isBelow(file: string, folder: string): boolean {
  return file.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
