import { BitstreamError } from '../../codecs/bits.ts';
import { nalUnits } from '../../codecs/nal.ts';
import type { Subsample } from '../../containers/fmp4/protection.ts';
import type { MediaTrack } from '../../core/track.ts';
import type { NalSyntax, SliceHeaders } from './slice-headers.ts';
import { SubsampleList } from './subsample-list.ts';

const LENGTH_BYTES = 4;
/** Bytes in clear of a slice whose header cannot be read: nearly all headers are shorter. */
export const UNREAD_HEADER_BYTES = 64;

/** Finds what to encrypt in the frames of one track, which have to come in their order. */
export interface SubsampleFinder {
  /** Splits a frame. Whatever is wrong with it, its data is encrypted. */
  find(track: MediaTrack, data: Buffer): Subsample[];
}

/** Finds the data of slices of H.264 or H.265, without their headers. */
export class SliceFinder implements SubsampleFinder {
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
    return list.finish(data.length, LENGTH_BYTES);
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
