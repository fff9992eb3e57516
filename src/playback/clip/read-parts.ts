import { readInto, type ByteSource } from '../byte-source.ts';
import { PIECE_BYTES, pieceMemory } from '../piece-memory.ts';

/** Bytes of a file, from `from` on and before `to`. */
export interface ByteSpan {
  readonly source: ByteSource;
  readonly from: number;
  readonly to: number;
}

/**
 * Reads parts of a body one after another, in pieces of 256 KiB, each while the one before is sent: two are held for a slow reader.
 * @throws SourceError
 */
export async function* readParts(parts: Iterable<Buffer | ByteSpan>, signal?: AbortSignal): AsyncGenerator<Buffer> {
  const pieces = piecesOf(parts);
  let next = begin(pieces, signal);
  while (next !== undefined) {
    const piece = await next;
    next = begin(pieces, signal);
    yield piece;
  }
}

function begin(pieces: Iterator<(Buffer | ByteSpan)[]>, signal?: AbortSignal): Promise<Buffer> | undefined {
  const { value, done } = pieces.next();
  if (done === true) return undefined;
  const reading = read(value, signal);
  // it is thrown when the piece is asked for
  reading.catch(() => undefined);
  return reading;
}

async function read(parts: readonly (Buffer | ByteSpan)[], signal: AbortSignal | undefined): Promise<Buffer> {
  const piece = pieceMemory.take();
  const reads: Promise<void>[] = [];
  let at = 0;
  for (const part of parts) {
    if (Buffer.isBuffer(part)) at += part.copy(piece, at);
    else reads.push(readInto(part.source, part.from, piece.subarray(at, (at += part.to - part.from)), signal));
  }
  await Promise.all(reads);
  return piece.subarray(0, at);
}

/** Cuts parts, and puts small ones together. */
function* piecesOf(parts: Iterable<Buffer | ByteSpan>): Generator<(Buffer | ByteSpan)[]> {
  let piece: (Buffer | ByteSpan)[] = [];
  let room = PIECE_BYTES;
  for (const part of parts) {
    const bytes = Buffer.isBuffer(part) ? part.length : part.to - part.from;
    for (let at = 0; at < bytes;) {
      const end = Math.min(bytes, at + room);
      piece.push(
        Buffer.isBuffer(part)
          ? part.subarray(at, end)
          : { source: part.source, from: part.from + at, to: part.from + end },
      );
      room -= end - at;
      at = end;
      if (room > 0) continue;
      yield piece;
      piece = [];
      room = PIECE_BYTES;
    }
  }
  if (piece.length > 0) yield piece;
}
