import { skipFilmGrain } from './av1-film-grain.ts';
import { NO_MOTION, readGlobalMotion } from './av1-global-motion.ts';
import {
  allowsSkipMode,
  chooseReferences,
  referenceAt,
  REFERENCE_SLOTS,
  REFERENCES_PER_FRAME,
  type Av1Reference,
} from './av1-references.ts';
import { skipRemovalTimes } from './av1-frame-size.ts';
import type { Obu } from './av1-obu.ts';
import { FRAME_CHOOSES, type Av1SequenceHeader } from './av1-sequence.ts';
import { readTileInfo, type Av1TileInfo } from './av1-tile-info.ts';
import { BitReader } from './bits.ts';

const FRAME = { key: 0, inter: 1, intraOnly: 2, switch: 3 } as const;
const NO_PRIMARY = 7;
const ALL_SLOTS = (1 << REFERENCE_SLOTS) - 1;
const SEGMENTS = 8;
/** Bits of the features of a segment; negative: with a sign (AV1 5.9.14). */
const FEATURE_BITS = [-8, -6, -6, -6, -6, 3, 0, 0] as const;
const NO_QUANTIZERS: readonly undefined[] = Array.from({ length: SEGMENTS }, () => undefined);

/** Slots of references by number; undefined for one that is empty. */
export type Av1Slots = readonly (Av1Reference | undefined)[];

export interface Av1FrameHeader {
  /** undefined for a frame that was decoded before, and is only shown now. */
  readonly tiles: Av1TileInfo | undefined;
  /** Bits of the header. */
  readonly bits: number;
  /** Slots as they are after the frame. */
  readonly slots: Av1Slots;
}

/**
 * Reads a frame header (`uncompressed_header()`, AV1 5.9.2) to its end.
 * @param obu a frame, or its frame header
 * @throws BitstreamError when it is malformed, or needs a reference that is not there
 */
export function readFrameHeader(obu: Obu, sequence: Av1SequenceHeader, slots: Av1Slots): Av1FrameHeader {
  return new FrameHeaderReader(obu, sequence, slots).read();
}

interface FrameSize {
  readonly upscaledWidth: number;
  readonly width: number;
  readonly height: number;
}

/** Properties of a frame that later parts of its header depend on. */
interface Kind {
  readonly type: number;
  readonly isIntra: boolean;
  readonly isShown: boolean;
  /** Whether it is shown, now or later. */
  readonly isShowable: boolean;
  readonly resilient: boolean;
}

interface Quantizer {
  readonly base: number;
  /** Whether all differences to it are 0. */
  readonly plain: boolean;
}

class FrameHeaderReader {
  readonly #obu: Obu;
  readonly #sequence: Av1SequenceHeader;
  readonly #slots: Av1Slots;
  readonly #reader: BitReader;
  readonly #syntax: Av1SequenceHeader['frames'];

  constructor(obu: Obu, sequence: Av1SequenceHeader, slots: Av1Slots) {
    this.#obu = obu;
    this.#sequence = sequence;
    this.#slots = slots;
    this.#reader = new BitReader(obu.payload);
    this.#syntax = sequence.frames;
  }

