import { isKlv } from '../../codecs/klv.ts';
import { STREAM_ID } from './stream-types.ts';

const CELL_HEADER_BYTES = 5;
const ID3_MAGIC = 'ID3';
const ID3_HEADER_BYTES = 10;

/**
 * Returns the ID3 tags in a PES packet of timed metadata, plain or in metadata access unit cells (ISO/IEC 13818-1
 * 2.12.4); undefined for anything else.
 */
export function id3Of(streamId: number, payload: Buffer): Buffer | undefined {
  const tags = contentOf(streamId, payload);
  return tags.length >= ID3_HEADER_BYTES && tags.toString('latin1', 0, 3) === ID3_MAGIC ? tags : undefined;
}

/**
 * Returns the KLV items in a PES packet, plain (asynchronous) or in metadata access unit cells (synchronous; MISB ST 1402);
 * undefined for anything else.
 */
export function klvOf(streamId: number, payload: Buffer): Buffer | undefined {
  const items = contentOf(streamId, payload);
  return isKlv(items) ? items : undefined;
}

function contentOf(streamId: number, payload: Buffer): Buffer {
  return streamId === STREAM_ID.metadata ? cellsOf(payload) : payload;
}

function cellsOf(payload: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at + CELL_HEADER_BYTES <= payload.length;) {
    const start = at + CELL_HEADER_BYTES;
    at = start + payload.readUInt16BE(start - 2);
    parts.push(payload.subarray(start, at));
  }
  return Buffer.concat(parts);
}
