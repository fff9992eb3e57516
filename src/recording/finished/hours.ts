import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files/paths.ts';
import { unless } from '../../lib/files/unless.ts';
import { writeAll } from '../../lib/files/write-all.ts';

const EXTENSION = '.index';
const HOUR = /^\d{8}T\d{2}\.index$/;
/** File with the longest time from the start of a file to its end, in milliseconds. */
const LONGEST = 'longest';

/** Hours of an application that have a file, in order. @param folder of its index @throws errors of the system */
export async function hoursOf(folder: string): Promise<string[]> {
  const names = (await readdir(folder).catch(unless('ENOENT'))) ?? [];
  return names
    .filter((name) => HOUR.test(name))
    .map((name) => name.slice(0, -EXTENSION.length))
    .sort();
}

/** File of an hour. */
export function hourPath(folder: string, hour: string): string {
  return join(folder, `${hour}${EXTENSION}`);
}

/**
 * Longest time from the start of a file of an application to its end, in milliseconds. Infinite where it is not known: a span may then
 * begin in any file.
 * @throws errors of the system
 */
export async function longestOf(folder: string): Promise<number> {
  const text = await readFile(join(folder, LONGEST), 'utf8').catch(unless('ENOENT'));
  return text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : Infinity;
}

/** Notes the time of a file if it is the longest one, before the file is in the index. @throws errors of the system */
export async function lengthen(folder: string, time: number): Promise<void> {
  const known = await longestOf(folder);
  if (known !== Infinity && time <= known) return;
  // of a damaged file nothing is known
  const next = known === Infinity && (await hoursOf(folder)).length > 0 ? Number.MAX_SAFE_INTEGER : time;
  await replaceFile(join(folder, LONGEST), async (temporary) => {
    const file = await open(temporary, 'wx');
    try {
      await writeAll(file, Buffer.from(String(Math.ceil(Math.max(0, next)))), 0);
      await file.datasync();
    } finally {
      await file.close();
    }
  });
}
