import { crc32 } from 'node:zlib';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { isCarried } from './forms.ts';
import type { TsPart, TsPieces } from './part.ts';

/** Begins an index, and has the version of its form, and of what `scanTs` finds: others are not read. */
const MAGIC = Buffer.from('Kiln TS index 1\n');
const WORD_BYTES = 4;
const PLACE_BYTES = Float64Array.BYTES_PER_ELEMENT;
/** Bytes of the three places and the flag of a piece. */
const PIECE_BYTES = 3 * PLACE_BYTES + 1;

/** Bytes of the longest index, of as many samples as a file may have. */
export const MAX_INDEX_BYTES = 256 * 1024 * 1024;

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Head = Type.Object({
  /** Stamp of the file that was scanned. */
  stamp: Type.String(),
  parts: Type.Array(
    Type.Object({
      begin: Type.Number(),
      lanes: Type.Array(Type.Object({ pid: Count, form: Type.String(), header: Type.Optional(Type.String()) })),
      /** Number of pieces. */
      pieces: Count,
      /** Bytes. */
      media: Count,
      movie: Count,
    }),
    { minItems: 1 },
  ),
});
const check = Compile(Head);

/**
 * Writes the index of a file in the form in which it is stored: magic, length of a JSON document and the document, for each part the
 * columns of its pieces and its `moov`, CRC-32 of all that. Numbers are little-endian, as in memory.
 * @param stamp of the file @returns pieces, which share memory with the parts
 */
export function encodeIndex(stamp: string, parts: readonly TsPart[]): Buffer[] {
  const head: Static<typeof Head> = {
    stamp,
    parts: parts.map(({ begin, lanes, pieces: { from }, media, movie }) => ({
      begin,
      lanes: [...lanes],
      pieces: from.length,
      media,
      movie: movie.length,
    })),
  };
  const json = Buffer.from(JSON.stringify(head));
  const bodies = parts.flatMap(({ pieces: { from, to, first, keepsSets }, movie }) => [
    ...[from, to, first, keepsSets].map(bytesOf),
    movie,
  ]);
  const all = [MAGIC, word(json.length), json, ...bodies];
  return [...all, word(all.reduce((sum, bytes) => crc32(bytes, sum), 0))];
}

/** Reads what `encodeIndex` wrote. @returns undefined for what is damaged, foreign, of another version, or of a file with another stamp */
export function decodeIndex(bytes: Buffer, stamp: string): readonly TsPart[] | undefined {
  const end = bytes.length - WORD_BYTES;
  const begin = MAGIC.length + WORD_BYTES;
  if (end < begin || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const jsonEnd = begin + bytes.readUInt32LE(MAGIC.length);
  if (jsonEnd > end || crc32(bytes.subarray(0, end)) !== bytes.readUInt32LE(end)) return undefined;
  const head = parsed(bytes.toString('utf8', begin, jsonEnd));
  if (!check.Check(head) || head.stamp !== stamp) return undefined;
  const parts: TsPart[] = [];
  let at = jsonEnd;
  for (const { pieces, movie, lanes, ...rest } of head.parts) {
    const movieAt = at + pieces * PIECE_BYTES;
    if (movieAt + movie > end) return undefined;
    const own = lanes.flatMap(({ form, ...lane }) => (isCarried(form) ? [{ ...lane, form }] : []));
    if (own.length < lanes.length) return undefined;
    const movieEnd = movieAt + movie;
    parts.push({
      ...rest,
      lanes: own,
      pieces: piecesOf(bytes.subarray(at, movieAt), pieces),
      movie: bytes.subarray(movieAt, movieEnd),
    });
    at = movieEnd;
  }
  return at === end ? parts : undefined;
}

function piecesOf(bytes: Buffer, count: number): TsPieces {
  const column = (index: number): Float64Array => {
    const places = new Float64Array(count);
    bytes.copy(bytesOf(places), 0, index * count * PLACE_BYTES);
    return places;
  };
  const [from, to, first] = [column(0), column(1), column(2)];
  return { from, to, first, keepsSets: Uint8Array.from(bytes.subarray(3 * count * PLACE_BYTES)) };
}

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array | Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(WORD_BYTES);
  bytes.writeUInt32LE(value);
  return bytes;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
