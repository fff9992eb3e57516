import { tolerant } from '../../codecs/bits.ts';
import { joinNals, splitAnnexB, startsWithCode } from '../../codecs/nal.ts';
import { H264Bounds, H265Bounds, type PictureBounds } from '../../codecs/picture-bounds.ts';
import type { PesHeader } from './pes-header.ts';
import { ticksBetween, wrapped } from './times.ts';

/** A picture as length-prefixed NAL units with everything that came with it, in memory of its own. Times are on CLOCK. */
export interface AccessUnit {
  readonly data: Buffer;
  /** Decoding time. */
  readonly time: number;
  /** Offset from decoding to presentation; negative where the source sends it so. */
  readonly compositionTime: number;
}

export interface AccessUnitsEvents {
  unit(unit: AccessUnit): void;
  /** Reports that a part of a picture, or its time, is missing. */
  damaged(reason: string): void;
}

/** Announced length from which on a packet may be continued in another one: the most that it can announce is 65,535. */
const MAY_CONTINUE_BYTES = 65_000;
/**
 * Number of pictures, after one that was continued, that are held to look for a continuation: some senders continue key
 * frames alone.
 */
const MEMORY = 250;
/** Most NAL units of a packet; a picture has a few, one with a slice for each row of blocks some hundred. */
const MAX_NALS = 1024;
const MAX_UNIT_BYTES = 8 * 1024 * 1024;
/** Most packets of a picture: one for each slice, or for each transport packet. */
const MAX_PIECES = 65_536;
/** Ticks between pictures, until measured. */
const USUAL_STEP = 3600;
const MAX_STEP = 90_000;

const START_CODE = Buffer.of(0, 0, 1);
/** Bytes of a slice header that are read. */
const HEAD_BYTES = 64;

interface SliceHead {
  readonly nal: Buffer;
  /** Whether a delimiter precedes it. */
  readonly delimited: boolean;
}

/** Bytes of one or several packets, which may continue. */
interface Held {
  /** Header of the first packet with a slice, if that has a time. */
  header: PesHeader;
  readonly pieces: Buffer[];
  bytes: number;
  /** Whether a slice is among the NAL units. */
  hasSlice: boolean;
}

/**
 * Splits PES packets into pictures of H.264 or H.265. Nearly every packet holds one picture; but a picture may be in
 * several packets, since it is too long for the length field, or each of its slices or fields has a packet of its own;
 * and a packet may hold several pictures, with or without access unit delimiters between them. A packet's time is that
 * of the first picture that begins in it.
 */
export class AccessUnits {
  readonly #bounds: PictureBounds;
  readonly #events: AccessUnitsEvents;
  #held: Held | undefined;
  /** Number of pictures that are still to be held, because the sender continued one, or because they are the first. */
  #remembered = 1;
  /** Whether a continuation may belong to a lost picture. */
  #lost = false;
  /** Header of the last packet that began a picture. */
  #beginning: Pick<PesHeader, 'pts' | 'dts'> | undefined;
  /** Decoding time of the last packet that had one, and the number of pictures since then. */
  #since: { readonly time: number; pictures: number } | undefined;
  #last: number | undefined;
  #step = USUAL_STEP;

  constructor(codec: 'H264' | 'H265', events: AccessUnitsEvents) {
    this.#bounds = codec === 'H264' ? new H264Bounds() : new H265Bounds();
    this.#events = events;
  }

  /** @param payload of a PES packet; it is not kept */
  push(header: PesHeader, payload: Buffer): void {
    const first = this.#firstSlice(payload);
    if (this.#continues(header, payload, first)) {
      this.#continue(header, payload, first !== undefined);
      return;
    }
    this.#flush(header.dts);
    this.#lost = false;
    this.#beginning = header;
    if (this.#remembered > 0 || isLong(header) || first === undefined) {
      if (first !== undefined) this.#remembered = Math.max(0, this.#remembered - 1);
      this.#held = { header, pieces: [Buffer.from(payload)], bytes: payload.length, hasSlice: first !== undefined };
      this.#bounds.restart();
      this.#pictures(tolerant(() => splitAnnexB(payload, MAX_NALS)) ?? []);
    } else {
      this.#deliver(header, payload);
    }
  }

  /** Emits the held picture. */
  flush(): void {
    this.#flush(undefined);
  }

  lost(): void {
    this.#held = undefined;
    this.#lost = true;
  }

