import type { FileHandle } from 'node:fs/promises';
import { formerOf, readLine, type AuditLine } from './chain.ts';

/** Longer than any two lines. */
const WINDOW = 128 * 1024;

export interface Tail {
  /** Last whole line; undefined when none can be read. */
  readonly last: AuditLine | undefined;
  /** MAC of the line before it; undefined when that is not known. */
  readonly follows: string | undefined;
  /** Bytes of a line that was cut off, after the last line end. */
  readonly torn: number;
  /** Whether the last line is whole, except for its line end. */
  readonly isOpen: boolean;
}

export async function readTail(handle: FileHandle, size: number): Promise<Tail> {
  const from = Math.max(0, size - WINDOW);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
  const bytes = buffer.subarray(0, bytesRead);
  const end = bytes.lastIndexOf(0x0a) + 1;
  const rest = bytes.subarray(end);
  const open = readLine(rest.toString());
  const texts = bytes.subarray(0, end).toString().split('\n');
  // a line that was cut off by an earlier crash may stand between
  const lines = [...texts.map(readLine), open].filter((line) => line !== undefined);
  const [before, last] = [lines.at(-2), lines.at(-1)];
  const follows = last && (formerOf(last) ?? before?.mac);
  return { last, follows, torn: open === undefined ? rest.length : 0, isOpen: open !== undefined };
}
