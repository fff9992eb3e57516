import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, lstat, open, readFile, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { localTime } from '../lib/local-time.ts';
import { xmlCharacters, xmlText } from '../lib/xml-text.ts';
import { withLock } from '../lib/files/lock-file.ts';
import { MAX_PART_BYTES, PathError, replaceFile } from '../lib/files/paths.ts';
import { writeAll } from '../lib/files/write-all.ts';
import { unless } from '../lib/files/unless.ts';

/** One file of a recording. */
export interface FileInfo {
  readonly transactionId: string;
  readonly id: string;
  readonly metadata?: string;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly filePath: string;
  readonly recordBytes: number;
  /** Duration in milliseconds. */
  readonly recordTime: number;
  readonly sequence: number;
  /** Whether the recording was stopped with it. */
  readonly lastSequence: boolean;
  /** Milliseconds since the epoch. */
  readonly createdTime: number;
  readonly startTime: number;
  readonly finishTime: number;
}

const HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<files>\n';
const END = '</files>';
/**
 * End of the root element, and the beginning of a processing instruction that contains only spaces: room for the next
 * entries. An entry is first written into the room, where it has no meaning, with another end after it. Then the old
 * end and beginning are overwritten with spaces in one write within a sector, so the document is complete at any
 * moment.
 */
const TURN = `${END}\n<?room `;
const ROOM_END = '?>\n';
/**
 * Least room that a file gets with its second entry, and when it is full. It grows with the file, so that this
 * becomes rare.
 */
const MIN_ROOM = 4096;
const MAX_ROOM = 256 * 1024;
const ROOM_SHARE = 1 / 4;
const SECTOR = 512;
/** Limit of a file from which an entry is removed: it is read whole. */
const MAX_REMOVAL_BYTES = 32 * 1024 * 1024;
const ENTRY = '  <file>\n';
const ENTRY_END = '  </file>\n';

/**
 * Adds an entry to an info file (docs/compatibility.md#recordings-pushes-dumps), which is complete at any moment.
 * Concurrent writers are allowed, also on another machine.
 * @throws PathError when another file has that name; errors of the system
 */
export async function appendInfo(path: string, info: FileInfo): Promise<void> {
  const entry = Buffer.from(entryOf(info));
  await withLock(lockOf(path), () => append(path, entry));
}

/** Lock beside the file, under its name as far as that leaves room for an extension. */
function lockOf(path: string): string {
  const name = `${basename(path)}.lock`;
  if (Buffer.byteLength(name) <= MAX_PART_BYTES) return `${path}.lock`;
  return join(dirname(path), `${createHash('sha256').update(name).digest('hex')}.lock`);
}

/** Adds an entry unless it exists, which is possible after a crash. Throws as `appendInfo`. */
export async function appendInfoOnce(path: string, info: FileInfo): Promise<void> {
  const text = await readFile(path, 'utf8').catch(unless('ENOENT'));
  if (text === undefined || !text.includes(pathElement(info.filePath))) await appendInfo(path, info);
}

/**
 * Removes the entry of a file, and an info file that has no other entry. Nothing happens without such an entry, or for a
 * file of more than 32 MiB.
 * @throws errors of the system
 */
export async function removeInfo(path: string, filePath: string): Promise<void> {
  await withLock(lockOf(path), async () => {
    const found = await lstat(path).catch(unless('ENOENT'));
    if (found?.isFile() !== true || found.size > MAX_REMOVAL_BYTES) return;
    const text = await readFile(path);
    const entries = text.subarray(0, Math.max(0, text.indexOf(END)));
    const named = entries.indexOf(pathElement(filePath));
    const begin = entries.lastIndexOf(ENTRY, named);
    const end = entries.indexOf(ENTRY_END, named) + ENTRY_END.length;
    if (named < 0 || begin < 0 || end < named) return;
    const before = text.subarray(0, begin);
    const after = text.subarray(end);
    const isLast = !before.includes(ENTRY) && !entries.subarray(end).includes(ENTRY);
    if (isLast) return await unlink(path);
    // TURN stays within a sector
    const rest = Buffer.concat([before, Buffer.alloc((end - begin) % SECTOR, ' '), after]);
    await replaceFile(path, async (temporary) => await write(temporary, 'wx', 0, rest));
  });
}