  /** @param next decoding time of the next packet, if it has one */
  #flush(next: number | undefined): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#deliver(held.header, Buffer.concat(held.pieces), next);
  }

  #continues({ pts, dts }: PesHeader, payload: Buffer, first: SliceHead | undefined): boolean {
    if (!startsWithCode(payload)) return pts === undefined;
    if (this.#held !== undefined && !this.#held.hasSlice) return true;
    if (first === undefined) return false;
    const belongs = this.#bounds.belongs(first.nal, first.delimited);
    if (belongs === 'slice') return pts === undefined || (pts === this.#beginning?.pts && dts === this.#beginning?.dts);
    return belongs === 'field';
  }

  #continue(header: PesHeader, payload: Buffer, hasSlice: boolean): void {
    if (payload.length === 0) return;
    const held = this.#held;
    if (!this.#lost && held?.hasSlice !== false && !isLong(held?.header)) this.#remembered = MEMORY;
    if (held === undefined) {
      this.#events.damaged('a video frame that continues in another PES packet');
      return;
    }
    held.bytes += payload.length;
    if (held.bytes > MAX_UNIT_BYTES || held.pieces.length >= MAX_PIECES) {
      this.#held = undefined;
      this.#events.damaged('a video frame of too many bytes');
      return;
    }
    if (hasSlice && !held.hasSlice && header.pts !== undefined) this.#beginning = held.header = header;
    held.pieces.push(Buffer.from(payload));
    held.hasSlice ||= hasSlice;
    if (startsWithCode(payload)) this.#pictures(tolerant(() => splitAnnexB(payload, MAX_NALS)) ?? []);
  }

  #deliver(header: PesHeader, payload: Buffer, following?: number): void {
    const nals = tolerant(() => splitAnnexB(payload, MAX_NALS));
    if (nals === undefined) {
      this.#events.damaged('a video frame of too many NAL units');
      return;
    }
    this.#bounds.restart();
    const pictures = this.#pictures(nals);
    this.#measure(header.dts, pictures.length, following);
    // a packet without times follows the previous one
    const next = this.#last === undefined ? undefined : this.#last + this.#step;
    const { dts = next, pts = dts } = header;
    for (const [i, picture] of pictures.entries()) {
      if (dts === undefined || pts === undefined) {
        this.#events.damaged('a video frame without a timestamp');
        return;
      }
      const time = wrapped(dts + i * this.#step);
      this.#events.unit({ data: joinNals(picture), time, compositionTime: ticksBetween(dts, pts) });
      this.#last = time;
    }
  }

  /** Measures the interval of pictures by the times of packets. */
  #measure(time: number | undefined, pictures: number, following: number | undefined): void {
    if (time !== undefined) {
      if (this.#since !== undefined) this.#setStep(ticksBetween(this.#since.time, time) / this.#since.pictures);
      this.#since = { time, pictures: 0 };
      if (following !== undefined) this.#setStep(ticksBetween(time, following) / pictures);
    }
    if (this.#since !== undefined) this.#since.pictures += pictures;
  }

  #setStep(step: number): void {
    if (step > 0 && step <= MAX_STEP) this.#step = step;
  }

  #pictures(nals: readonly Buffer[]): (readonly Buffer[])[] {
    const bounds = this.#bounds;
    const pictures: Buffer[][] = [[]];
    let hasSlice = false;
    /** NAL units after a slice, of the same picture or the next. */
    let between: Buffer[] = [];
    for (const nal of nals) {
      if (bounds.isSlice(nal)) {
        const belongs = bounds.take(nal, between.some(bounds.isDelimiter));
        if (hasSlice && belongs === 'none') pictures.push(between);
        else pictures.at(-1)?.push(...between);
        between = [];
        hasSlice = true;
        pictures.at(-1)?.push(nal);
      } else {
        bounds.note(nal);
        if (between.length > 0 || (hasSlice && bounds.isLeading(nal))) between.push(nal);
        else pictures.at(-1)?.push(nal);
      }
    }
    pictures.at(-1)?.push(...between);
    return pictures;
  }

  #firstSlice(payload: Buffer): SliceHead | undefined {
    let delimited = false;
    let codes = 0;
    for (let at = payload.indexOf(START_CODE); at >= 0 && codes < MAX_NALS; at = payload.indexOf(START_CODE, at)) {
      codes++;
      at += START_CODE.length;
      const nal = payload.subarray(at, at + HEAD_BYTES);
      if (nal.length === 0) break;
      if (this.#bounds.isSlice(nal)) return { nal, delimited };
      delimited ||= this.#bounds.isDelimiter(nal);
    }
    return undefined;
  }
}

function isLong(header: PesHeader | undefined): boolean {
  return header !== undefined && header.announcedBytes >= MAY_CONTINUE_BYTES;
}
