import { OBU, obus, type Obu } from '../../codecs/av1-obu.ts';
import { Av1Tiles, type TileRange } from '../../codecs/av1-tiles.ts';
import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import type { Subsample } from '../../containers/fmp4/protection.ts';
import type { MediaTrack } from '../../core/track.ts';
import { BLOCK_BYTES, SubsampleList } from './subsample-list.ts';
import { UNREAD_HEADER_BYTES, type SubsampleFinder } from './subsamples.ts';

/** Bytes of an `av1C` before its OBUs. */
const CONFIG_BYTES = 4;
/** Longest header of an OBU with its size. */
const OBU_HEADER_BYTES = 10;

/** Finds the data of tiles of AV1 (AV1 Codec ISO Media File Format Binding, "Common Encryption"): all else stays in clear. */
export class TileFinder implements SubsampleFinder {
  readonly #aligned: boolean;
  #config: Buffer | undefined;
  #tiles = new Av1Tiles();

  /** @param aligned whether only whole blocks are encrypted, as `cenc` asks */
  constructor(aligned: boolean) {
    this.#aligned = aligned;
  }

  find({ config }: MediaTrack, data: Buffer): Subsample[] {
    this.#configure(config);
    this.#tiles.begin();
    // with `cbcs` each tile has a subsample, however short it is
    const list = new SubsampleList(this.#aligned, this.#aligned ? BLOCK_BYTES : 0);
    try {
      for (const obu of obus(data)) {
        const at = obu.payload.byteOffset - data.byteOffset;
        for (const { from, to } of this.#rangesOf(obu)) {
          if (list.full) break;
          list.add(at + from, at + to);
        }
      }
    } catch (error) {
      if (!(error instanceof BitstreamError)) throw error;
      list.add(Math.min(list.end + OBU_HEADER_BYTES, data.length), data.length);
    }
    return list.finish(data.length, OBU_HEADER_BYTES);
  }

  #rangesOf(obu: Obu): readonly TileRange[] {
    const ranges = tolerant(() => this.#tiles.read(obu));
    if (ranges !== undefined) return ranges;
    const { type, payload } = obu;
    if (type !== OBU.frame && type !== OBU.tileGroup) return [];
    return [{ from: Math.min(UNREAD_HEADER_BYTES, payload.length), to: payload.length }];
  }

  #configure(config: Buffer | undefined): void {
    if (config === undefined || config === this.#config) return;
    this.#config = config;
    this.#tiles = new Av1Tiles();
    tolerant(() => {
      for (const obu of obus(config.subarray(CONFIG_BYTES))) this.#tiles.read(obu);
    });
  }
}