  read(): Av1FrameHeader {
    const reader = this.#reader;
    if (!this.#sequence.reducedStillPicture && reader.flag()) return this.#shown();
    const kind = this.#readKind();
    const disablesUpdate = reader.flag();
    const { orderHintBits, frameIdBits } = this.#syntax;
    const screenContent = this.#choice(this.#syntax.screenContent);
    const integerMotion = screenContent && this.#choice(this.#syntax.integerMotion);
    reader.skip(frameIdBits);
    const hasOwnSize = kind.type === FRAME.switch || (!this.#sequence.reducedStillPicture && reader.flag());
    const orderHint = reader.read(orderHintBits);
    const primary = kind.isIntra || kind.resilient ? NO_PRIMARY : reader.read(3);
    skipRemovalTimes(reader, this.#obu, this.#syntax);
    const refreshesAll = kind.type === FRAME.switch || (kind.type === FRAME.key && kind.isShown);
    const refreshed = refreshesAll ? ALL_SLOTS : reader.read(8);
    const hints = this.#readHints(kind, refreshed);
    let size: FrameSize;
    let copiesBlocks = false;
    let references: readonly number[] = [];
    let highPrecision = false;
    if (kind.isIntra) {
      size = this.#readSizes(hasOwnSize);
      copiesBlocks = screenContent && size.upscaledWidth === size.width && reader.flag();
    } else {
      references = this.#readReferences(hints, orderHint);
      size = hasOwnSize && !kind.resilient ? this.#readSizeWithReferences(references) : this.#readSizes(hasOwnSize);
      highPrecision = !integerMotion && reader.flag();
      // is_filter_switchable, interpolation_filter
      if (!reader.flag()) reader.skip(2);
      // is_motion_mode_switchable, use_ref_frame_mvs
      reader.skip(!kind.resilient && this.#syntax.tools.refFrameMvs ? 2 : 1);
    }
    // disable_frame_end_update_cdf
    if (!this.#sequence.reducedStillPicture && !disablesUpdate) reader.skip(1);
    const before = primary === NO_PRIMARY ? undefined : referenceAt(this.#slots, references[primary] ?? -1);
    const tiles = readTileInfo(reader, size, this.#syntax.largeSuperblocks);
    const quantizer = this.#readQuantizer();
    const quantizers = this.#readSegmentation(before);
    this.#skipDeltas(quantizer, copiesBlocks);
    const lossless = quantizers.every(
      (change) => quantizer.plain && Math.min(255, Math.max(0, quantizer.base + (change ?? 0))) === 0,
    );
    this.#skipFilters(lossless, copiesBlocks, size);
    // tx_mode_select
    if (!lossless) reader.skip(1);
    this.#skipModes(
      kind,
      references.map((slot) => hints[slot] ?? 0),
      orderHint,
    );
    const motion = kind.isIntra ? NO_MOTION : readGlobalMotion(reader, before?.motion ?? NO_MOTION, highPrecision);
    if (this.#syntax.tools.filmGrain && kind.isShowable)
      skipFilmGrain(reader, this.#sequence, kind.type === FRAME.inter);
    const reference = { isKeyFrame: kind.type === FRAME.key, orderHint, ...size, motion, quantizers };
    return {
      tiles,
      bits: reader.position,
      slots: this.#slots.map((slot, index) => ((refreshed >> index) & 1 ? reference : slot)),
    };
  }

  /** Reads the rest for a frame that was decoded before: a key frame then fills all slots (AV1 7.21). */
  #shown(): Av1FrameHeader {
    const reader = this.#reader;
    const shown = referenceAt(this.#slots, reader.read(3));
    reader.skip(this.#syntax.presentationTimeBits + this.#syntax.frameIdBits);
    return {
      tiles: undefined,
      bits: reader.position,
      slots: shown.isKeyFrame ? this.#slots.map(() => shown) : this.#slots,
    };
  }

  #readKind(): Kind {
    const reader = this.#reader;
    if (this.#sequence.reducedStillPicture)
      return { type: FRAME.key, isIntra: true, isShown: true, isShowable: true, resilient: true };
    const type = reader.read(2);
    const isShown = reader.flag();
    if (isShown) reader.skip(this.#syntax.presentationTimeBits);
    const isShowable = isShown || reader.flag();
    const resilient = type === FRAME.switch || (type === FRAME.key && isShown) || reader.flag();
    return { type, isIntra: type === FRAME.key || type === FRAME.intraOnly, isShown, isShowable, resilient };
  }

  /** Value of a tool that the sequence sets, or lets each frame choose. */
  #choice(value: number): boolean {
    return value === FRAME_CHOOSES ? this.#reader.flag() : value === 1;
  }

  /** Order hints of the slots, which a frame may give anew. */
  #readHints({ type, isIntra, isShown, resilient }: Kind, refreshed: number): number[] {
    const { orderHintBits } = this.#syntax;
    const hints = this.#slots.map((slot) => (type === FRAME.key && isShown ? 0 : (slot?.orderHint ?? 0)));
    if (isIntra && refreshed === ALL_SLOTS) return hints;
    if (!resilient || orderHintBits === 0) return hints;
    return hints.map(() => this.#reader.read(orderHintBits));
  }

  #readReferences(hints: readonly number[], orderHint: number): readonly number[] {
    const reader = this.#reader;
    const { orderHintBits, frameIdBits, deltaFrameIdBits } = this.#syntax;
    const isShort = orderHintBits > 0 && reader.flag();
    const chosen = isShort
      ? chooseReferences(hints, orderHint, orderHintBits, reader.read(3), reader.read(3))
      : undefined;
    return Array.from({ length: REFERENCES_PER_FRAME }, (_, index) => {
      const slot = chosen?.[index] ?? reader.read(3);
      if (frameIdBits > 0) reader.skip(deltaFrameIdBits);
      return slot;
    });
  }

  /** `frame_size()` and `render_size()` (AV1 5.9.5 and 5.9.6). */
  #readSizes(hasOwnSize: boolean): FrameSize {
    const reader = this.#reader;
    const { widthBits, heightBits } = this.#syntax;
    const { width, height } = hasOwnSize
      ? { width: reader.read(widthBits) + 1, height: reader.read(heightBits) + 1 }
      : this.#sequence;
    const size = this.#readSuperres(width, height);
    if (reader.flag()) reader.skip(32);
    return size;
  }

  /** `frame_size_with_refs()` (AV1 5.9.7). */
  #readSizeWithReferences(references: readonly number[]): FrameSize {
    for (const slot of references) {
      if (!this.#reader.flag()) continue;
      const { upscaledWidth, height } = referenceAt(this.#slots, slot);
      return this.#readSuperres(upscaledWidth, height);
    }
    return this.#readSizes(true);
  }

  /** `superres_params()` (AV1 5.9.8). */
  #readSuperres(upscaledWidth: number, height: number): FrameSize {
    const denominator = this.#syntax.superres && this.#reader.flag() ? this.#reader.read(3) + 9 : 8;
    const width = Math.floor((upscaledWidth * 8 + Math.floor(denominator / 2)) / denominator);
    return { upscaledWidth, width, height };
  }

  /** `quantization_params()` (AV1 5.9.12). */
  #readQuantizer(): Quantizer {
    const reader = this.#reader;
    const { monochrome, frames } = this.#sequence;
    const base = reader.read(8);
    let plain = true;
    const readDelta = (): void => {
      if (reader.flag() && reader.read(7) !== 0) plain = false;
    };
    readDelta();
    if (!monochrome) {
      const differs = frames.tools.separateUvDeltaQ && reader.flag();
      for (let left = differs ? 4 : 2; left > 0; left--) readDelta();
    }
    // using_qmatrix, qm_y, qm_u, qm_v
    if (reader.flag()) reader.skip(frames.tools.separateUvDeltaQ ? 12 : 8);
    return { base, plain };
  }

  /** `segmentation_params()` (AV1 5.9.14). @returns changes of the quantizer by segment */
  #readSegmentation(before: Av1Reference | undefined): readonly (number | undefined)[] {
    const reader = this.#reader;
    if (!reader.flag()) return NO_QUANTIZERS;
    if (before !== undefined) {
      // update_map, temporal_update
      if (reader.flag()) reader.skip(1);
      if (!reader.flag()) return before.quantizers;
    }
    return NO_QUANTIZERS.map(() => {
      const values = FEATURE_BITS.map((bits) => {
        if (!reader.flag()) return undefined;
        if (bits >= 0) return reader.read(bits);
        const value = reader.read(1 - bits);
        return value >= 2 ** -bits ? value - 2 ** (1 - bits) : value;
      });
      return values[0];
    });
  }

  /** `delta_q_params()` and `delta_lf_params()` (AV1 5.9.17 and 5.9.18). */
  #skipDeltas({ base }: Quantizer, copiesBlocks: boolean): void {
    const reader = this.#reader;
    if (base === 0 || !reader.flag()) return;
    reader.skip(2);
    if (!copiesBlocks && reader.flag()) reader.skip(3);
  }

  /** `loop_filter_params()`, `cdef_params()` and `lr_params()` (AV1 5.9.11, 5.9.19 and 5.9.20). */
  #skipFilters(lossless: boolean, copiesBlocks: boolean, size: FrameSize): void {
    const reader = this.#reader;
    const { monochrome, frames } = this.#sequence;
    if (copiesBlocks) return;
    if (!lossless) {
      this.#skipLoopFilter();
      if (frames.tools.cdef) {
        reader.skip(2);
        reader.skip((monochrome ? 6 : 12) * 2 ** reader.read(2));
      }
    }
    const isAllLossless = lossless && size.width === size.upscaledWidth;
    if (frames.tools.restoration && !isAllLossless) this.#skipRestoration();
  }

  #skipLoopFilter(): void {
    const reader = this.#reader;
    const levels = [reader.read(6), reader.read(6)];
    if (!this.#sequence.monochrome && levels.some((level) => level > 0)) reader.skip(12);
    // loop_filter_sharpness
    reader.skip(3);
    if (!reader.flag() || !reader.flag()) return;
    for (let left = REFERENCE_SLOTS + 2; left > 0; left--) if (reader.flag()) reader.skip(7);
  }

  #skipRestoration(): void {
    const reader = this.#reader;
    const { monochrome, subsamplingX, subsamplingY, frames } = this.#sequence;
    const types = Array.from({ length: monochrome ? 1 : 3 }, () => reader.read(2));
    if (types.every((type) => type === 0)) return;
    // lr_unit_shift, lr_unit_extra_shift
    if (reader.flag() && !frames.largeSuperblocks) reader.skip(1);
    // lr_uv_shift
    if (subsamplingX && subsamplingY && types.slice(1).some((type) => type > 0)) reader.skip(1);
  }

  /** From `frame_reference_mode()` to `reduced_tx_set` (AV1 5.9.23 and 5.9.22). @param hints of the references */
  #skipModes({ isIntra, resilient }: Kind, hints: readonly number[], orderHint: number): void {
    const reader = this.#reader;
    const { orderHintBits, tools } = this.#syntax;
    const isCompound = !isIntra && reader.flag();
    if (isCompound && allowsSkipMode(hints, orderHint, orderHintBits)) reader.skip(1);
    if (!isIntra && !resilient && tools.warpedMotion) reader.skip(1);
    // reduced_tx_set
    reader.skip(1);
  }
}
