import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { dirname, extname, isAbsolute, join, sep } from 'node:path';
import { unless } from './unless.ts';

/** Maximum of a name on common file systems. */
export const MAX_PART_BYTES = 255;
const MAX_PATH_BYTES = 3072;
const MAX_SUFFIX = 10_000;
/** Error codes of file systems without hard links. */
const NO_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Error for a path that leads out of the root, or that no file can have. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/**
 * Parts of a path below a root: a leading `/` means the root, and a path that begins with the root itself counts it once.
 * @param root absolute
 * @throws PathError
 */
export function partsBelow(root: string, path: string): string[] {
  const named = namesOf(path);
  const top = namesOf(root);
  const namesRoot = isAbsolute(path) && top.every((name, index) => named[index] === name);
  const parts = namesRoot ? named.slice(top.length) : named;
  if (parts.includes('..')) throw new PathError(`the path leads out of the root: ${path}`);
  if (parts.length === 0 || path.endsWith('/')) throw new PathError(`the path names no file: ${path}`);
  if (path.includes('\0')) throw new PathError('the path contains a NUL character');
  for (const part of parts) {
    if (Buffer.byteLength(part) > MAX_PART_BYTES) throw new PathError(`a name in the path is too long: ${part}`);
  }
  if (Buffer.byteLength(parts.join('/')) > MAX_PATH_BYTES) throw new PathError('the path is too long');
  return parts;
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

/**
 * Absolute path of a file whose folder exists afterwards. Links are followed as long as they stay below the root.
 * @param make false: missing folders are not created, nor their content checked
 * @throws PathError, errors of the system
 */
export async function placeBelow(root: string, parts: readonly string[], make = true): Promise<string> {
  if (make) await mkdir(root, { recursive: true });
  const top = await realpath(root).catch((error: unknown) => {
    if (!make && codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (top === undefined) return join(root, ...parts);
  let folder = top;
  for (const [index, part] of parts.slice(0, -1).entries()) {
    const next = join(folder, part);
    if (make) await mkdir(next).catch(unless('EEXIST'));
    const real = await realpath(next).catch((error: unknown) => {
      if (!make && codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    if (real === undefined) return join(folder, ...parts.slice(index));
    if (real !== top && !real.startsWith(top.endsWith(sep) ? top : top + sep))
      throw new PathError(`a link leads out of ${root}: ${next}`);
    folder = real;
  }
  return join(folder, parts.at(-1) as string);
}

/** Temporary name of a file that is being written, beside its final one. */
export function temporaryBeside(path: string): string {
  return join(dirname(path), `tmp_${randomBytes(16).toString('hex')}`);
}

/**
 * Creates or replaces a file atomically.
 * @param make writes the new file under a temporary name beside the final one; it is removed on failure
 * @throws what `make` throws; errors of the system
 */
export async function replaceFile(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = temporaryBeside(path);
  try {
    await make(temporary);
    await rename(temporary, path);
  } catch (error) {
    // the first error is the reason
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/**
 * Gives a file its final name, or the name with a suffix if it is in use: no file is ever replaced.
 * @returns the name that it got
 * @throws errors of the system
 */
export async function renameFree(from: string, to: string): Promise<string> {
  for (const path of namesLike(to)) if (await renameTo(from, path)) return path;
  throw new Error(`all names like ${to} are in use`);
}

export async function freeName(to: string): Promise<string> {
  for (const path of namesLike(to)) if ((await lstat(path).catch(unless('ENOENT'))) === undefined) return path;
  return to;
}

/** Name that `renameFree` gave to the file of an inode. @returns undefined if the file is gone */
export async function findRenamed(inode: number, to: string): Promise<string | undefined> {
  for (const path of namesLike(to)) {
    try {
      if ((await stat(path)).ino === inode) return path;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      break;
    }
  }
  return undefined;
}

/** Name with a number: `a.mp4` for 0, then `a_1.mp4` ... Long ones are cut to make room. */
export function withSuffix(path: string, suffix: number): string {
  if (suffix === 0) return path;
  const extension = extname(path);
  const end = `_${suffix}${extension}`;
  const at = path.lastIndexOf('/') + 1;
  const stem = path.slice(at, path.length - extension.length);
  return `${path.slice(0, at)}${cutName(stem, MAX_PART_BYTES - Buffer.byteLength(end))}${end}`;
}

/** First characters of a text that fit into a number of bytes. */
export function cutName(text: string, bytes: number): string {
  // as if the stream went on: leaves out an incomplete last character
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, Math.max(0, bytes)), {
    stream: true,
  });
}

function* namesLike(to: string): Generator<string> {
  for (let suffix = 0; suffix <= MAX_SUFFIX; suffix++) yield withSuffix(to, suffix);
}

async function renameTo(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    await unlink(from);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!NO_LINKS.includes(codeOf(error))) throw error;
  }
  try {
    await (await open(to, 'wx')).close();
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  await rename(from, to);
  return true;
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code;
}
