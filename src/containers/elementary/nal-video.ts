import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import * as h264 from '../../codecs/h264.ts';
import * as h265 from '../../codecs/h265.ts';
import {
  areLengths,
  bareNals,
  joinNals,
  splitAnnexB,
  startsWithCode,
  type CanonicalUnit,
  type LengthSize,
} from '../../codecs/nal.ts';
import { ParameterSets, type ActiveSets, type SetPlace } from '../../codecs/parameter-sets.ts';
import { withoutRecoveryPoints, type StartKind } from '../../codecs/recovery-point.ts';
import { lookOf, sampleShape, type Colour, type Ratio } from '../../codecs/vui.ts';
import type { Packet } from '../../core/packet.ts';
import { KeyFrames } from './key-frames.ts';
import type { VideoFormat, VideoState } from './video.ts';

/** Differences between H.264 and H.265. */
interface NalCodec {
  /** Error text for a missing parameter set. */
  readonly needs: string;
  readonly spsType: number;
  readonly ppsType: number;
  readRecord(record: Buffer): { readonly lengthSize: LengthSize; readonly sets: readonly Buffer[] };
  isParameterSet(nal: Buffer): boolean;
  placeOfSet(nal: Buffer): SetPlace;
  activeSets(known: ParameterSets, pps: number): ActiveSets | undefined;
  parseSps(nal: Buffer): {
    readonly width: number;
    readonly height: number;
    readonly framerate: number;
    readonly sar: Ratio;
    readonly colour: Colour | undefined;
  };
  canonicalize(data: Buffer, lengthSize: LengthSize, trusts: boolean): CanonicalUnit;
  pictureParameterSet(data: Buffer): number | undefined;
  startOf(data: Buffer): StartKind | undefined;
  /** Picture without its mark as a starting point, where that can be removed. */
  withoutStart(data: Buffer): Buffer;
}

const H264: NalCodec = {
  needs: 'H.264 needs an SPS and a PPS',
  spsType: h264.NAL.sps,
  ppsType: h264.NAL.pps,
  readRecord: (record) => {
    const { lengthSize, sps, spsExtensions, pps } = h264.parseAvcConfig(record);
    return { lengthSize, sets: [...sps, ...spsExtensions, ...pps] };
  },
  isParameterSet: h264.isParameterSet,
  placeOfSet: h264.placeOfSet,
  activeSets: h264.activeSets,
  parseSps: h264.parseSps,
  canonicalize: h264.canonicalize,
  pictureParameterSet: h264.pictureParameterSet,
  startOf: h264.startOf,
  withoutStart: withoutRecoveryPoints,
};

const H265: NalCodec = {
  needs: 'H.265 needs a VPS, an SPS and a PPS',
  spsType: h265.NAL.sps,
  ppsType: h265.NAL.pps,
  readRecord: (record) => {
    const { lengthSize, vps, sps, pps } = h265.parseHevcConfig(record);
    return { lengthSize, sets: [...vps, ...sps, ...pps] };
  },
  isParameterSet: h265.isParameterSet,
  placeOfSet: h265.placeOfSet,
  activeSets: h265.activeSets,
  parseSps: h265.parseSps,
  canonicalize: h265.canonicalize,
  pictureParameterSet: h265.pictureParameterSet,
  startOf: h265.startOf,
  withoutStart: (data) => data,
};

/** Number of pictures without start codes in their slices after which slices are not searched for them. */
const LOOKED_THROUGH = 250;
const NONE: readonly Buffer[] = [];
/** Most sets kept for the next picture: more than there are ids of PPS. */
const MAX_WAITING = 320;

/**
 * Converts pictures of H.264 and H.265 and their parameter sets. Only a change of the active SPS (and VPS) at a key
 * frame makes a new format. Changes of other sets leave its record as it is, and are sent in-band: before the picture
 * that they come with, and all active ones before each key frame.
 */
export class NalState implements VideoState {
  readonly #codec: NalCodec;
  #sets: ParameterSets;
  #lengthSize: LengthSize = 4;
  /** Latest record of the source, until parameter sets in-band differ from it. */
  #record: Buffer | undefined;
  #described: ActiveSets | undefined;
  /** Parameter sets of the last key frame, compared with the record. */
  #checked: ActiveSets | undefined;
  #format: VideoFormat | undefined;
  /** Whether a key frame had the format. */
  #shown = false;
  /** Parameter sets of the pictures since the last key frame. */
  #active: { readonly pps: number; readonly sets: ActiveSets | undefined; readonly version: number } | undefined;
  /** Sets received since the last picture. */
  #waiting: readonly Buffer[] = NONE;
  readonly #keyFrames = new KeyFrames();
  #looked = 0;

  constructor(codec: 'H264' | 'H265') {
    this.#codec = codec === 'H264' ? H264 : H265;
    this.#sets = new ParameterSets(this.#codec.placeOfSet);
  }

  get format(): VideoFormat | undefined {
    return this.#format;
  }

