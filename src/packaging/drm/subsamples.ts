import { BitstreamError } from '../../codecs/bits.ts';
import { nalUnits } from '../../codecs/nal.ts';
import { MAX_SUBSAMPLES, type Subsample } from '../../containers/fmp4/protection.ts';
import type { MediaTrack } from '../../core/track.ts';
import type { NalSyntax, SliceHeaders } from './slice-headers.ts';

export const BLOCK_BYTES = 16;
const LENGTH_BYTES = 4;
const MAX_CLEAR = 0xffff;
/** Bytes in clear of a slice whose header cannot be read: nearly all headers are shorter. */
const UNREAD_HEADER_BYTES = 64;

/** Finds what to encrypt in the frames of one track of H.264 or H.265: the data of slices, without their headers. */
export class SubsampleFinder {
  readonly #syntax: NalSyntax;
  readonly #aligned: boolean;
  #config: Buffer | undefined;
  #headers: SliceHeaders;

  /** @param aligned whether only whole blocks are encrypted, as `cenc` asks (ISO/IEC 23001-7, 9.5.2.2) */
  constructor(syntax: NalSyntax, aligned: boolean) {
    this.#syntax = syntax;
    this.#aligned = aligned;
    this.#headers = syntax.headers();
  }

  /** Splits a frame: NAL units after lengths of 4 bytes. Whatever is wrong with it, its slices are encrypted. */
  find(track: MediaTrack, data: Buffer): Subsample[] {
    this.#configure(track.config);
    const list = new SubsampleList(this.#aligned);
    try {
      for (const nal of nalUnits(data)) {
        const kind = this.#syntax.kindOf(nal);
        const at = nal.byteOffset - data.byteOffset;
        if (kind === 'parameterSet') this.#headers.add(nal);
        if (kind !== 'slice') continue;
        if (list.full) break;
        list.add(at + Math.min(this.#headerOf(nal), nal.length), at + nal.length);
      }
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      list.add(Math.min(list.end + LENGTH_BYTES, data.length), data.length);
    }
    return list.finish(data.length);
  }

  #headerOf(nal: Buffer): number {
    try {
      return this.#headers.bytes(nal);
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      return UNREAD_HEADER_BYTES;
    }
  }

  #configure(config: Buffer | undefined): void {
    if (config === undefined || config === this.#config) return;
    this.#config = config;
    this.#headers = this.#syntax.headers();
    for (const set of this.#syntax.parameterSetsOf(config)) this.#headers.add(set);
  }
}

/** Subsamples of one frame, from the begin on. */
class SubsampleList {
  readonly #aligned: boolean;
  readonly #all: Subsample[] = [];
  /** Offset of the first byte that is in no subsample. */
  end = 0;

  constructor(aligned: boolean) {
    this.#aligned = aligned;
  }

  /** Whether only one more range fits: it then takes the rest of the frame. */
  get full(): boolean {
    return this.#all.length >= MAX_SUBSAMPLES - 2;
  }

  /** Encrypts from an offset up to another. */
  add(from: number, to: number): void {
    const start = this.#aligned ? to - Math.floor((to - from) / BLOCK_BYTES) * BLOCK_BYTES : from;
    if (to - start < BLOCK_BYTES) return;
    this.#clear(start);
    this.#all[this.#all.length - 1] = { clear: this.#last.clear, encrypted: to - start };
    this.end = to;
  }

  finish(length: number): Subsample[] {
    if (this.full && this.end < length) this.add(this.end + LENGTH_BYTES, length);
    if (this.end < length) this.#clear(length);
    return this.#all;
  }

  get #last(): Subsample {
    return this.#all.at(-1) as Subsample;
  }

  #clear(until: number): void {
    do {
      const clear = Math.min(until - this.end, MAX_CLEAR);
      this.#all.push({ clear, encrypted: 0 });
      this.end += clear;
    } while (this.end < until);
  }
}
