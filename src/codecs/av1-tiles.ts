import { readFrameHeader, type Av1Slots } from './av1-frame-header.ts';
import { OBU, type Obu } from './av1-obu.ts';
import { REFERENCE_SLOTS } from './av1-references.ts';
import { parseSequenceHeader, type Av1SequenceHeader } from './av1-sequence.ts';
import type { Av1TileInfo } from './av1-tile-info.ts';
import { BitReader, BitstreamError } from './bits.ts';

/** Bytes of a tile's data: offsets in the payload of its OBU. */
export interface TileRange {
  readonly from: number;
  readonly to: number;
}

const NO_SLOTS: Av1Slots = Array.from({ length: REFERENCE_SLOTS }, () => undefined);

/** Finds the data of tiles (`decode_tile()`, AV1 5.11.1) in the OBUs of one stream, which have to come in their order. */
export class Av1Tiles {
  #sequence: Av1SequenceHeader | undefined;
  #slots = NO_SLOTS;
  /** Tiles of the frame whose tile groups are still to come. */
  #tiles: Av1TileInfo | undefined;

  /** Begins a temporal unit: what is missing of the one before does not come any more. */
  begin(): void {
    this.#tiles = undefined;
  }

  /**
   * Reads an OBU.
   * @returns its tiles, in order; none for an OBU without
   * @throws BitstreamError when it is malformed, or depends on what was missing before
   */
  read(obu: Obu): readonly TileRange[] {
    const { type, payload } = obu;
    if (type === OBU.sequenceHeader) this.#sequence = parseSequenceHeader(payload);
    if (type === OBU.tileGroup) return this.#readGroup(payload, 0);
    // further frame headers of a frame are copies of the first (AV1 5.9.1)
    if (type === OBU.frame || (type === OBU.frameHeader && this.#tiles === undefined)) {
      const bytes = Math.ceil(this.#readHeader(obu) / 8);
      if (type === OBU.frame) return this.#readGroup(payload, bytes);
    }
    return [];
  }

  /** @returns bits of the header */
  #readHeader(obu: Obu): number {
    this.#tiles = undefined;
    if (this.#sequence === undefined) throw new BitstreamError('an AV1 frame without a sequence header');
    const { tiles, bits, slots } = readFrameHeader(obu, this.#sequence, this.#slots);
    this.#tiles = tiles;
    this.#slots = slots;
    return bits;
  }

  /** `tile_group_obu()` (AV1 5.11.1). @param at offset of the group */
  #readGroup(payload: Buffer, at: number): TileRange[] {
    const tiles = this.#tiles;
    if (tiles === undefined) throw new BitstreamError('AV1 tiles without a frame header');
    const { count, numberBits, sizeBytes } = tiles;
    const reader = new BitReader(payload.subarray(at));
    let [first, last] = [0, count - 1];
    if (count > 1 && reader.flag()) [first, last] = [reader.read(numberBits), reader.read(numberBits)];
    if (last < first || last >= count) throw new BitstreamError('an AV1 tile group has tiles that are not there');
    if (last === count - 1) this.#tiles = undefined;
    const found: TileRange[] = [];
    let from = at + Math.ceil(reader.position / 8);
    for (let tile = first; tile <= last; tile++) {
      let to = payload.length;
      if (tile < last) {
        if (from + sizeBytes > to) throw new BitstreamError('an AV1 tile has no size');
        const size = payload.readUIntLE(from, sizeBytes) + 1;
        from += sizeBytes;
        if (from + size > to) throw new BitstreamError('an AV1 tile is longer than its OBU');
        to = from + size;
      }
      if (from > to) throw new BitstreamError('an AV1 frame ends in its header');
      found.push({ from, to });
      from = to;
    }
    return found;
  }
}
