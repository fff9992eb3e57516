import type { Patch, ReadAt } from '../file-muxer.ts';
import { finalIndex, PLACE_BYTES } from './final-index.ts';
import type { TrackPlace } from './movie.ts';
import { placedTrak } from './placed-trak.ts';
import { BOX_HEAD_BYTES, child, children } from './read-box.ts';
import { SampleTable, type IndexedRun } from './sample-table.ts';

/** Changes that repair an interrupted file. */
export interface Mended {
  /** Bytes that can be played; the rest is to be cut off. */
  readonly whole: number;
  /** Bytes to append after that. */
  readonly tail: readonly Buffer[];
  /** Patches to apply once the tail is on the disk. */
  readonly patches: readonly Patch[];
}

interface Trak {
  readonly bytes: Buffer;
  readonly table: SampleTable;
}

interface TrackRun extends IndexedRun {
  readonly trackId: number;
  /** Offset of the run's data from the beginning of the `moof`. */
  readonly offset: number;
}

const HEAD_BYTES = 16;
/** Limit for a `moov` or `moof`, which has some kilobytes in a recording: a larger size is damage. */
const MAX_TABLE_BYTES = 16 * 1024 * 1024;
/** Flags of `trun`: data offset, a duration and a size for each sample (ISO/IEC 14496-12, 8.8.8). */
const REQUIRED = 0x301;
const SAMPLE_FLAGS = 0x400;
const COMPOSITION_OFFSET = 0x800;
const FIRST_SAMPLE_FLAGS = 0x4;
/** sample_is_non_sync_sample. */
const NON_SYNC = 0x10000;

/**
 * Recovers an interrupted `Mp4File`: its whole fragments, and the index that its end would have appended. A file of
 * another writer gets no index, and one that has its index stays as it is.
 */
export async function mendMp4(read: ReadAt, size: number): Promise<Mended> {
  const fragments = new Fragments();
  for (let at = 0; at < size;) {
    const head = await read(at, HEAD_BYTES);
    if (head.length < BOX_HEAD_BYTES) break;
    const short = head.readUInt32BE(0);
    const bytes = short === 1 && head.length === HEAD_BYTES ? Number(head.readBigUInt64BE(8)) : short;
    const type = head.toString('latin1', 4, 8);
    if (bytes < BOX_HEAD_BYTES || at + bytes > size) break;
    const hasTables = (type === 'moov' || type === 'moof') && bytes <= MAX_TABLE_BYTES;
    try {
      fragments.add(type, at, bytes, hasTables ? await read(at, bytes) : undefined);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      break;
    }
    at += bytes;
  }
  return fragments.mended();
}

class Fragments {
  readonly #traks = new Map<number, Trak>();
  #whole = 0;
  #placeAt: number | undefined;
  /** Whether all fragments so far have the form of `Mp4File`. */
  #isOwn = true;
  #runs: readonly TrackRun[] = [];
  #moofAt = 0;

  /**
   * @param table the box, of the types that are read
   * @throws RangeError for a damaged one
   */
  add(type: string, at: number, bytes: number, table: Buffer | undefined): void {
    const end = at + bytes;
    if (type === 'free' && bytes === PLACE_BYTES) this.#placeAt ??= at;
    else if (type === 'moof') {
      this.#moofAt = at;
      const runs = table && readRuns(table);
      this.#runs = runs ?? [];
      if (runs === undefined) this.#isOwn = false;
    } else if (type === 'mdat') {
      for (const run of this.#runs) this.#traks.get(run.trackId)?.table.add(run, this.#moofAt + run.offset);
      this.#runs = [];
      this.#whole = end;
    } else if (type === 'moov') {
      // the index follows the media
      if (this.#whole > 0 && this.#traks.size === 0) this.#whole = end;
      if (this.#whole === 0 && table !== undefined)
        for (const [id, trak] of readTraks(table)) this.#traks.set(id, trak);
    }
  }

  mended(): Mended {
    const whole = this.#whole;
    const used = [...this.#traks].filter(([, { table }]) => table.samples > 0);
    if (!this.#isOwn || this.#placeAt === undefined || used.length === 0) return { whole, tail: [], patches: [] };
    const tracks = used.map(([id, { bytes, table }]) => ({
      id,
      table,
      trak: (place: TrackPlace) => placedTrak(bytes, place),
    }));
    const { movie, patch } = finalIndex(tracks, Math.max(...this.#traks.keys()) + 1, this.#placeAt, whole);
    return { whole, tail: [movie], patches: [patch] };
  }
}

function readTraks(moov: Buffer): [id: number, trak: Trak][] {
  return children(moov.subarray(BOX_HEAD_BYTES))
    .filter(({ type }) => type === 'trak')
    .map(({ bytes, content }) => {
      const id = child(content, 'tkhd').content.readUInt32BE(12);
      const timescale = child(child(content, 'mdia').content, 'mdhd').content.readUInt32BE(12);
      return [id, { bytes, table: new SampleTable({ num: 1, den: timescale }) }];
    });
}

/** @returns undefined for a fragment of another form than that of `fragmentHead` */
function readRuns(moof: Buffer): TrackRun[] | undefined {
  const runs: TrackRun[] = [];
  for (const { type, content } of children(moof.subarray(BOX_HEAD_BYTES))) {
    if (type !== 'traf') continue;
    const trackId = child(content, 'tfhd').content.readUInt32BE(4);
    const tfdt = child(content, 'tfdt').content;
    const trun = child(content, 'trun').content;
    const flags = trun.readUInt32BE(0) & 0xffffff;
    if (tfdt[0] !== 1 || (flags & REQUIRED) !== REQUIRED || (flags & FIRST_SAMPLE_FLAGS) !== 0) return undefined;
    runs.push({
      trackId,
      baseTime: Number(tfdt.readBigUInt64BE(4)),
      offset: trun.readInt32BE(8),
      samples: readSamples(trun, flags),
    });
  }
  return runs;
}

function readSamples(trun: Buffer, flags: number): IndexedRun['samples'] {
  const count = trun.readUInt32BE(4);
  const bytes = 8 + ((flags & SAMPLE_FLAGS) === 0 ? 0 : 4) + ((flags & COMPOSITION_OFFSET) === 0 ? 0 : 4);
  if (12 + count * bytes > trun.length) throw new RangeError('a run of samples that is cut off');
  return Array.from({ length: count }, (_, index) => {
    let at = 12 + index * bytes;
    const duration = trun.readUInt32BE(at);
    const length = trun.readUInt32BE(at + 4);
    at += 8;
    const key = (flags & SAMPLE_FLAGS) === 0 || (trun.readUInt32BE(at) & NON_SYNC) === 0;
    if ((flags & SAMPLE_FLAGS) !== 0) at += 4;
    return {
      duration,
      compositionOffset: (flags & COMPOSITION_OFFSET) === 0 ? 0 : trun.readInt32BE(at),
      key,
      data: { length },
    };
  });
}
