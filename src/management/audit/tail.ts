import type { FileHandle } from 'node:fs/promises';
import { formerOf, readLine, type AuditLine } from './chain.ts';

/** More than the two longest lines. */
const WINDOW = 128 * 1024;

/** How the file of an audit log ends. */
export interface Tail {
  /** The last whole line; undefined when there is none that can be read. */
  readonly last: AuditLine | undefined;
  /** MAC of the line that it follows; undefined when that is not known. */
  readonly follows: string | undefined;
  /** Bytes after the end of the last line: of a line that was cut off. */
  readonly torn: number;
  /** Its last line is whole, but for its end. */
  readonly isOpen: boolean;
}

/** Reads how a file ends. @param size in bytes */
export async function readTail(handle: FileHandle, size: number): Promise<Tail> {
  const from = Math.max(0, size - WINDOW);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
  const bytes = buffer.subarray(0, bytesRead);
  const end = bytes.lastIndexOf(0x0a) + 1;
  const rest = bytes.subarray(end);
  const open = readLine(rest.toString());
  const texts = bytes.subarray(0, end).toString().split('\n');
  // one that was cut off by an earlier crash may stand between
  const lines = [...texts.map(readLine), open].filter((line) => line !== undefined);
  const [before, last] = [lines.at(-2), lines.at(-1)];
  const follows = last && (formerOf(last) ?? before?.mac);
  return { last, follows, torn: open === undefined ? rest.length : 0, isOpen: open !== undefined };
}
