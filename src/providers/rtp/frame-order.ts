import { tolerant } from '../../codecs/bits.ts';
import { parseSliceHead, type H264SliceHead } from '../../codecs/h264-slice.ts';
import { nalType, NAL, parseAvcConfig, parseSps, type H264Sps } from '../../codecs/h264.ts';
import { bareNals, nalUnits } from '../../codecs/nal.ts';

/**
 * Follows the picture order counts of H.264 (8.2.1), which show that frames are missing in output order before they
 * arrive: most encoders count frames by two, some by one.
 */
export class FrameOrder {
  readonly #sps: H264Sps;
  #perFrame = 2;
  #highest: number | undefined;

  /** @param config of the track. @throws BitstreamError when it is malformed */
  constructor(config: Buffer) {
    this.#sps = parseSps(parseAvcConfig(config).sps[0] as Buffer);
  }

  /**
   * Adds the next frame in decoding order.
   * @param data NAL units after lengths of 4 bytes
   * @returns frames from the last one in output order to this one; 0 when it comes between others, or has no count
   */
  step(data: Buffer): number {
    const head = this.#headOf(data);
    if (head?.pocLsb === undefined || head.field === 'bottom') return 0;
    const ahead = this.#ahead(head);
    if (ahead === undefined || ahead > 0) this.#highest = head.pocLsb;
    return ahead === undefined ? 1 : this.#frames(ahead);
  }

  restart(): void {
    this.#highest = undefined;
  }

  /** Result of `step` for the next frame, without adding it. */
  peek(data: Buffer): number {
    const head = this.#headOf(data);
    return this.#frames((head && this.#ahead(head)) ?? 0);
  }

  /** Difference from the highest count; undefined when counts begin anew. */
  #ahead({ pocLsb = 0, idrId }: H264SliceHead): number | undefined {
    if (idrId !== undefined || this.#highest === undefined) return undefined;
    const range = 2 ** this.#sps.pocLsbBits;
    const ahead = ((((pocLsb - this.#highest) % range) + range + range / 2) % range) - range / 2;
    if (ahead % 2 !== 0) this.#perFrame = 1;
    return ahead;
  }

  #frames(ahead: number): number {
    return ahead > 0 ? Math.ceil(ahead / this.#perFrame) : 0;
  }

  #headOf(data: Buffer): H264SliceHead | undefined {
    return tolerant(() => {
      // a whole byte stream may begin with other units
      const slice = firstSlice(nalUnits(data)) ?? firstSlice(bareNals(data));
      return slice && parseSliceHead(slice, this.#sps);
    });
  }
}

function firstSlice(nals: Iterable<Buffer>): Buffer | undefined {
  for (const nal of nals) {
    const type = nalType(nal);
    if (type === NAL.slice || type === NAL.partitionA || type === NAL.idr) return nal;
  }
  return undefined;
}

/** Number of frames that may wait for others when `step` frames lie between two in output order. */
export function reorderedIn(step: number): number {
  return step > 1 ? Math.ceil(Math.log2(step)) : 0;
}
