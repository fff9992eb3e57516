import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** @throws Error the file cannot be read, is no regular file, or is larger than `mostBytes` */
export async function readSmallFile(path: string, mostBytes: number): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.size > mostBytes) throw new Error(`larger than ${mostBytes} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}
