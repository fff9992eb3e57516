import { readFileSync } from 'node:fs';
import { BitReader, BitWriter } from '../../../src/codecs/bits.ts';

/** A file that test/vectors/codecs/make made. */
export function vector(name: string): Buffer {
  return readFileSync(new URL(`../../vectors/codecs/${name}`, import.meta.url));
}

/** The payload of the first box of a type, wherever it is. */
export function box(mp4: Buffer, type: string): Buffer {
  const at = mp4.indexOf(type, 0, 'latin1');
  if (at < 4) throw new Error(`no box ${type}`);
  return mp4.subarray(at + 4, at - 4 + mp4.readUInt32BE(at - 4));
}

/** The samples of an mp4 with one track in one chunk, by its stsz. */
export function samples(mp4: Buffer): Buffer[] {
  const sizes = box(mp4, 'stsz');
  const data = box(mp4, 'mdat');
  const count = sizes.readUInt32BE(8);
  const found: Buffer[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    const size = sizes.readUInt32BE(4) || sizes.readUInt32BE(12 + 4 * i);
    found.push(data.subarray(at, (at += size)));
  }
  return found;
}

/** The frames of an IVF file. */
export function ivfFrames(ivf: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = ivf.readUInt16LE(6); at < ivf.length;) {
    const end = at + 12 + ivf.readUInt32LE(at);
    frames.push(ivf.subarray(at + 12, end));
    at = end;
  }
  return frames;
}

/**
 * A frame of VP9 or AV1 that tells the size it is to be shown in: 32 bits more, so that what is behind them stays at
 * whole bytes.
 * @param flag where the bit is that says whether it does, which is 0
 */
export function withRenderSize(frame: Buffer, flag: number, width: number, height: number): Buffer {
  const reader = new BitReader(frame);
  const writer = new BitWriter();
  for (let i = 0; i < flag; i++) writer.flag(reader.flag());
  if (reader.flag()) throw new Error('not the flag of a render size');
  writer
    .flag(true)
    .write(width - 1, 16)
    .write(height - 1, 16);
  while (reader.bitsLeft > 0) writer.flag(reader.flag());
  return writer.finish();
}

/** Numbers in [0, 1) from a seed, the same everywhere (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
