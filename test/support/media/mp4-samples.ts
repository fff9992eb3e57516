import { findBox, parseBoxes } from './boxes.ts';
import { indexOf } from './mp4-index.ts';

/** A sample as a player that knows edit lists sees it. */
export interface PlacedSample {
  /** Seconds of the movie. */
  readonly time: number;
  /** Seconds. */
  readonly duration: number;
  readonly key: boolean;
  readonly data: Buffer;
}

export interface PlacedTrack {
  readonly id: number;
  readonly type: 'video' | 'audio';
  /** Seconds of the movie between which its samples are shown; 0 and Infinity without an edit. */
  readonly from: number;
  readonly to: number;
  /** In order of decoding. */
  readonly samples: readonly PlacedSample[];
}

/** The samples of an MP4 file, fragmented or not, placed by its edit lists. */
export function placedTracks(file: Buffer): PlacedTrack[] {
  const movie = boxes(file, 'moov')[0] as Buffer;
  const movieScale = (findBox(movie, 'mvhd') as Buffer).readUInt32BE(12);
  const isFragmented = findBox(movie, 'trex') !== undefined;
  const plain = isFragmented ? [] : indexOf(movie);
  return boxes(movie, 'trak').map((trak, index) => {
    const id = (findBox(trak, 'tkhd') as Buffer).readUInt32BE(12);
    const type = findBox(trak, 'vmhd') === undefined ? 'audio' : 'video';
    const timescale = timescaleOf(findBox(trak, 'mdhd') as Buffer);
    const { empty, mediaTime, from, to } = edit(trak, movieScale);
    const own = plain[index];
    const raw = own === undefined ? fragmented(file, id) : indexed(file, trak, own);
    const samples = raw.map(({ ticks, length, ...rest }) => ({
      time: (ticks - mediaTime) / timescale + empty,
      duration: length / timescale,
      ...rest,
    }));
    return { id, type, from, to, samples };
  });
}

/** Samples that are shown, in order of their times. */
export function shownSamples({ samples, from, to }: PlacedTrack): PlacedSample[] {
  const slack = 1e-4;
  return samples
    .filter(({ time }) => time > from - slack && time < to - slack)
    .sort((one, other) => one.time - other.time);
}

function timescaleOf(mdhd: Buffer): number {
  return mdhd.readUInt32BE(mdhd[0] === 1 ? 20 : 12);
}

interface RawSample {
  readonly ticks: number;
  readonly length: number;
  readonly key: boolean;
  readonly data: Buffer;
}

function boxes(content: Buffer, wanted: string): Buffer[] {
  return topBoxes(content)
    .filter(({ type }) => type === wanted)
    .map((box) => box.content);
}

/** As `parseBoxes`, with sizes of 64 bits. */
function topBoxes(content: Buffer) {
  const found: { readonly type: string; readonly at: number; readonly content: Buffer }[] = [];
  for (let at = 0; at < content.length;) {
    const short = content.readUInt32BE(at);
    const head = short === 1 ? 16 : 8;
    const size = short === 1 ? Number(content.readBigUInt64BE(at + 8)) : short;
    if (size < head || at + size > content.length) throw new Error(`box of ${size} bytes at ${at}`);
    found.push({
      type: content.toString('latin1', at + 4, at + 8),
      at,
      content: content.subarray(at + head, at + size),
    });
    at += size;
  }
  return found;
}

function edit(trak: Buffer, movieScale: number) {
  const edts = boxes(trak, 'edts')[0];
  if (edts === undefined) return { empty: 0, mediaTime: 0, from: 0, to: Infinity };
  const elst = boxes(edts, 'elst')[0] as Buffer;
  let empty = 0;
  for (let entry = 0; entry < elst.readUInt32BE(4); entry++) {
    const at = 8 + 20 * entry;
    const duration = Number(elst.readBigUInt64BE(at)) / movieScale;
    const mediaTime = Number(elst.readBigInt64BE(at + 8));
    if (mediaTime >= 0) return { empty, mediaTime, from: empty, to: empty + duration };
    empty += duration;
  }
  throw new Error('an edit list without media');
}

function indexed(file: Buffer, trak: Buffer, { count, times, sizes, places }: ReturnType<typeof indexOf>[number]) {
  const ctts = findBox(trak, 'ctts') ?? Buffer.alloc(0);
  const stss = findBox(trak, 'stss') ?? Buffer.alloc(0);
  const offsets: number[] = [];
  for (let at = 8; at < ctts.length; at += 8)
    for (let i = 0; i < ctts.readUInt32BE(at); i++) offsets.push(ctts.readInt32BE(at + 4));
  if (ctts.length > 0 && offsets.length !== count) throw new Error(`ctts has ${offsets.length} of ${count} samples`);
  const keys = new Set<number>();
  for (let at = 8; at < stss.length; at += 4) keys.add(stss.readUInt32BE(at) - 1);
  return Array.from({ length: count }, (_, index): RawSample => {
    const at = places[index] as number;
    return {
      ticks: (times[index] as number) + (offsets[index] ?? 0),
      length: (times[index + 1] ?? Number.NaN) - (times[index] as number),
      key: stss.length === 0 || keys.has(index),
      data: file.subarray(at, at + (sizes[index] as number)),
    };
  });
}

function fragmented(file: Buffer, id: number): RawSample[] {
  const samples: RawSample[] = [];
  for (const moof of topBoxes(file).filter(({ type }) => type === 'moof')) {
    for (const traf of boxes(moof.content, 'traf')) {
      const child = (type: string) => parseBoxes(traf).find((box) => box.type === type)?.content as Buffer;
      if (child('tfhd').readUInt32BE(4) !== id) continue;
      let dts = Number(child('tfdt').readBigUInt64BE(4));
      const trun = child('trun');
      const flags = trun.readUInt32BE(0);
      let place = moof.at + trun.readInt32BE(8);
      let at = 12;
      for (let index = 0; index < trun.readUInt32BE(4); index++) {
        const length = trun.readUInt32BE(at);
        const size = trun.readUInt32BE(at + 4);
        at += 8;
        const key = (flags & 0x400) === 0 || (trun.readUInt32BE(at) & 0x10000) === 0;
        if (flags & 0x400) at += 4;
        const offset = flags & 0x800 ? trun.readInt32BE(at) : 0;
        if (flags & 0x800) at += 4;
        samples.push({ ticks: dts + offset, length, key, data: file.subarray(place, place + size) });
        dts += length;
        place += size;
      }
    }
  }
  return samples;
}
