import type { ReadAt } from '../file-muxer.ts';
import { PACKET_BYTES } from './stream-types.ts';
import { isFilled, startsUnit } from './transport-packet.ts';

const BLOCK_BYTES = 1024 * PACKET_BYTES;

/**
 * Bytes up to the end of the last whole unit of a `TsMuxer`, as far as that can be known. Units follow each other, and
 * the last packet of a unit has padding, unless it is full by chance.
 */
export async function wholeTs(read: ReadAt, size: number): Promise<number> {
  let end = size - (size % PACKET_BYTES);
  if (end === 0 || isFilled(await read(end - PACKET_BYTES, PACKET_BYTES), 0)) return end;
  while (end > 0) {
    const from = Math.max(0, end - BLOCK_BYTES);
    const block = await read(from, end - from);
    for (let at = block.length - PACKET_BYTES; at >= 0; at -= PACKET_BYTES) if (startsUnit(block, at)) return from + at;
    end = from;
  }
  return 0;
}
