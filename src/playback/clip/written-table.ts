import { box, u32 } from '../../containers/fmp4/box.ts';
import { BOX_HEAD_BYTES } from '../../containers/fmp4/read-box.ts';
import type { Samples } from './samples.ts';

/** Samples of a piece, and where its media is in the clip. */
export interface WrittenPiece {
  readonly samples: Samples;
  /** Ticks that are cut of the beginning of its first sample. */
  readonly late: number;
  /** Ticks by which its last sample lasts longer, to the beginning of the next piece. */
  readonly stretch: number;
  /** Bytes from positions in the recording to those in the clip. */
  readonly move: number;
}

/** Bytes of an entry. */
const RUN = 8;
const NUMBER = 4;
const PLACE = 8;

/**
 * Writes the tables of `stbl` (ISO/IEC 14496-12, 8.6 and 8.7). Those of the samples are not copied.
 * @returns boxes, in pieces, and the positions among them
 */
export function writtenTables(pieces: readonly WrittenPiece[]): { readonly boxes: Buffer[]; readonly places: Buffer } {
  const runs = pieces.flatMap(({ samples, late, stretch }) => stretched(shortened(samples.durations, late), stretch));
  const sizes = pieces.map(({ samples }) => samples.sizes);
  const places = positions(pieces);
  return {
    boxes: [
      ...table('stts', 0, runs, RUN),
      ...offsetTable(pieces),
      ...keyTable(pieces),
      ...chunkTable(pieces),
      ...table('stsz', 0, sizes, NUMBER, u32(0)),
      ...table('co64', 0, [places], PLACE),
    ],
    places,
  };
}

/** Moves all positions. */
export function movePlaces(places: Buffer, by: number): void {
  for (let at = 0; at < places.length; at += PLACE)
    places.writeBigUInt64BE(places.readBigUInt64BE(at) + BigInt(by), at);
}

/** A full box with a number of entries and these. @param fields between flags and number */
function table(
  type: string,
  version: number,
  entries: readonly Buffer[],
  width: number,
  fields: Buffer = Buffer.alloc(0),
) {
  const bytes = entries.reduce((sum, { length }) => sum + length, 0);
  const head = box(type, u32(version * 0x1000000), fields, u32(bytes / width));
  head.writeUInt32BE(head.length + bytes, 0);
  return [head, ...entries];
}

/** Makes the first sample shorter. */
function shortened(runs: Buffer, by: number): Buffer {
  if (by === 0) return runs;
  const [count, value] = [runs.readUInt32BE(0), runs.readUInt32BE(4)];
  const rest = count > 1 ? u32(count - 1, value) : Buffer.alloc(0);
  return Buffer.concat([u32(1, Math.max(0, value - by)), rest, runs.subarray(RUN)]);
}

/** Makes the last sample longer or shorter. */
function stretched(runs: Buffer, by: number): Buffer[] {
  const at = runs.length - RUN;
  const count = runs.readUInt32BE(at);
  const value = Math.min(Math.max(0, runs.readUInt32BE(at + 4) + by), 0xffff_ffff);
  if (by === 0) return [runs];
  const before = Buffer.from(runs.subarray(at));
  before.writeUInt32BE(count - 1, 0);
  return [runs.subarray(0, at), ...(count > 1 ? [before] : []), u32(1, value)];
}

function offsetTable(pieces: readonly WrittenPiece[]): Buffer[] {
  if (pieces.every(({ samples }) => samples.offsets === undefined)) return [];
  const runs = pieces.map(({ samples }) => samples.offsets ?? u32(samples.count, 0));
  return table('ctts', 1, runs, RUN);
}

function keyTable(pieces: readonly WrittenPiece[]): Buffer[] {
  if (pieces.every(({ samples }) => samples.keys === undefined)) return [];
  let before = 0;
  const numbers = pieces.map(({ samples: { keys, first, count } }) => {
    const own = Buffer.allocUnsafe(keys?.length ?? count * NUMBER);
    for (let at = 0; at < own.length; at += NUMBER)
      own.writeUInt32BE(before + (keys === undefined ? at / NUMBER + 1 : keys.readUInt32BE(at) - first), at);
    before += count;
    return own;
  });
  return table('stss', 0, numbers, NUMBER);
}

function chunkTable(pieces: readonly WrittenPiece[]): Buffer[] {
  const runs: Buffer[] = [];
  let chunk = 0;
  let each = 0;
  for (const { samples } of pieces) {
    for (const count of samples.chunks.samples) {
      chunk++;
      if (count !== each) runs.push(u32(chunk, count, 1));
      each = count;
    }
  }
  return table('stsc', 0, runs.length === 0 ? [] : [Buffer.concat(runs)], 12);
}

function positions(pieces: readonly WrittenPiece[]): Buffer {
  const places = pieces.flatMap(({ samples, move }) => Array.from(samples.chunks.at, (at) => at + move));
  const bytes = Buffer.allocUnsafe(places.length * PLACE);
  for (const [index, at] of places.entries()) bytes.writeBigUInt64BE(BigInt(at), index * PLACE);
  return bytes;
}

/**
 * Lets the last boxes inside one another be followed by more bytes of the innermost.
 * @param bytes a box whose last box is of the next type, and so on
 */
export function lengthen(bytes: Buffer, path: readonly string[], by: number): void {
  let at = 0;
  let end = bytes.length;
  for (const type of path) {
    while (at + bytes.readUInt32BE(at) < end) at += bytes.readUInt32BE(at);
    if (bytes.toString('latin1', at + 4, at + BOX_HEAD_BYTES) !== type) throw new RangeError(`no ${type} is last`);
    end = at + bytes.readUInt32BE(at);
    bytes.writeUInt32BE(bytes.readUInt32BE(at) + by, at);
    at += BOX_HEAD_BYTES;
  }
}