async function append(path: string, entry: Buffer): Promise<void> {
  const found = await lstat(path).catch(unless('ENOENT'));
  if (found === undefined) {
    const first = Buffer.concat([Buffer.from(HEAD), entry, Buffer.from(`${END}\n`)]);
    return await replaceFile(path, async (temporary) => await write(temporary, 'wx', 0, first));
  }
  if (!found.isFile()) throw new PathError(`the info file is no file: ${path}`);
  const file = await open(path, 'r+');
  let place: { readonly end: number; readonly room: number };
  try {
    place = await placeOf(file, found.size, path);
    const next = concluded(place.end + TURN.length, entry);
    if (next.length <= place.room) {
      await writeAll(file, next, place.end + TURN.length);
      await file.datasync();
      await writeAll(file, Buffer.from(`${' '.repeat(TURN.length - 1)}\n`), place.end);
      return await file.datasync();
    }
  } finally {
    await file.close();
  }
  const { end } = place;
  const next = concluded(end, entry);
  const room = Math.round(Math.min(MAX_ROOM, Math.max(MIN_ROOM, (end + next.length) * ROOM_SHARE)));
  const tail = Buffer.concat([next, Buffer.alloc(room, ' '), Buffer.from(ROOM_END)]);
  await replaceFile(path, async (temporary) => {
    await copyFile(path, temporary, constants.COPYFILE_FICLONE);
    await write(temporary, 'r+', end, tail);
  });
}

/** Position of the root's end, and the bytes of room after `TURN`. */
async function placeOf(file: FileHandle, size: number, path: string): Promise<{ end: number; room: number }> {
  const tail = Math.min(size, MAX_ROOM + 2 * SECTOR);
  const from = size - tail;
  const { buffer } = await file.read(Buffer.alloc(tail), 0, tail, from);
  // an end after it is in the room: a crash came before it took effect
  const end = buffer.indexOf(END);
  if (end < 0) throw new PathError(`the info file is another file: ${path}`);
  const hasRoom = buffer.indexOf(TURN, end) === end;
  const roomEnd = hasRoom ? buffer.indexOf(ROOM_END, end) : -1;
  return { end: from + end, room: roomEnd < 0 ? 0 : roomEnd - end - TURN.length };
}

/** @param at end of the file, where writing begins */
async function write(path: string, flags: 'wx' | 'r+', at: number, data: Buffer): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.truncate(at);
    await writeAll(file, data, at);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Entry for a position in the file, and `TURN` within one sector. */
function concluded(at: number, entry: Buffer): Buffer {
  const left = SECTOR - ((at + entry.length) % SECTOR);
  const pad = left < TURN.length ? left : 0;
  return Buffer.concat([entry, Buffer.alloc(pad, ' '), Buffer.from(TURN)]);
}

function entryOf({ filePath, createdTime, startTime, finishTime, ...rest }: FileInfo): string {
  const lines = [
    element('transactionId', rest.transactionId),
    element('id', rest.id),
    ...(rest.metadata === undefined ? [] : [element('metadata', rest.metadata)]),
    element('vhost', rest.vhost),
    element('app', rest.app),
    element('stream', rest.stream),
    pathElement(filePath),
    element('recordBytes', rest.recordBytes),
    element('recordTime', rest.recordTime),
    element('sequence', rest.sequence),
    element('lastSequence', rest.lastSequence),
    element('createdTime', localTime(createdTime)),
    element('startTime', localTime(startTime)),
    element('finishTime', localTime(finishTime)),
  ];
  return `${ENTRY}${lines.map((line) => `    ${line}\n`).join('')}${ENTRY_END}`;
}

function element(name: string, value: string | number | boolean): string {
  return `<${name}>${xmlText(String(value))}</${name}>`;
}

/** Path in CDATA, cut where it would end the section, the room or the root. */
function pathElement(path: string): string {
  const text = xmlCharacters(path).replaceAll(/(?<=\]\])>|(?<=\?)>|(?<=<)\//g, ']]><![CDATA[$&');
  return `<filePath><![CDATA[${text}]]></filePath>`;
}
