import { open, stat, unlink, type FileHandle } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Logger } from '../../log.ts';
import { finishFile } from './finish.ts';
import type { Journal, JournalEntry } from './journal.ts';

const TS_PACKET = 188;
const HEAD_BYTES = 16;
const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;

/** Finishes the files that this node was writing when it was killed, as far as they were written. */
export async function finishLeftovers(journal: Journal, log: Logger): Promise<void> {
  for (const entry of await journal.list()) {
    try {
      await finishLeftover(entry, log);
    } catch (error) {
      const { temporary } = entry;
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ file: temporary, reason }, 'a recording that was interrupted could not be finished: its file stays');
    }
    await journal.remove(entry);
  }
}

async function finishLeftover(entry: JournalEntry, log: Logger): Promise<void> {
  const { temporary, sequence } = entry;
  const found = await stat(temporary).catch(() => undefined);
  if (found === undefined) return;
  // it has its name already
  if (found.nlink > 1) return await unlink(temporary);
  const size = await cutToWhole(temporary, extname(entry.file).toLowerCase());
  if (size === 0) return await unlink(temporary);
  const finishTime = Math.max(entry.startTime, Math.round(found.mtimeMs));
  const finished = { recordBytes: size, recordTime: finishTime - entry.startTime, lastSequence: false, finishTime };
  const { file } = await finishFile(entry, finished, (error) =>
    log.warn({ reason: error.message }, 'the info file of a recording could not be written'),
  );
  log.info({ event: 'record.finished', file, sequence, bytes: size }, 'a recording that was interrupted is finished');
}

/** @returns bytes that are left; 0 when there is no media */
async function cutToWhole(path: string, extension: string): Promise<number> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    const whole =
      extension === '.mp4'
        ? await wholeMp4(file, size)
        : extension === '.webm'
          ? await wholeWebm(file, size)
          : size - (size % TS_PACKET);
    await file.truncate(whole);
    await file.sync();
    return whole;
  } finally {
    await file.close();
  }
}

/** To the end of the last fragment whose data are all there, or of the index. */
async function wholeMp4(file: FileHandle, size: number): Promise<number> {
  let whole = 0;
  for (let at = 0; at < size;) {
    const head = await headAt(file, at);
    if (head.length < 8) break;
    const short = head.readUInt32BE(0);
    const bytes = short === 1 && head.length === HEAD_BYTES ? Number(head.readBigUInt64BE(8)) : short;
    const type = head.toString('latin1', 4, 8);
    if (bytes < 8 || at + bytes > size) break;
    at += bytes;
    if (type === 'mdat' || (type === 'moov' && whole > 0)) whole = at;
  }
  return whole;
}

/** To the end of the last cluster, or of the cues. */
async function wholeWebm(file: FileHandle, size: number): Promise<number> {
  let whole = 0;
  for (let at = 0; at < size;) {
    const head = await headAt(file, at);
    const element = head.length < HEAD_BYTES && head.length < size - at ? undefined : elementAt(head);
    if (element === undefined) break;
    // what is in a segment follows its head
    const end = at + element.head + (element.id === SEGMENT ? 0 : element.size);
    if (end > size) break;
    at = end;
    if (element.id === CLUSTER || whole > 0) whole = at;
  }
  return whole;
}

async function headAt(file: FileHandle, at: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, at);
  return buffer.subarray(0, bytesRead);
}

/** Id and size of an EBML element (RFC 8794, 5 and 6). */
function elementAt(head: Buffer): { readonly id: number; readonly size: number; readonly head: number } | undefined {
  const idBytes = Math.clz32(head[0] ?? 0) - 23;
  if (idBytes > 4 || head.length <= idBytes) return undefined;
  const first = head[idBytes] as number;
  const sizeBytes = Math.clz32(first) - 23;
  if (sizeBytes > 8 || head.length < idBytes + sizeBytes) return undefined;
  let size = first & (0xff >> sizeBytes);
  for (let i = 1; i < sizeBytes; i++) size = size * 256 + (head[idBytes + i] as number);
  return { id: head.readUIntBE(0, idBytes), size, head: idBytes + sizeBytes };
}
