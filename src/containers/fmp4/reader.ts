import { children, BOX_HEAD_BYTES, child, type ReadBox } from './read-box.ts';
import { readSampleEntry, type SampleDescription } from './read-sample-entry.ts';

/** Track of a fragmented file. */
export interface FragmentedTrack {
  readonly id: number;
  /** Ticks per second. */
  readonly timescale: number;
  readonly description: SampleDescription;
  /** Time in the media, in ticks, that is shown at the beginning (ISO/IEC 14496-12, 8.6.6). */
  readonly begin: number;
  readonly defaults: Defaults;
}

/** Sample of a fragment. Times are in ticks of its track, those before the beginning of the movie negative. */
export interface ReadSample {
  readonly track: FragmentedTrack;
  readonly time: number;
  readonly compositionOffset: number;
  readonly data: Buffer;
}

interface Defaults {
  readonly duration: number;
  readonly size: number;
}

const MAX_SAMPLES = 100_000;
/** Flags of `tfhd` and `trun` (ISO/IEC 14496-12, 8.8.7 and 8.8.8). */
const TFHD = { offset: 0x1, description: 0x2, duration: 0x8, size: 0x10 } as const;
const TRUN = { offset: 0x1, firstFlags: 0x4, duration: 0x100, size: 0x200, flags: 0x400, composition: 0x800 } as const;

/**
 * Reads the tracks of an initialization (ISO/IEC 14496-12, 8.2 to 8.8).
 * @param unsupported called for tracks of other codecs, or other kinds, which are left out
 * @throws RangeError for a damaged one
 */
export function readInit(bytes: Buffer, unsupported: (error: Error) => void): FragmentedTrack[] {
  const movie = child(bytes, 'moov').content;
  const defaults = new Map<number, Defaults>();
  for (const { content } of children(child(movie, 'mvex').content).filter(({ type }) => type === 'trex'))
    defaults.set(content.readUInt32BE(4), { duration: content.readUInt32BE(12), size: content.readUInt32BE(16) });
  return children(movie).flatMap(({ type, content }) => {
    if (type !== 'trak') return [];
    try {
      return readTrack(content, defaults);
    } catch (error) {
      if (error instanceof RangeError) throw error;
      unsupported(error as Error);
      return [];
    }
  });
}

function readTrack(content: Buffer, defaults: ReadonlyMap<number, Defaults>): FragmentedTrack {
  const header = child(content, 'tkhd').content;
  const id = header.readUInt32BE(header[0] === 1 ? 20 : 12);
  const media = child(content, 'mdia').content;
  const mediaHeader = child(media, 'mdhd').content;
  const timescale = mediaHeader.readUInt32BE(mediaHeader[0] === 1 ? 20 : 12);
  if (timescale === 0) throw new RangeError('a track without a timescale');
  const entries = child(child(child(media, 'minf').content, 'stbl').content, 'stsd').content.subarray(8);
  const [entry] = children(entries);
  if (entry === undefined) throw new RangeError('a track without a sample entry');
  return {
    id,
    timescale,
    description: readSampleEntry(entry.bytes),
    begin: readBegin(content),
    defaults: defaults.get(id) ?? { duration: 0, size: 0 },
  };
}

function readBegin(track: Buffer): number {
  const edits = children(track).find(({ type }) => type === 'edts')?.content;
  const list = edits && children(edits).find(({ type }) => type === 'elst')?.content;
  if (list === undefined) return 0;
  const isLong = list[0] === 1;
  for (let entry = 0; entry < list.readUInt32BE(4); entry++) {
    const at = 8 + entry * (isLong ? 20 : 12);
    const begin = isLong ? Number(list.readBigInt64BE(at + 8)) : list.readInt32BE(at + 4);
    if (begin >= 0) return begin;
  }
  return 0;
}

/**
 * Reads the samples of a fragment in the order of their times, whose data are those of the fragment.
 * @param fragment `moof` and the boxes behind it up to the end of its `mdat`
 * @throws RangeError for a damaged one
 */
export function readSamples(fragment: Buffer, tracks: readonly FragmentedTrack[]): ReadSample[] {
  const samples: ReadSample[] = [];
  let count = 0;
  let next = 0;
  for (const { type, content } of children(child(fragment, 'moof').content)) {
    if (type !== 'traf') continue;
    const boxes = children(content);
    const head = child(content, 'tfhd').content;
    const track = tracks.find(({ id }) => id === head.readUInt32BE(4));
    const defaults = readDefaults(head, track?.defaults);
    const start = boxes.find((box) => box.type === 'tfdt')?.content;
    let time = start === undefined ? 0 : start[0] === 1 ? Number(start.readBigUInt64BE(4)) : start.readUInt32BE(4);
    time -= track?.begin ?? 0;
    for (const run of boxes.filter((box) => box.type === 'trun')) {
      const read = readRun(run, defaults, next);
      next = read.end;
      // empty ones count as well: a few bytes may tell of any number
      count += read.samples.length;
      if (count > MAX_SAMPLES) throw new RangeError('a fragment of too many samples');
      for (const { duration, compositionOffset, from, to } of read.samples) {
        if (to > fragment.length) throw new RangeError('a sample behind the end of its fragment');
        if (track !== undefined && to > from)
          samples.push({ track, time, compositionOffset, data: fragment.subarray(from, to) });
        time += duration;
      }
    }
  }
  return samples.sort((a, b) => a.time / a.track.timescale - b.time / b.track.timescale);
}

function readDefaults(head: Buffer, { duration, size }: Defaults = { duration: 0, size: 0 }): Defaults {
  const flags = head.readUIntBE(1, 3);
  if ((flags & TFHD.offset) !== 0) throw new RangeError('data offsets from the beginning of a file');
  let at = 8 + ((flags & TFHD.description) !== 0 ? 4 : 0);
  const field = (flag: number, otherwise: number): number => {
    if ((flags & flag) === 0) return otherwise;
    at += 4;
    return head.readUInt32BE(at - 4);
  };
  return { duration: field(TFHD.duration, duration), size: field(TFHD.size, size) };
}

/** @param following where the data of a run without an offset is */
function readRun({ content }: ReadBox, defaults: Defaults, following: number) {
  const flags = content.readUIntBE(1, 3);
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const count = content.readUInt32BE(4);
  if (count > MAX_SAMPLES) throw new RangeError('a run of too many samples');
  let at = 8;
  const number = (flag: number, otherwise: number, isSigned = false): number => {
    if (!has(flag)) return otherwise;
    at += 4;
    return isSigned ? content.readInt32BE(at - 4) : content.readUInt32BE(at - 4);
  };
  let from = number(TRUN.offset, following, true);
  if (from < BOX_HEAD_BYTES) throw new RangeError('a run without data');
  number(TRUN.firstFlags, 0);
  const samples = Array.from({ length: count }, () => {
    const duration = number(TRUN.duration, defaults.duration);
    const size = number(TRUN.size, defaults.size);
    number(TRUN.flags, 0);
    const compositionOffset = number(TRUN.composition, 0, content[0] === 1);
    from += size;
    return { duration, compositionOffset, from: from - size, to: from };
  });
  return { samples, end: from };
}
