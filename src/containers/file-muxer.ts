import type { Packet } from '../core/packet.ts';
import { rescale, toSeconds, type Timebase } from '../core/timebase.ts';

/** Where the times of a file begin: at 0 is what has this time. */
export interface Origin {
  readonly time: number;
  readonly timebase: Timebase;
}

/** Bytes that replace others. */
export interface Patch {
  readonly at: number;
  readonly data: Buffer;
}

/** Bytes of a file: as many as are there. */
export type ReadAt = (at: number, bytes: number) => Promise<Buffer>;

/** Makes a file of packets while they come. Whatever it has put out can be played, to the last whole piece of it. */
export interface FileMuxer {
  /** Of what is there so far; the same from the first bytes of media on. */
  readonly origin: Origin | undefined;
  /** It takes no more without limit: its index has become too large. */
  readonly full: boolean;
  /** @returns what follows the bytes before: slices of packets, and what stands between */
  write(packet: Packet): readonly Buffer[];
  /** @returns the last bytes, and what is to be overwritten when they are written */
  end(): { readonly tail: readonly Buffer[]; readonly patches: readonly Patch[] };
}

/** The time of a packet in a file, in ticks of its track. */
export function timeIn({ time, timebase }: Origin, value: number, own: Timebase): number {
  return value - rescale(time, timebase, own);
}

/** The earliest of some times. */
export function earliest(times: readonly Origin[]): Origin | undefined {
  let first: Origin | undefined;
  for (const one of times) {
    if (first === undefined || toSeconds(one.time, one.timebase) < toSeconds(first.time, first.timebase)) first = one;
  }
  return first;
}
