import { open, type FileHandle } from 'node:fs/promises';
import type { ReadAt } from '../containers/file-muxer.ts';
import { mendMp4, type Mended } from '../containers/fmp4/mend.ts';
import { wholeTs } from '../containers/mpegts/whole.ts';
import { wholeWebm } from '../containers/webm/whole.ts';
import { writeAll } from '../lib/files/write-all.ts';
import { wholeVtt } from './whole-vtt.ts';

/** Enough for the tables of a usual fragment. */
const READ_BYTES = 16 * 1024;

/**
 * Completes an interrupted file: cuts off an incomplete end, and gives an MP4 its index.
 * @param extension extension of its final name, in lower case
 * @returns its bytes; 0 when it has no media
 * @throws errors of the system
 */
export async function mendFile(path: string, extension: string): Promise<number> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    const { whole, tail, patches } = await mended(reader(file), size, extension);
    await file.truncate(whole);
    const end = Buffer.concat(tail);
    try {
      await writeAll(file, end, whole);
      await file.sync();
    } catch {
      // where there is no room for an index, the file is playable without it
      await file.truncate(whole);
      await file.sync();
      return whole;
    }
    for (const { at, data } of patches) await writeAll(file, data, at);
    await file.sync();
    return whole + end.length;
  } finally {
    await file.close();
  }
}

/**
 * Reads ahead: most reads directly follow the one before, as the head of a fragment, its tables, the head of its
 * data.
 */
function reader(file: FileHandle): ReadAt {
  let from = 0;
  let known: Buffer = Buffer.alloc(0);
  return async (at, bytes) => {
    if (at < from || at + bytes > from + known.length) {
      const room = Buffer.allocUnsafe(Math.max(bytes, READ_BYTES));
      const { bytesRead } = await file.read(room, 0, room.length, at);
      from = at;
      known = room.subarray(0, bytesRead);
    }
    return known.subarray(at - from, at - from + bytes);
  };
}

async function mended(read: ReadAt, size: number, extension: string): Promise<Mended> {
  if (extension === '.mp4') return mendMp4(read, size);
  return { whole: await wholeOf(read, size, extension), tail: [], patches: [] };
}

function wholeOf(read: ReadAt, size: number, extension: string): Promise<number> {
  if (extension === '.vtt') return wholeVtt(read, size);
  return extension === '.webm' ? wholeWebm(read, size) : wholeTs(read, size);
}
