import type { ReadAt } from '../file-muxer.ts';
import { ID } from './ebml.ts';

const HEAD_BYTES = 16;

/** Bytes up to the end of the last whole cluster of a `WebmFile`, or of its cues; 0 when there is none. */
export async function wholeWebm(read: ReadAt, size: number): Promise<number> {
  let whole = 0;
  for (let at = 0; at < size;) {
    const head = await read(at, HEAD_BYTES);
    const element = head.length < HEAD_BYTES && head.length < size - at ? undefined : elementAt(head);
    if (element === undefined) break;
    // the content of a segment follows its head
    const end = at + element.head + (element.id === ID.Segment ? 0 : element.size);
    if (end > size) break;
    at = end;
    if (element.id === ID.Cluster || whole > 0) whole = at;
  }
  return whole;
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
