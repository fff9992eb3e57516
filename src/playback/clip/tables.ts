import type { ByteSource } from '../byte-source.ts';
import { ClipError, damaged } from './error.ts';

/** A table of a file: entries of the same size. */
export interface Table {
  readonly source: ByteSource;
  /** Position of the first entry. */
  readonly at: number;
  readonly entries: number;
  /** Bytes of one. */
  readonly width: number;
}

/** Entries that are read at once. */
const BLOCK_ENTRIES = 8192;

/** Limit of what is read at once: tables of a day of video. */
const MAX_BYTES = 32 * 1024 * 1024;

/**
 * Reads entries. Those that the table does not have are missing.
 * @throws ClipError for too many; SourceError
 */
export async function readEntries(
  { source, at, entries, width }: Table,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  const bytes = Math.max(0, Math.min(to, entries) - from) * width;
  if (bytes > MAX_BYTES)
    throw new ClipError('tooLong', 'the clip would be too long, or it is long from one key frame to the next');
  return await source.read(at + from * width, bytes, signal);
}

/** Reads a whole table in blocks. */
export async function* blocks(table: Table, signal?: AbortSignal): AsyncGenerator<readonly [from: number, Buffer]> {
  for (let from = 0; from < table.entries; from += BLOCK_ENTRIES)
    yield [from, await readEntries(table, from, from + BLOCK_ENTRIES, signal)];
}

/** Where samples are in a table of runs, a column each. */
export interface RunPlaces {
  /** Index of the entry, and samples of the entry that come before. */
  readonly entry: Uint32Array;
  readonly used: Uint32Array;
  /** Value of the entry, and sum of the values of all samples before. */
  readonly value: Float64Array;
  readonly sum: Float64Array;
  /** Sum of the values of all samples. */
  readonly total: number;
}

/**
 * Finds samples in a table of pairs of count and value, as `stts` and `ctts` have them.
 * @param samples that the table must have
 * @param targets sample numbers from 0, ascending
 * @throws ClipError, SourceError
 */
export async function findInRuns(
  table: Table,
  isSigned: boolean,
  samples: number,
  targets: Uint32Array,
  signal?: AbortSignal,
): Promise<RunPlaces> {
  const { length } = targets;
  const entry = new Uint32Array(length);
  const used = new Uint32Array(length);
  const value = new Float64Array(length);
  const sum = new Float64Array(length);
  let found = 0;
  let before = 0;
  let total = 0;
  for await (const [from, bytes] of blocks(table, signal)) {
    for (let at = 0; at < bytes.length; at += 8) {
      const count = bytes.readUInt32BE(at);
      const own = isSigned ? bytes.readInt32BE(at + 4) : bytes.readUInt32BE(at + 4);
      for (; found < length && (targets[found] as number) < before + count; found++) {
        entry[found] = from + at / 8;
        used[found] = (targets[found] as number) - before;
        value[found] = own;
        sum[found] = total + (used[found] as number) * own;
      }
      before += count;
      total += count * own;
    }
  }
  if (before !== samples) throw damaged(`a table has ${before} of ${samples} samples`);
  if (!Number.isSafeInteger(total)) throw damaged('its times are too large');
  return { entry, used, value, sum, total };
}

/** Where samples are in `stsc`, a column each. */
export interface ChunkPlaces {
  /** Index of the entry. */
  readonly entry: Uint32Array;
  /** Index of the chunk, and samples of the chunk that come before. */
  readonly chunk: Uint32Array;
  readonly used: Uint32Array;
}

/**
 * Finds samples in the chunks of a track.
 * @param table `stsc`
 * @param targets sample numbers from 0, ascending
 * @throws ClipError, SourceError
 */
export async function findInChunks(
  table: Table,
  chunks: number,
  samples: number,
  targets: Uint32Array,
  signal?: AbortSignal,
): Promise<ChunkPlaces> {
  const places = {
    entry: new Uint32Array(targets.length),
    chunk: new Uint32Array(targets.length),
    used: new Uint32Array(targets.length),
  };
  let found = 0;
  let before = 0;
  await chunkRuns(table, chunks, signal, (index, first, last, each) => {
    for (; found < targets.length && (targets[found] as number) < before + (last - first) * each; found++) {
      const inside = (targets[found] as number) - before;
      places.entry[found] = index;
      places.chunk[found] = first + Math.floor(inside / each);
      places.used[found] = inside % each;
    }
    before += (last - first) * each;
  });
  if (before !== samples) throw damaged(`its chunks have ${before} of ${samples} samples`);
  return places;
}

/**
 * Numbers of the first samples of chunks, ascending.
 * @param stride 1 for all chunks, 2 for every second one
 */
export async function firstOfChunks(
  table: Table,
  chunks: number,
  stride: number,
  signal?: AbortSignal,
): Promise<Uint32Array> {
  const firsts = new Uint32Array(Math.ceil(chunks / stride));
  let before = 0;
  await chunkRuns(table, chunks, signal, (_, first, last, each) => {
    for (let chunk = Math.ceil(first / stride) * stride; chunk < last; chunk += stride)
      firsts[chunk / stride] = before + (chunk - first) * each;
    before += (last - first) * each;
  });
  return firsts;
}

/** Calls back for each entry of `stsc`. Chunks count from 0, `last` is the first one after the entry's. */
async function chunkRuns(
  table: Table,
  chunks: number,
  signal: AbortSignal | undefined,
  onRun: (index: number, first: number, last: number, each: number) => void,
): Promise<void> {
  let first = 0;
  let each = 0;
  for await (const [from, bytes] of blocks(table, signal)) {
    for (let at = 0; at < bytes.length; at += 12) {
      const index = from + at / 12;
      const next = bytes.readUInt32BE(at) - 1;
      if (index === 0 ? next !== 0 : next <= first) throw damaged('its chunks are out of order');
      if (index > 0) onRun(index - 1, first, Math.min(next, chunks), each);
      first = next;
      each = bytes.readUInt32BE(at + 4);
      if (first >= chunks || each === 0 || bytes.readUInt32BE(at + 8) !== 1) throw damaged('it has odd chunks');
    }
  }
  if (table.entries > 0) onRun(table.entries - 1, first, chunks, each);
}
