import { BitstreamError, type BitReader } from './bits.ts';

/** Tiles of a frame (AV1 5.9.15). */
export interface Av1TileInfo {
  readonly count: number;
  /** Bits of a tile's number. */
  readonly numberBits: number;
  /** Bytes of a tile's size. */
  readonly sizeBytes: number;
}

const MAX_TILE_WIDTH = 4096;
const MAX_TILE_AREA = 4096 * 2304;
const MAX_TILES_IN_ROW = 64;
const MAX_TILE_ROWS = 64;

/**
 * Reads `tile_info()` (AV1 5.9.15).
 * @param frame size in samples, before superres scales it up
 * @param large whether superblocks have 128 samples on a side
 * @throws BitstreamError
 */
export function readTileInfo(
  reader: BitReader,
  { width, height }: { readonly width: number; readonly height: number },
  large: boolean,
): Av1TileInfo {
  const side = large ? 7 : 6;
  // of the size in units of 8 samples
  const superblocks = (samples: number): number => Math.ceil(Math.ceil(samples / 8) / 2 ** (side - 3));
  const [columns, rows] = [superblocks(width), superblocks(height)];
  const maxWidth = MAX_TILE_WIDTH >> side;
  const maxArea = MAX_TILE_AREA >> (2 * side);
  const minColumnsLog2 = log2Of(maxWidth, columns);
  const minTilesLog2 = Math.max(minColumnsLog2, log2Of(maxArea, rows * columns));
  const { across, down } = reader.flag()
    ? readUniform(reader, columns, rows, minColumnsLog2, minTilesLog2)
    : readSizes(reader, columns, rows, maxWidth, minTilesLog2);
  const numberBits = across.log2 + down.log2;
  let sizeBytes = 4;
  if (numberBits > 0) {
    // context_update_tile_id
    reader.skip(numberBits);
    sizeBytes = reader.read(2) + 1;
  }
  return { count: across.count * down.count, numberBits, sizeBytes };
}

interface Division {
  readonly count: number;
  readonly log2: number;
}

interface Divisions {
  readonly across: Division;
  readonly down: Division;
}

function readUniform(
  reader: BitReader,
  columns: number,
  rows: number,
  minColumnsLog2: number,
  minTilesLog2: number,
): Divisions {
  const readLog2 = (least: number, most: number): number => {
    let log2 = least;
    while (log2 < most && reader.flag()) log2++;
    return log2;
  };
  const divide = (length: number, log2: number): Division => {
    const size = Math.ceil(length / 2 ** log2);
    return { count: Math.ceil(length / size), log2 };
  };
  const columnsLog2 = readLog2(minColumnsLog2, log2Of(1, Math.min(columns, MAX_TILES_IN_ROW)));
  const across = divide(columns, columnsLog2);
  const rowsLog2 = readLog2(Math.max(minTilesLog2 - columnsLog2, 0), log2Of(1, Math.min(rows, MAX_TILE_ROWS)));
  return { across, down: divide(rows, rowsLog2) };
}

function readSizes(
  reader: BitReader,
  columns: number,
  rows: number,
  maxWidth: number,
  minTilesLog2: number,
): Divisions {
  let widest = 0;
  const readDivision = (length: number, maxSize: number, most: number): Division => {
    let count = 0;
    for (let at = 0; at < length; count++) {
      if (count === most) throw new BitstreamError('an AV1 frame has too many tiles');
      const size = readNonSymmetric(reader, Math.min(length - at, maxSize)) + 1;
      widest = Math.max(widest, size);
      at += size;
    }
    return { count, log2: log2Of(1, count) };
  };
  const across = readDivision(columns, maxWidth, MAX_TILES_IN_ROW);
  const area = minTilesLog2 > 0 ? (rows * columns) >> (minTilesLog2 + 1) : rows * columns;
  return { across, down: readDivision(rows, Math.max(Math.floor(area / widest), 1), MAX_TILE_ROWS) };
}

/** Reads a number below a limit (`ns(n)`, AV1 4.10.7). */
export function readNonSymmetric(reader: BitReader, limit: number): number {
  const bits = Math.floor(Math.log2(limit)) + 1;
  const short = 2 ** bits - limit;
  const value = reader.read(bits - 1);
  return value < short ? value : 2 * value - short + reader.read(1);
}

/** Least power of two by which a size has to be multiplied to reach a target. */
function log2Of(size: number, target: number): number {
  let log2 = 0;
  while (size * 2 ** log2 < target) log2++;
  return log2;
}
