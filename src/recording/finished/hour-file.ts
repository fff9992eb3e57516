import { open, unlink, type FileHandle } from 'node:fs/promises';
import { unless } from '../../lib/files/unless.ts';
import { writeAll } from '../../lib/files/write-all.ts';
import { ID_LENGTH, isId } from './entry.ts';

const CHUNK = 64 * 1024;
/** Limit of a line; longer ones are damaged. */
const MAX_LINE = 64 * 1024;
const NEWLINE = 10;
/** First byte of a line that no longer counts. */
const DEAD = '#';

/** A line: an id, a space and a document; valid until the call returns that it is given to. */
export interface Line {
  readonly id: string;
  /** Position in the file. */
  readonly at: number;
  /** Whether its document may have all of these pieces: cheaper than to read it. */
  readonly has: (pieces: readonly Buffer[]) => boolean;
  readonly text: () => string;
}

/** Counts of the lines of a file. */
export interface Reading {
  readonly lines: number;
  /** Lines that have no id: parts of lines from a crash, or foreign text. */
  readonly damaged: number;
}

/**
 * Reads a file in pieces. A last line without its end is being written, and left out; a missing file has no lines.
 * @throws errors of the system
 */
export async function readLines(path: string, onLine: (line: Line) => void): Promise<Reading> {
  const file = await open(path, 'r').catch(unless('ENOENT'));
  if (file === undefined) return { lines: 0, damaged: 0 };
  let lines = 0;
  let damaged = 0;
  const take = (line: Buffer, at: number): void => {
    lines++;
    if (line.length === 0 || line[0] === DEAD.charCodeAt(0)) return;
    const id = line.toString('latin1', 0, ID_LENGTH);
    if (line.length > MAX_LINE || !isId(id)) damaged++;
    else {
      const has = (pieces: readonly Buffer[]): boolean => pieces.every((piece) => line.includes(piece));
      onLine({ id, at, has, text: () => line.toString('utf8', ID_LENGTH + 1) });
    }
  };
  try {
    /** Begins with `kept` bytes of a line whose end is not read yet. One buffer for all reads: to page in new ones takes longer than to read. */
    const piece = Buffer.allocUnsafeSlow(MAX_LINE + CHUNK);
    let kept = 0;
    /** Whether the beginning of the line was too long, and is not kept. */
    let isCut = false;
    for (let at = 0; ;) {
      const { bytesRead } = await file.read(piece, kept, CHUNK, at);
      if (bytesRead === 0) return { lines, damaged };
      const have = kept + bytesRead;
      const begin = at - kept;
      let from = 0;
      for (let end = piece.indexOf(NEWLINE); end >= 0 && end < have; end = piece.indexOf(NEWLINE, from)) {
        if (isCut) damaged++;
        else take(piece.subarray(from, end), begin + from);
        isCut = false;
        from = end + 1;
      }
      at += bytesRead;
      piece.copyWithin(0, from, have);
      kept = have - from;
      if (kept <= MAX_LINE) continue;
      isCut = true;
      kept = 0;
    }
  } finally {
    await file.close();
  }
}

/** Appends a line, and ends an incomplete one of a crash. It is on the disk afterwards. @throws errors of the system */
export async function appendLine(path: string, id: string, document: string): Promise<void> {
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    const begin = size === 0 || (await endsLine(file, size)) ? '' : '\n';
    await writeAll(file, Buffer.from(`${begin}${id} ${document}\n`), size);
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function endsLine(file: FileHandle, size: number): Promise<boolean> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === NEWLINE;
}

/** Makes lines count no longer, with one byte each. @throws errors of the system */
export async function killLines(path: string, places: readonly number[]): Promise<void> {
  const file = await open(path, 'r+');
  try {
    for (const at of places) await writeAll(file, Buffer.from(DEAD), at);
  } finally {
    await file.close();
  }
}

/** Removes a file without lines that count. @throws errors of the system */
export async function removeFile(path: string): Promise<void> {
  await unlink(path).catch(unless('ENOENT'));
}
