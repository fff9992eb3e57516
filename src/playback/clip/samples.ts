import { asDamage } from './error.ts';
import { lastAtMost } from './marks.ts';
import type { RecordedTrack } from './recording.ts';
import { readEntries, type ChunkPlaces, type RunPlaces, type Table } from './tables.ts';

/** Samples of a track that follow each other, in the form of the tables that they are from: big-endian. */
export interface Samples {
  /** Number of the first one, from 0. */
  readonly first: number;
  readonly count: number;
  /** Decode time of the first one, in ticks of the media. */
  readonly dts: number;
  /** Pairs of count and value. */
  readonly durations: Buffer;
  readonly offsets: Buffer | undefined;
  readonly sizes: Buffer;
  /** Numbers of the key frames, from 1; absent where all are. */
  readonly keys: Buffer | undefined;
  /** Positions in the file of pieces of the media, and their numbers of samples. */
  readonly chunks: { readonly at: Float64Array; readonly samples: Uint32Array };
}

/**
 * Reads what the tables tell of some samples. Reads no more of them than from the mark before to the mark after.
 * @param from first sample, from 0
 * @param to sample after the last one
 * @throws ClipError, SourceError
 */
export async function loadSamples(
  track: RecordedTrack,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<Samples> {
  const { marks, tables } = track;
  const span = {
    before: lastAtMost(marks.sample, from),
    after: lastAtMost(marks.sample, to - 1) + 1,
    count: Math.max(0, to - from),
    skip: 0,
  };
  span.skip = from - (span.before < 0 ? 0 : (marks.sample[span.before] as number));
  try {
    const [durations, offsets, keys, chunks] = await Promise.all([
      loadRuns(tables.durations, marks.durations, span, signal),
      tables.offsets && loadRuns(tables.offsets, marks.offsets as RunPlaces, span, signal),
      tables.keys && loadKeys(tables.keys, marks.stride, span, from, to, signal),
      loadChunks(track, span, signal),
    ]);
    const sizes = await readEntries(tables.sizes, from - chunks.inside, to, signal);
    let skipped = 0;
    for (let index = 0; index < chunks.inside; index++) skipped += sizes.readUInt32BE(index * 4);
    if (chunks.at.length > 0) chunks.at[0] = (chunks.at[0] as number) + skipped;
    return {
      first: from,
      count: span.count,
      dts: (span.before < 0 ? 0 : (marks.dts[span.before] as number)) + durations.skipped,
      durations: durations.runs,
      offsets: offsets?.runs,
      sizes: sizes.subarray(chunks.inside * 4),
      keys,
      chunks,
    };
  } catch (error) {
    throw asDamage(error);
  }
}

interface Span {
  /** Marks around the samples: -1 and the number of marks where there is none. */
  readonly before: number;
  readonly after: number;
  /** Samples from the mark to the first one. */
  readonly skip: number;
  readonly count: number;
}

/** Runs of some samples, and the sum of the values from the mark to the first one. */
async function loadRuns(table: Table, places: RunPlaces, { before, after, skip, count }: Span, signal?: AbortSignal) {
  const entry = before < 0 ? 0 : (places.entry[before] as number);
  const used = before < 0 ? 0 : (places.used[before] as number);
  const end = after < places.entry.length ? (places.entry[after] as number) + 1 : table.entries;
  const runs = await readEntries(table, entry, end, signal);
  if (count === 0) return { runs: runs.subarray(0, 0), skipped: 0 };
  let at = 0;
  let drop = used + skip;
  let skipped = -used * runs.readUInt32BE(4);
  for (let own = runs.readUInt32BE(0); drop >= own; own = runs.readUInt32BE(at)) {
    skipped += own * runs.readUInt32BE(at + 4);
    drop -= own;
    at += 8;
  }
  skipped += drop * runs.readUInt32BE(at + 4);
  runs.writeUInt32BE(runs.readUInt32BE(at) - drop, at);
  let to = at;
  let left = count;
  for (let own = runs.readUInt32BE(to); left > own; own = runs.readUInt32BE(to)) {
    left -= own;
    to += 8;
  }
  runs.writeUInt32BE(left, to);
  return { runs: runs.subarray(at, to + 8), skipped };
}

async function loadKeys(
  table: Table,
  stride: number,
  { before, after }: Span,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  const keys = await readEntries(table, Math.max(0, before) * stride, after * stride, signal);
  let begin = 0;
  while (begin < keys.length && keys.readUInt32BE(begin) <= from) begin += 4;
  let end = keys.length;
  while (end > begin && keys.readUInt32BE(end - 4) > to) end -= 4;
  return keys.subarray(begin, end);
}

/** Pieces of the media, and how many samples of the first one come before. */
async function loadChunks(
  { marks, tables }: RecordedTrack,
  { before, after, skip, count }: Span,
  signal?: AbortSignal,
) {
  const places: ChunkPlaces = marks.chunks;
  let entry = before < 0 ? 0 : (places.entry[before] as number);
  const end = after < places.entry.length ? (places.entry[after] as number) + 2 : tables.runs.entries;
  const runs = await readEntries(tables.runs, entry, end, signal);
  const base = entry;
  let chunk = before < 0 ? 0 : (places.chunk[before] as number);
  let inside = (before < 0 ? 0 : (places.used[before] as number)) + skip;
  const each = (): number => {
    const next = (entry + 1 - base) * 12;
    if (next < runs.length && runs.readUInt32BE(next) - 1 <= chunk) entry++;
    return runs.readUInt32BE((entry - base) * 12 + 4);
  };
  let own = count === 0 ? Infinity : each();
  for (; inside >= own; own = each()) {
    inside -= own;
    chunk++;
  }
  const first = chunk;
  const samples: number[] = [];
  for (let left = count, hidden = inside; left > 0; hidden = 0, own = each()) {
    const shown = Math.min(left, own - hidden);
    samples.push(shown);
    left -= shown;
    chunk++;
    if (left === 0) break;
  }
  const offsets = await readEntries(tables.chunks, first, first + samples.length, signal);
  const { width } = tables.chunks;
  const at = Float64Array.from(samples, (_, index) =>
    width === 8 ? Number(offsets.readBigUInt64BE(index * 8)) : offsets.readUInt32BE(index * 4),
  );
  return { at, samples: Uint32Array.from(samples), inside };
}

/** Ticks of all samples. */
export function durationOf({ durations }: Samples): number {
  let ticks = 0;
  for (let at = 0; at < durations.length; at += 8) ticks += durations.readUInt32BE(at) * durations.readUInt32BE(at + 4);
  return ticks;
}

export function lastDuration({ durations }: Samples): number {
  return durations.readUInt32BE(durations.length - 4);
}

/** Positions and lengths of the pieces of the media. */
export function extents({ sizes, chunks }: Samples): (readonly [at: number, bytes: number])[] {
  let next = 0;
  return Array.from(chunks.at, (at, chunk) => {
    let bytes = 0;
    for (let left = chunks.samples[chunk] as number; left > 0; left--, next += 4) bytes += sizes.readUInt32BE(next);
    return [at, bytes];
  });
}

/** Goes through samples, one after another. */
export class SampleCursor {
  readonly #samples: Samples;
  /** Number of the sample, from 0. */
  index = -1;
  /** Ticks of the media. */
  dts = 0;
  duration = 0;
  /** Presentation minus decode time. */
  offset = 0;
  size = 0;
  key = true;
  /** Position in the file. */
  at = 0;
  #next = 0;
  #duration = { at: -8, left: 0 };
  #offset = { at: -8, left: 0 };
  #key = 0;
  #chunk = -1;
  #inChunk = 0;

  constructor(samples: Samples) {
    this.#samples = samples;
    this.dts = samples.dts;
  }

  /** Ticks of the media. */
  get shown(): number {
    return this.dts + this.offset;
  }

  /** @returns false after the last one */
  next(): boolean {
    const { count, first, durations, offsets, sizes, keys, chunks } = this.#samples;
    if (this.#next === count) return false;
    this.dts += this.duration;
    this.at += this.size;
    this.index = first + this.#next;
    this.duration = durations.readUInt32BE(advance(this.#duration, durations) + 4);
    if (offsets !== undefined) this.offset = offsets.readInt32BE(advance(this.#offset, offsets) + 4);
    this.size = sizes.readUInt32BE(this.#next * 4);
    if (keys !== undefined) {
      this.key = this.#key < keys.length && keys.readUInt32BE(this.#key) === this.index + 1;
      if (this.key) this.#key += 4;
    }
    if (this.#inChunk === 0) {
      this.#chunk++;
      this.#inChunk = chunks.samples[this.#chunk] as number;
      this.at = chunks.at[this.#chunk] as number;
    }
    this.#inChunk--;
    this.#next++;
    return true;
  }
}

/** Goes on by one sample. @returns position of its run */
function advance(place: { at: number; left: number }, runs: Buffer): number {
  while (place.left === 0) {
    place.at += 8;
    place.left = runs.readUInt32BE(place.at);
  }
  place.left--;
  return place.at;
}

/**
 * Number of the first sample that is not decoded before a time; the number of all samples if there is none.
 * @param ticks of the media
 * @throws ClipError, SourceError
 */
export async function firstSampleFrom(track: RecordedTrack, ticks: number, signal?: AbortSignal): Promise<number> {
  const { marks, samples } = track;
  const before = lastAtMost(marks.dts, ticks);
  const from = before < 0 ? 0 : (marks.sample[before] as number);
  const cursor = new SampleCursor(await loadSamples(track, from, marks.sample[before + 1] ?? samples, signal));
  while (cursor.next()) if (cursor.dts >= ticks) return cursor.index;
  return marks.sample[before + 1] ?? samples;
}
