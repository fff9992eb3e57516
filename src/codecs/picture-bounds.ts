import { tolerant } from './bits.ts';
import { parsePps } from './h264-pps.ts';
import { parseSliceHead, parseSliceStart, type H264SliceHead, type H264SliceStart } from './h264-slice.ts';
import { NAL as H264, nalType as h264Type, parseSps, type H264Sps } from './h264.ts';
import { NAL as H265, nalType as h265Type, parseSliceStart as parseH265Start } from './h265.ts';
import { MAX_SET_BYTES } from './parameter-sets.ts';

/** Relation of a slice to the preceding picture: none, another slice of it, or its second field. */
export type Belonging = 'none' | 'slice' | 'field';

/** Finds the first NAL unit of each picture in decoding order, with or without access unit delimiters. */
export interface PictureBounds {
  /** Whether this is a slice of the base layer and base view. */
  isSlice(nal: Buffer): boolean;
  /** Whether this NAL unit begins another picture when it follows a slice. */
  isLeading(nal: Buffer): boolean;
  isDelimiter(nal: Buffer): boolean;
  /** Records a NAL unit other than a slice: parameter sets are needed to read slices. */
  note(nal: Buffer): void;
  /** Relation of a slice to the picture of the latest slice. */
  belongs(nal: Buffer, delimited: boolean): Belonging;
  /** Records a slice. @param delimited a delimiter precedes it */
  take(nal: Buffer, delimited: boolean): Belonging;
  /** Forgets the preceding picture, at a discontinuity. */
  restart(): void;
}

/** Properties of a slice by which H.264 7.4.1.2.4 separates pictures. */
interface Picture {
  readonly start: H264SliceStart;
  /** undefined while its parameter sets are unknown. */
  readonly head: H264SliceHead | undefined;
  readonly isReference: boolean;
  /** Both fields of the frame were seen. */
  readonly isPair: boolean;
}

export class H264Bounds implements PictureBounds {
  /** By id, with the bytes of the set. */
  readonly #sps = new Map<number, { readonly nal: Buffer; readonly sps: H264Sps }>();
  readonly #pps = new Map<number, number>();
  #last: Picture | undefined;

  isSlice(nal: Buffer): boolean {
    const type = h264Type(nal);
    return type >= H264.slice && type <= H264.idr;
  }

  /** H.264 7.4.1.2.3. */
  isLeading(nal: Buffer): boolean {
    const type = h264Type(nal);
    return (type >= H264.sei && type <= H264.delimiter) || (type >= 14 && type <= 18);
  }

  isDelimiter(nal: Buffer): boolean {
    return h264Type(nal) === H264.delimiter;
  }

  note(nal: Buffer): void {
    const type = h264Type(nal);
    if (type === H264.sps && nal.length <= MAX_SET_BYTES) {
      for (const known of this.#sps.values()) if (known.nal.equals(nal)) return;
      const sps = tolerant(() => parseSps(nal));
      if (sps !== undefined) this.#sps.set(sps.id, { nal: Buffer.from(nal), sps });
    } else if (type === H264.pps) {
      const pps = tolerant(() => parsePps(nal));
      if (pps !== undefined) this.#pps.set(pps.id, pps.sps);
    }
  }

  belongs(nal: Buffer, delimited: boolean): Belonging {
    return belonging(this.#last, this.#read(nal), delimited);
  }

  take(nal: Buffer, delimited: boolean): Belonging {
    const picture = this.#read(nal);
    const belongs = belonging(this.#last, picture, delimited);
    const isPair = belongs === 'field' || (belongs === 'slice' && this.#last?.isPair === true);
    if (picture !== undefined) this.#last = { ...picture, isPair };
    return belongs;
  }

  restart(): void {
    this.#last = undefined;
  }

  #read(nal: Buffer): Omit<Picture, 'isPair'> | undefined {
    const start = tolerant(() => parseSliceStart(nal));
    if (start === undefined) return undefined;
    const sps = this.#sps.get(this.#pps.get(start.pps) ?? -1)?.sps;
    const head = sps && tolerant(() => parseSliceHead(nal, sps));
    return { start, head, isReference: ((nal[0] as number) & 0x60) !== 0 };
  }
}

function belonging(
  last: Picture | undefined,
  next: Omit<Picture, 'isPair'> | undefined,
  delimited: boolean,
): Belonging {
  // partitions B and C have no such header, and belong to the picture of their partition A
  if (next === undefined) return delimited ? 'none' : 'slice';
  if (last === undefined) return 'none';
  const { head } = next;
  if (last.head === undefined || head === undefined) return delimited || next.start.firstMb === 0 ? 'none' : 'slice';
  if (isSecondField(last, last.head, next, head)) return 'field';
  const isSame =
    !delimited &&
    head.frameNum === last.head.frameNum &&
    head.field === last.head.field &&
    head.idrId === last.head.idrId &&
    head.pocLsb === last.head.pocLsb &&
    next.isReference === last.isReference;
  // without a picture order count in reach, only the first macroblock separates pictures: a picture has it once
  return isSame && (head.pocLsb !== undefined || head.firstMb !== 0) ? 'slice' : 'none';
}

/** Whether `next` is the other field of a frame (H.264 3.30, complementary field pairs). */
function isSecondField(
  last: Picture,
  before: H264SliceHead,
  next: Omit<Picture, 'isPair'>,
  head: H264SliceHead,
): boolean {
  return (
    !last.isPair &&
    before.field !== 'frame' &&
    head.field !== 'frame' &&
    head.field !== before.field &&
    head.frameNum === before.frameNum &&
    head.idrId === undefined &&
    next.isReference === last.isReference
  );
}

const LAYER_BITS = 0x01f8;

export class H265Bounds implements PictureBounds {
  #began = false;

  isSlice(nal: Buffer): boolean {
    return h265Type(nal) <= H265.lastVcl && nal.length > 1 && (nal.readUInt16BE(0) & LAYER_BITS) === 0;
  }

  /** H.265 7.4.2.4.4. */
  isLeading(nal: Buffer): boolean {
    const type = h265Type(nal);
    return (
      (type >= H265.vps && type <= H265.delimiter) ||
      type === H265.prefixSei ||
      (type >= 41 && type <= 44) ||
      (type >= 48 && type <= 55)
    );
  }

  isDelimiter(nal: Buffer): boolean {
    return h265Type(nal) === H265.delimiter;
  }

  note(): void {
    // a slice segment says itself whether it is the first
  }

  belongs(nal: Buffer, delimited: boolean): Belonging {
    if (!this.#began || delimited) return 'none';
    return tolerant(() => parseH265Start(nal).isFirst) === true ? 'none' : 'slice';
  }

  take(nal: Buffer, delimited: boolean): Belonging {
    const belongs = this.belongs(nal, delimited);
    this.#began = true;
    return belongs;
  }

  restart(): void {
    this.#began = false;
  }
}
