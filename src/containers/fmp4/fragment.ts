import { fullBox, u32 } from './box.ts';
import { TRACK_ID } from './init.ts';
import { auxiliaryBoxes, SENC_HEAD, type SampleProtection } from './protection.ts';

/** Fields of a frame in the head of a fragment. Times in ticks of the track's timebase. */
export interface SampleHead {
  readonly duration: number;
  /** Presentation minus decode time; may be negative. */
  readonly compositionOffset: number;
  readonly key: boolean;
  readonly data: { readonly length: number };
}

/** One frame of a fragment. */
export interface Sample extends SampleHead {
  readonly data: Buffer;
}

const BASE_IS_MOOF = 0x020000;
const DEFAULT_FLAGS = 0x20;
const DATA_OFFSET = 0x1;
const SAMPLE_DURATION = 0x100;
const SAMPLE_SIZE = 0x200;
const SAMPLE_FLAGS = 0x400;
const COMPOSITION_OFFSET = 0x800;

/** sample_depends_on = 2: independent of other samples. */
const INDEPENDENT = 0x02000000;
/** sample_depends_on = 1, sample_is_non_sync_sample = 1. */
const DEPENDENT = 0x01010000;

const MFHD = 16;
const TFHD = 20;
const TFDT = 20;
const TRUN = 20;

/** Fields of the samples of one track in the head of a fragment. */
export interface RunHead {
  readonly type: 'video' | 'audio' | 'subtitle';
  readonly trackId: number;
  /** Decode time of the first sample in ticks, not negative. */
  readonly baseTime: number;
  readonly samples: readonly SampleHead[];
  /** Boxes about the encryption of the samples, at the end of `traf`. */
  readonly auxiliary?: Buffer | undefined;
}

/** Samples of one track in a fragment. */
export interface Run extends RunHead {
  readonly samples: readonly Sample[];
}

/**
 * Builds `moof` and `mdat` of one run of samples in one buffer: a CMAF chunk (ISO/IEC 23000-19, 7.3.2.3).
 * @param sequence number of the fragment in its track, from 1
 * @param baseTime decode time of the first sample in ticks, not negative
 * @param boxes before the `moof`
 * @param protections how the samples will be encrypted, in place: their data are the last bytes
 */
export function fragment(
  type: 'video' | 'audio',
  sequence: number,
  baseTime: number,
  samples: readonly Sample[],
  boxes: readonly Buffer[] = [],
  protections?: readonly SampleProtection[],
): Buffer {
  const run = { type, trackId: TRACK_ID, baseTime, samples };
  const runs = [{ ...run, auxiliary: protections && auxiliaryOf(run, protections) }];
  const payload = bytesOf(runs);
  const before = boxes.reduce((bytes, { length }) => bytes + length, 0);
  // own memory: a slice of the shared pool would keep the whole pool as long as the window lasts
  const bytes = Buffer.allocUnsafeSlow(before + headBytes(runs) + payload);
  let at = 0;
  for (const box of boxes) at += box.copy(bytes, at);
  at = writeHead(bytes, at, sequence, runs, payload);
  for (const { data } of samples) at += data.copy(bytes, at);
  return bytes;
}

/**
 * Builds `moof`, and the beginning of `mdat`: the data of all samples follow, run after run.
 * @param sequence number of the fragment in its file, from 1
 */
export function fragmentHead(sequence: number, runs: readonly RunHead[]): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes(runs));
  writeHead(bytes, 0, sequence, runs, bytesOf(runs));
  return bytes;
}

function bytesOf(runs: readonly RunHead[]): number {
  let bytes = 0;
  for (const { samples } of runs) for (const { data } of samples) bytes += data.length;
  return bytes;
}

/** `senc`, `saiz`, and `saio` with the place of the first sample's information in the `moof` of one run. */
function auxiliaryOf(run: RunHead, protections: readonly SampleProtection[]): Buffer | undefined {
  const boxes = auxiliaryBoxes(protections);
  if (boxes === undefined) return undefined;
  const { senc, saiz } = boxes;
  return Buffer.concat([senc, saiz, fullBox('saio', 0, 0, u32(1, moofBytes([run]) + SENC_HEAD))]);
}

function trunBytes({ type, samples }: RunHead): number {
  return TRUN + samples.length * (type === 'video' ? 16 : 8);
}

function moofBytes(runs: readonly RunHead[]): number {
  return runs.reduce((bytes, run) => bytes + trafBytes(run), 8 + MFHD);
}

function trafBytes(run: RunHead): number {
  return 8 + TFHD + TFDT + trunBytes(run) + (run.auxiliary?.length ?? 0);
}

function headBytes(runs: readonly RunHead[]): number {
  return moofBytes(runs) + 8;
}

function writeHead(bytes: Buffer, start: number, sequence: number, runs: readonly RunHead[], payload: number): number {
  const moof = moofBytes(runs);
  let at = header(bytes, start, moof, 'moof');
  at = header(bytes, at, MFHD, 'mfhd');
  at = bytes.writeUInt32BE(0, at);
  at = bytes.writeUInt32BE(sequence % 0x1_0000_0000, at);
  let offset = moof + 8;
  for (const run of runs) {
    at = writeTraf(bytes, at, run, offset);
    offset += bytesOf([run]);
  }
  return header(bytes, at, 8 + payload, 'mdat');
}

function writeTraf(bytes: Buffer, start: number, run: RunHead, offset: number): number {
  const { type, trackId, baseTime, samples } = run;
  const video = type === 'video';
  const trun = trunBytes(run);
  let at = header(bytes, start, trafBytes(run), 'traf');
  at = header(bytes, at, TFHD, 'tfhd');
  at = bytes.writeUInt32BE(BASE_IS_MOOF | DEFAULT_FLAGS, at);
  at = bytes.writeUInt32BE(trackId, at);
  at = bytes.writeUInt32BE(video ? DEPENDENT : INDEPENDENT, at);
  at = header(bytes, at, TFDT, 'tfdt');
  at = bytes.writeUInt32BE(0x01000000, at);
  at = bytes.writeUInt32BE(Math.floor(baseTime / 0x1_0000_0000), at);
  at = bytes.writeUInt32BE(baseTime % 0x1_0000_0000, at);
  at = header(bytes, at, trun, 'trun');
  const perSample = SAMPLE_DURATION | SAMPLE_SIZE | (video ? SAMPLE_FLAGS | COMPOSITION_OFFSET : 0);
  at = bytes.writeUInt32BE(0x01000000 | DATA_OFFSET | perSample, at);
  at = bytes.writeUInt32BE(samples.length, at);
  at = bytes.writeInt32BE(offset, at);
  for (const sample of samples) {
    at = bytes.writeUInt32BE(sample.duration, at);
    at = bytes.writeUInt32BE(sample.data.length, at);
    if (!video) continue;
    at = bytes.writeUInt32BE(sample.key ? INDEPENDENT : DEPENDENT, at);
    at = bytes.writeInt32BE(sample.compositionOffset, at);
  }
  return run.auxiliary === undefined ? at : at + run.auxiliary.copy(bytes, at);
}

function header(bytes: Buffer, at: number, size: number, type: string): number {
  bytes.writeUInt32BE(size, at);
  bytes.write(type, at + 4, 'latin1');
  return at + 8;
}
