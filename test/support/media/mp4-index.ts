import { findBox, parseBoxes } from './boxes.ts';

/** What the index of an MP4 file tells of one track. */
export interface IndexedSamples {
  readonly timescale: number;
  /** Empty time in front, in ticks of the movie. */
  readonly empty: number;
  /** Duration of the media, as `mdhd` tells it. */
  readonly duration: number;
  readonly count: number;
  /** Decode times of the samples without edits, in ticks. */
  readonly times: Float64Array;
  readonly sizes: Uint32Array;
  /** Where each is in the file. */
  readonly places: Float64Array;
}

/** The whole boxes of that type, at the top of some content. */
function boxesOf(content: Buffer, wanted: string): Buffer[] {
  return parseBoxes(content)
    .filter(({ type }) => type === wanted)
    .map((box) => box.content);
}

/** The tracks of a `moov`, in its order. @param moov its content */
export function indexOf(moov: Buffer): IndexedSamples[] {
  return boxesOf(moov, 'trak').map((trak) => {
    const box = (type: string) => findBox(trak, type) as Buffer;
    const mdhd = box('mdhd');
    const isLong = mdhd[0] === 1;
    const sizes = box('stsz');
    const count = sizes.readUInt32BE(8);
    const edits = boxesOf(trak, 'edts').flatMap((edts) => boxesOf(edts, 'elst'));
    return {
      timescale: mdhd.readUInt32BE(isLong ? 20 : 12),
      duration: isLong ? Number(mdhd.readBigUInt64BE(24)) : mdhd.readUInt32BE(16),
      empty: edits[0] === undefined ? 0 : Number(edits[0].readBigUInt64BE(8)),
      count,
      times: timesOf(box('stts'), count),
      sizes: Uint32Array.from({ length: count }, (_, index) => sizes.readUInt32BE(12 + 4 * index)),
      places: placesOf(box('stsc'), box('co64'), sizes, count),
    };
  });
}

function timesOf(stts: Buffer, count: number): Float64Array {
  const times = new Float64Array(count);
  let time = 0;
  let sample = 0;
  for (let entry = 0; entry < stts.readUInt32BE(4); entry++) {
    const step = stts.readUInt32BE(12 + 8 * entry);
    for (let i = 0; i < stts.readUInt32BE(8 + 8 * entry); i++) {
      times[sample++] = time;
      time += step;
    }
  }
  if (sample !== count) throw new Error(`stts has ${sample} samples of ${count}`);
  return times;
}

function placesOf(stsc: Buffer, co64: Buffer, stsz: Buffer, count: number): Float64Array {
  const places = new Float64Array(count);
  const entries = stsc.readUInt32BE(4);
  const chunks = co64.readUInt32BE(4);
  let sample = 0;
  for (let entry = 0; entry < entries; entry++) {
    const last = entry + 1 < entries ? stsc.readUInt32BE(8 + 12 * (entry + 1)) - 1 : chunks;
    for (let chunk = stsc.readUInt32BE(8 + 12 * entry); chunk <= last; chunk++) {
      let at = Number(co64.readBigUInt64BE(8 + 8 * (chunk - 1)));
      for (let i = 0; i < stsc.readUInt32BE(12 + 12 * entry); i++) {
        places[sample] = at;
        at += stsz.readUInt32BE(12 + 4 * sample++);
      }
    }
  }
  if (sample !== count) throw new Error(`stsc has ${sample} samples of ${count}`);
  return places;
}
