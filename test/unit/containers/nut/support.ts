import { readFileSync } from 'node:fs';
import { crc32 } from '../../../../src/containers/crc32.ts';
import { ID, START, type NutStream } from '../../../../src/containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../../../src/containers/nut/reader.ts';
import { v } from '../../../../src/containers/nut/vlc.ts';

export const NAMES = [
  'h264-aac-5.1',
  'h264-aac-7.0',
  'opus-v4-5.1',
  'opus-v4-7.0',
  'vp8-pipe-5.1',
  'vp8-pipe-7.0',
] as const;

/** A file that test/vectors/nut/make made. */
export function vector(file: string): Buffer {
  return readFileSync(new URL(`../../../vectors/nut/${file}`, import.meta.url));
}

export interface Read {
  readonly streams: readonly NutStream[];
  readonly frames: readonly NutFrame[];
}

/** Reads NUT in chunks of memory of their own. */
export function read(nut: Buffer, chunk = nut.length): Read {
  let streams: readonly NutStream[] = [];
  const frames: NutFrame[] = [];
  const reader = new NutReader({ streams: (told) => (streams = told), frame: (frame) => frames.push(frame) });
  for (let at = 0; at < nut.length; at += chunk) reader.push(Buffer.from(nut.subarray(at, at + chunk)));
  return { streams, frames };
}

/** A packet as NUT frames it. */
export function packet(start: keyof typeof START, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const head = Buffer.concat([Buffer.from(START[start], 'hex'), v(body.length + 4)]);
  return Buffer.concat([head, ...(body.length + 4 > 4096 ? [checksum(head)] : []), body, checksum(body)]);
}

/** The checksum of some bytes, as NUT has it behind them. */
export function checksum(data: Buffer): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(data));
  return bytes;
}

/** One entry of the frame code table, all of its fields told. */
export interface Entry {
  readonly flags: number;
  readonly delta?: number;
  readonly multiplier?: number;
  readonly stream?: number;
  readonly size?: number;
  readonly reserved?: number;
  readonly count?: number;
  readonly header?: number;
}

/** A main header of version 3 for streams in 1/1000 s, with a table of `entries` and the rest unused. */
export function mainHeader(streams: number, entries: readonly Entry[], elided: readonly Buffer[] = []): Buffer {
  const used = entries.reduce((sum, { count = 1 }) => sum + count, 0);
  const table = [...entries, { flags: 8192, count: 255 - used }].map((entry: Entry) => {
    const { flags, delta = 0, multiplier = 1, stream = 0, size = 0, reserved = 0, count = 1, header = 0 } = entry;
    const signed = delta > 0 ? delta * 2 - 1 : -delta * 2;
    return v(flags, 8, signed, multiplier, stream, size, reserved, count, 0, header);
  });
  const headers = elided.map((header) => Buffer.concat([v(header.length), header]));
  return packet('main', v(3, streams, 65_536, 1, 1, 1000), ...table, v(elided.length), ...headers);
}

/** A stream header: VP8 of 16x16 without extradata. */
export function streamHeader(index: number, ptsShift = 7): Buffer {
  return packet('stream', v(index, 0, 4), Buffer.from('VP80'), v(0, ptsShift, 100, 0, 0, 0, 16, 16, 0, 0, 0));
}

/** A file of one VP8 stream. */
export function file(entries: readonly Entry[], rest: readonly Buffer[], elided: readonly Buffer[] = []): Buffer {
  return Buffer.concat([ID, mainHeader(1, entries, elided), streamHeader(0), packet('syncpoint', v(0, 0)), ...rest]);
}
