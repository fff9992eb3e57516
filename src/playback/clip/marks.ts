import { damaged } from './error.ts';
import {
  blocks,
  findInChunks,
  findInRuns,
  firstOfChunks,
  type ChunkPlaces,
  type RunPlaces,
  type Table,
} from './tables.ts';

/** Tables of `stbl` (ISO/IEC 14496-12, 8.6 and 8.7). */
export interface SampleTables {
  readonly samples: number;
  readonly sizes: Table;
  readonly durations: Table;
  readonly offsets: Table | undefined;
  /** Absent: all samples are sync samples. */
  readonly keys: Table | undefined;
  readonly runs: Table;
  readonly chunks: Table;
}

/** Sync samples from which the tables of a track can be read, a column each: key frames, or the first of each chunk. */
export interface Marks {
  /** Sample numbers from 0, ascending. */
  readonly sample: Uint32Array;
  /** Ticks of the media. */
  readonly dts: Float64Array;
  readonly shown: Float64Array;
  /** Sync samples from one mark to the next, where the track has other samples as well. */
  readonly stride: number;
  readonly durations: RunPlaces;
  readonly offsets: RunPlaces | undefined;
  readonly chunks: ChunkPlaces;
}

/** 4.5 hours of key frames each second; of longer recordings every second one is a mark, and so on. */
const MAX_MARKS = 16 * 1024;

/** Reads all tables but the sizes once. @throws ClipError, SourceError */
export async function findMarks(
  tables: SampleTables,
  signal?: AbortSignal,
): Promise<{ readonly marks: Marks; readonly duration: number }> {
  const { samples, keys } = tables;
  const count = keys?.entries ?? tables.chunks.entries;
  if (count === 0) throw damaged(keys === undefined ? 'a track has no chunks' : 'a track has no key frames');
  const stride = Math.ceil(count / MAX_MARKS);
  const sample =
    keys === undefined
      ? await firstOfChunks(tables.runs, count, stride, signal)
      : await everyKey(keys, samples, stride, signal);
  const durations = await findInRuns(tables.durations, false, samples, sample, signal);
  const offsets =
    tables.offsets === undefined ? undefined : await findInRuns(tables.offsets, true, samples, sample, signal);
  const chunks = await findInChunks(tables.runs, tables.chunks.entries, samples, sample, signal);
  const dts = durations.sum;
  const shown = offsets === undefined ? dts : dts.map((ticks, index) => ticks + (offsets.value[index] as number));
  return { marks: { sample, dts, shown, stride, durations, offsets, chunks }, duration: durations.total };
}

async function everyKey(
  keys: Table,
  samples: number,
  stride: number,
  signal: AbortSignal | undefined,
): Promise<Uint32Array> {
  const found = new Uint32Array(Math.ceil(keys.entries / stride));
  let last = 0;
  for await (const [from, bytes] of blocks(keys, signal)) {
    for (let at = 0; at < bytes.length; at += 4) {
      const number = bytes.readUInt32BE(at);
      if (number <= last || number > samples) throw damaged('its key frames are out of order');
      last = number;
      const index = from + at / 4;
      if (index % stride === 0) found[index / stride] = number - 1;
    }
  }
  return found;
}

/** Index of the last value that is not greater, of ascending ones; -1 if all are. */
export function lastAtMost(values: ArrayLike<number>, most: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
