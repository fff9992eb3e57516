import type { Packet } from '../core/packet.ts';
import { rescale, toSeconds, type Timebase } from '../core/timebase.ts';

/** Time that is 0 in a file. */
export interface Origin {
  readonly time: number;
  readonly timebase: Timebase;
}

/** Bytes to be overwritten. */
export interface Patch {
  readonly at: number;
  readonly data: Buffer;
}

/** Reads bytes of a file: fewer at its end. */
export type ReadAt = (at: number, bytes: number) => Promise<Buffer>;

/** Builds a file from packets. All output so far can be played, up to the last whole piece. */
export interface FileMuxer {
  /** Origin of the output so far; constant from the first bytes of media on. */
  readonly origin: Origin | undefined;
  /** Whether the index has become too large for more packets. */
  readonly full: boolean;
  /** @returns the next bytes: slices of packets, and the bytes between them */
  write(packet: Packet): readonly Buffer[];
  /** @returns the last bytes, and the patches to apply once they are written */
  end(): { readonly tail: readonly Buffer[]; readonly patches: readonly Patch[] };
}

/** Time of a packet in a file, in ticks of its track. */
export function timeIn({ time, timebase }: Origin, value: number, own: Timebase): number {
  return value - rescale(time, timebase, own);
}

export function earliest(times: readonly Origin[]): Origin | undefined {
  let first: Origin | undefined;
  for (const one of times) {
    if (first === undefined || toSeconds(one.time, one.timebase) < toSeconds(first.time, first.timebase)) first = one;
  }
  return first;
}