  /** Applies a decoder configuration record, or the parameter sets as a byte stream, which some senders have in its place. */
  configure(record: Buffer): void {
    if (this.#record?.equals(record)) return;
    // copied, since the record outlives the message that it is a slice of
    const copy = Buffer.from(record);
    const read = startsWithCode(copy) ? { lengthSize: 4 as const, sets: [copy] } : this.#codec.readRecord(copy);
    const known = new ParameterSets(this.#codec.placeOfSet);
    // an SEI may be among them
    const added = known.add(bareNals(joinNals(read.sets)).filter(this.#codec.isParameterSet));
    // a record without parameter sets announces them in-band
    if (known.all(this.#codec.spsType).length > 0) {
      const first = this.#first(known);
      if (first === undefined) throw new BitstreamError(this.#codec.needs);
      this.#sets = known;
      const sent = this.#active?.sets?.nals ?? NONE;
      this.#waiting = added.filter((nal) => !sent.some((other) => other.equals(nal)));
      if (this.#active !== undefined) this.#active = { ...this.#active, version: NaN };
      if (!this.#shown || first.meaning !== this.#described?.meaning) this.#describe(first);
    }
    this.#lengthSize = read.lengthSize;
    this.#record = copy;
  }

  frame(data: Buffer): { data: Buffer; key: Packet['key'] } | undefined {
    const unit = this.#canonical(data);
    const fresh = unit.parameterSets.length > 0 ? this.#sets.add(unit.parameterSets) : NONE;
    if (fresh.length > 0) {
      // the record would change something if it was sent again
      this.#record = undefined;
      if (this.#format === undefined) {
        const first = this.#first(this.#sets);
        if (first !== undefined) this.#describe(first);
      }
      this.#waiting = [...this.#waiting, ...fresh].slice(-MAX_WAITING);
    }
    if (this.#format === undefined || unit.data.length === 0) return undefined;
    const start = this.#codec.startOf(unit.data);
    const key = this.#keyFrames.next(start);
    const picture = !key && start === 'open' ? this.#codec.withoutStart(unit.data) : unit.data;
    const before = key ? this.#activate(unit.data) : this.#changed(this.#waiting);
    this.#waiting = NONE;
    return { data: before.length > 0 ? Buffer.concat([joinNals(before), picture]) : picture, key };
  }

  #canonical(data: Buffer): CanonicalUnit {
    const lengthSize = this.#lengthSize;
    const trusts = this.#looked > LOOKED_THROUGH;
    if (!trusts) this.#looked++;
    // some encoders send start codes where lengths belong; no NAL unit of one byte begins a picture, and 00 00 01 may
    // be the beginning of a length
    const annexB = lengthSize === 4 && startsWithCode(data) && (data[2] === 0 || !areLengths(data));
    if (annexB) return this.#codec.canonicalize(joinNals(splitAnnexB(data)), 4, true);
    const unit = this.#codec.canonicalize(data, lengthSize, trusts);
    if (unit.hadStartCodes) this.#looked = -Infinity;
    return unit;
  }

  /** Sets that the first pictures are likely to have. */
  #first(known: ParameterSets): ActiveSets | undefined {
    const { spsType, ppsType, activeSets } = this.#codec;
    for (const { id } of known.all(spsType)) {
      const [pps] = known.all(ppsType, id);
      const sets = pps && activeSets(known, pps.id);
      if (sets !== undefined) return sets;
    }
    return undefined;
  }

  /** @returns the sets to send before a key frame */
  #activate(data: Buffer): readonly Buffer[] {
    const pps = tolerant(() => this.#codec.pictureParameterSet(data));
    const sets = pps === undefined ? undefined : this.#activeOf(pps);
    if (sets !== undefined && sets !== this.#checked) {
      const isSame = sets.meaning === this.#described?.meaning;
      if (!isSame || !holds(this.#described, sets.nals)) {
        if (isSame && this.#shown) this.#sendInBand();
        else this.#describe(sets);
      }
      this.#checked = sets;
    }
    this.#shown = true;
    return this.#format?.inBandSets === true ? (this.#active?.sets?.nals ?? NONE) : NONE;
  }

  /** @returns the sets to send before another picture, of those that came with it */
  #changed(fresh: readonly Buffer[]): readonly Buffer[] {
    const pps = fresh.length === 0 ? undefined : this.#active?.pps;
    const sets = pps === undefined ? undefined : this.#activeOf(pps);
    if (sets === undefined || sets.meaning !== this.#described?.meaning) return NONE;
    const needed = fresh.filter((nal) => nal !== sets.sps && sets.nals.includes(nal));
    if (needed.length > 0) this.#sendInBand();
    return needed;
  }

  #activeOf(pps: number): ActiveSets | undefined {
    const { version } = this.#sets;
    if (this.#active?.pps !== pps || this.#active.version !== version)
      this.#active = { pps, version, sets: this.#codec.activeSets(this.#sets, pps) };
    return this.#active.sets;
  }

  #sendInBand(): void {
    if (this.#format !== undefined && this.#format.inBandSets !== true)
      this.#format = { ...this.#format, inBandSets: true };
  }

  #describe(sets: ActiveSets): void {
    this.#described = sets;
    this.#checked = undefined;
    this.#shown = false;
    const { record: config } = sets;
    if (this.#format?.config?.equals(config) && this.#format.inBandSets !== true) return;
    const { width, height, framerate, sar, colour } = this.#codec.parseSps(sets.sps);
    this.#format = { config, width, height, framerate, ...lookOf({ sar: sampleShape(sar), colour }) };
  }
}

function holds(known: ActiveSets | undefined, wanted: readonly Buffer[]): boolean {
  return wanted.every((nal) => known?.nals.some((other) => other.equals(nal)));
}
