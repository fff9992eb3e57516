import { tolerant } from '../../codecs/bits.ts';
import { NAL as H264_NAL, nalType as h264Type, parseSps } from '../../codecs/h264.ts';
import { NAL as H265_NAL, nalType as h265Type } from '../../codecs/h265.ts';
import { joinNals, splitAnnexB } from '../../codecs/nal.ts';
import type { PesHeader } from './pes-header.ts';
import { ticksBetween, wrapped } from './times.ts';

/** A picture as length-prefixed NAL units with everything that came with it, in memory of its own. Times are on CLOCK. */
export interface AccessUnit {
  readonly data: Buffer;
  /** Of decoding. */
  readonly time: number;
  /** From there to presentation; negative where the source tells it so. */
  readonly compositionTime: number;
}

export interface AccessUnitsEvents {
  unit(unit: AccessUnit): void;
  /** A part of a picture is missing, or its time. */
  damaged(reason: string): void;
}

/** Packets that tell so much may be continued in another one: 65,535 is the most that they can tell. */
const MAY_CONTINUE_BYTES = 65_000;
/** Pictures, behind one that was continued, of which the next is looked for: some senders continue key frames alone. */
const MEMORY = 250;
/** NAL units of a packet; a picture has a few, one with a slice for each row of blocks some hundred. */
const MAX_NALS = 1024;
const MAX_UNIT_BYTES = 8 * 1024 * 1024;
/** Ticks from one picture to the next, until it is seen. */
const USUAL_STEP = 3600;
const MAX_STEP = 90_000;

/**
 * Pictures of H.264 or H.265 out of PES packets. Nearly every packet holds one picture; one that is too long for the
 * length field may be in several, and several pictures may be in one, each behind its access unit delimiter.
 */
export class AccessUnits {
  readonly #isH264: boolean;
  readonly #events: AccessUnitsEvents;
  /** Pieces of a picture that may be continued. */
  #held: { readonly header: PesHeader; readonly pieces: Buffer[]; bytes: number } | undefined;
  /** Pictures that are still held back because this sender continued one of any length. */
  #remembered = 0;
  /** What goes on now may be of a picture that is missing. */
  #lost = false;
  #last: number | undefined;
  #step = USUAL_STEP;
  #sps: Buffer | undefined;
  #interlaced = false;

  constructor(codec: 'H264' | 'H265', events: AccessUnitsEvents) {
    this.#isH264 = codec === 'H264';
    this.#events = events;
  }

  /** @param payload of a PES packet; it is not kept */
  push(header: PesHeader, payload: Buffer): void {
    if (header.pts === undefined && !startsWithCode(payload)) {
      this.#continue(payload);
      return;
    }
    this.flush();
    this.#lost = false;
    if (this.#remembered > 0 || isLong(header)) {
      this.#remembered = Math.max(0, this.#remembered - 1);
      this.#held = { header, pieces: [Buffer.from(payload)], bytes: payload.length };
    } else {
      this.#deliver(header, payload);
    }
  }

  /** What is held is complete. */
  flush(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#deliver(held.header, Buffer.concat(held.pieces));
  }

  /** What came before the next payload is missing. */
  lost(): void {
    this.#held = undefined;
    this.#lost = true;
  }

  #continue(payload: Buffer): void {
    if (!this.#lost && !isLong(this.#held?.header)) this.#remembered = MEMORY;
    if (this.#held === undefined) {
      this.#events.damaged('a video frame that continues in another PES packet');
      return;
    }
    this.#held.bytes += payload.length;
    if (this.#held.bytes <= MAX_UNIT_BYTES) {
      this.#held.pieces.push(Buffer.from(payload));
      return;
    }
    this.#held = undefined;
    this.#events.damaged('a video frame of too many bytes');
  }

  #deliver(header: PesHeader, payload: Buffer): void {
    const nals = tolerant(() => splitAnnexB(payload, MAX_NALS));
    if (nals === undefined) {
      this.#events.damaged('a video frame of too many NAL units');
      return;
    }
    const pictures = this.#pictures(nals);
    // one without times follows the one before
    const next = this.#last === undefined ? undefined : this.#last + this.#step;
    const { dts = next, pts = dts } = header;
    for (const [i, picture] of pictures.entries()) {
      if (dts === undefined || pts === undefined) {
        this.#events.damaged('a video frame without a timestamp');
        return;
      }
      const time = wrapped(dts + i * this.#step);
      this.#events.unit({ data: joinNals(picture), time, compositionTime: ticksBetween(dts, pts) });
      this.#follow(time);
    }
  }

  #follow(time: number): void {
    const step = this.#last === undefined ? 0 : ticksBetween(this.#last, time);
    if (step > 0 && step <= MAX_STEP) this.#step = step;
    this.#last = time;
  }

  #pictures(nals: readonly Buffer[]): (readonly Buffer[])[] {
    const pictures: Buffer[][] = [];
    for (const nal of nals) {
      this.#lookAt(nal);
      const last = pictures.at(-1);
      // two fields, each behind its delimiter, are one picture
      if (
        last === undefined ||
        (this.#isDelimiter(nal) && !this.#interlaced && last.some((other) => this.#isCoded(other)))
      ) {
        pictures.push([nal]);
      } else {
        last.push(nal);
      }
    }
    return pictures;
  }

  #lookAt(nal: Buffer): void {
    if (!this.#isH264 || h264Type(nal) !== H264_NAL.sps || this.#sps?.equals(nal)) return;
    this.#sps = Buffer.from(nal);
    this.#interlaced = tolerant(() => parseSps(nal))?.interlaced ?? false;
  }

  #isDelimiter(nal: Buffer): boolean {
    return this.#isH264 ? h264Type(nal) === H264_NAL.delimiter : h265Type(nal) === H265_NAL.delimiter;
  }

  #isCoded(nal: Buffer): boolean {
    if (!this.#isH264) return h265Type(nal) <= H265_NAL.lastVcl;
    const type = h264Type(nal);
    return type >= H264_NAL.slice && type <= H264_NAL.idr;
  }
}

function isLong(header: PesHeader | undefined): boolean {
  return header !== undefined && header.told >= MAY_CONTINUE_BYTES;
}

function startsWithCode(data: Buffer): boolean {
  return data.length >= 4 && data[0] === 0 && data[1] === 0 && (data[2] === 1 || (data[2] === 0 && data[3] === 1));
}
