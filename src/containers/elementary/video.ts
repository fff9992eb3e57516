import * as av1 from '../../codecs/av1.ts';
import * as h264 from '../../codecs/h264.ts';
import * as h265 from '../../codecs/h265.ts';
import { joinNals, splitAnnexB, type CanonicalUnit, type LengthSize } from '../../codecs/nal.ts';
import * as vp8 from '../../codecs/vp8.ts';
import * as vp9 from '../../codecs/vp9.ts';
import type { VideoCodec } from '../../core/track.ts';

/** What a decoder must know of a video track; a change makes a new object. */
export interface VideoFormat {
  readonly config?: Buffer;
  /** 0 where the stream does not tell. */
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
}

/** Follows the configuration of one codec and brings its frames into canonical form. */
export interface VideoState {
  /** undefined until the stream told enough. */
  readonly format: VideoFormat | undefined;
  /** Takes a decoder configuration record. @throws BitstreamError */
  configure(record: Buffer): void;
  /** Answers undefined for what cannot be shown. @throws BitstreamError */
  frame(data: Buffer): { readonly data: Buffer; readonly key: boolean } | undefined;
}

export function videoState(codec: VideoCodec): VideoState {
  switch (codec) {
    case 'H264':
      return new NalState(H264);
    case 'H265':
      return new NalState(H265);
    case 'AV1':
      return new Av1State();
    case 'VP9':
      return new Vp9State();
    case 'VP8':
      return new Vp8State();
  }
}

interface ParameterSets {
  readonly lengthSize: LengthSize;
  readonly sps: readonly Buffer[];
}

/** What H.264 and H.265 do alike, each in its own way. */
interface NalCodec<C extends ParameterSets> {
  readonly nothing: C;
  parse(record: Buffer): C;
  build(config: C): Buffer;
  withParameterSets(config: C, sets: readonly Buffer[]): C;
  parseSps(nal: Buffer): { readonly width: number; readonly height: number; readonly framerate: number };
  canonicalize(data: Buffer, lengthSize: LengthSize): CanonicalUnit;
  /** @param gradual a gradual refresh is meant as well, where the codec can tell */
  isKeyAccessUnit(data: Buffer, gradual: boolean): boolean;
}

const H264: NalCodec<h264.AvcConfig> = {
  nothing: { profile: 0, constraints: 0, level: 0, lengthSize: 4, sps: [], pps: [], spsExtensions: [] },
  parse: h264.parseAvcConfig,
  build: h264.buildAvcConfig,
  withParameterSets: h264.withParameterSets,
  parseSps: h264.parseSps,
  canonicalize: h264.canonicalize,
  isKeyAccessUnit: h264.isKeyAccessUnit,
};

const H265: NalCodec<h265.HevcConfig> = {
  nothing: {
    profileSpace: 0,
    tier: 0,
    profile: 0,
    compatibility: 0,
    constraints: Buffer.alloc(6),
    level: 0,
    lengthSize: 4,
    vps: [],
    sps: [],
    pps: [],
  },
  parse: h265.parseHevcConfig,
  build: h265.buildHevcConfig,
  withParameterSets: h265.withParameterSets,
  parseSps: h265.parseSps,
  canonicalize: h265.canonicalize,
  isKeyAccessUnit: h265.isKeyAccessUnit,
};

const ANNEX_B_START = 1;
/**
 * Pictures without a key frame, after which the beginning of a gradual refresh is taken for one: a stream that refreshes bit
 * by bit (x264's intra-refresh) has one key frame at its beginning, or none where it is joined.
 */
const REFRESHES_BEHIND = 125;

class NalState<C extends ParameterSets> implements VideoState {
  readonly #codec: NalCodec<C>;
  #config: C;
  #record: Buffer | undefined;
  #format: VideoFormat | undefined;
  #sinceKey = 0;

  constructor(codec: NalCodec<C>) {
    this.#codec = codec;
    this.#config = codec.nothing;
  }

  get format(): VideoFormat | undefined {
    return this.#format;
  }

  configure(record: Buffer): void {
    if (this.#record?.equals(record)) return;
    // Copied, for the record outlives the message it is a slice of.
    const copy = Buffer.from(record);
    const config = this.#codec.parse(copy);
    // A record without parameter sets announces them in-band.
    if (config.sps.length === 0) this.#config = config;
    else this.#adopt(config);
    this.#record = copy;
  }

  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const { lengthSize } = this.#config;
    // Some encoders send start codes where lengths belong; no NAL unit of one byte begins a picture.
    const annexB = lengthSize === 4 && data.length >= 4 && data.readUInt32BE(0) === ANNEX_B_START;
    const unit = this.#codec.canonicalize(annexB ? joinNals(splitAnnexB(data)) : data, lengthSize);
    if (unit.parameterSets.length > 0) {
      const config = this.#codec.withParameterSets(this.#config, unit.parameterSets);
      if (config !== this.#config) {
        this.#adopt(config);
        // that record, should it come again, tells something else
        this.#record = undefined;
      }
    }
    if (this.#format === undefined || unit.data.length === 0) return undefined;
    return { data: unit.data, key: this.#isKey(unit.data) };
  }

  #isKey(data: Buffer): boolean {
    this.#sinceKey++;
    if (this.#codec.isKeyAccessUnit(data, false)) this.#sinceKey = 0;
    return this.#sinceKey === 0 || (this.#sinceKey > REFRESHES_BEHIND && this.#codec.isKeyAccessUnit(data, true));
  }

  #adopt(config: C): void {
    const record = this.#codec.build(config);
    const [sps] = config.sps;
    if (sps === undefined) return;
    const { width, height, framerate } = this.#codec.parseSps(sps);
    this.#config = config;
    if (this.#format?.config?.equals(record)) return;
    this.#format = { config: record, width, height, framerate };
  }
}

class Av1State implements VideoState {
  format: VideoFormat | undefined;
  #record: Buffer | undefined;
  #sequence: Buffer | undefined;

  configure(record: Buffer): void {
    av1.parseAv1Config(record);
    this.#record = Buffer.from(record.subarray(4));
  }

  /**
   * The sequence header in front of a key frame is the one that counts: encoders write another one into the record
   * (SVT-AV1 for one), which stands in only where key frames bring none.
   */
  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const unit = av1.canonicalize(data);
    if (unit.length === 0) return undefined;
    const key = av1.isKeyUnit(unit);
    if (key && !this.#adopt(unit) && this.#record !== undefined) this.#adopt(this.#record);
    return this.format && { data: unit, key };
  }

  /** @returns false when there is no sequence header */
  #adopt(data: Buffer): boolean {
    for (const { type, payload } of av1.obus(data)) {
      if (type !== av1.OBU.sequenceHeader) continue;
      if (this.#sequence?.equals(payload)) return true;
      const { width, height, framerate } = av1.parseSequenceHeader(payload);
      this.format = { config: av1.buildAv1Config(data), width, height, framerate };
      this.#sequence = Buffer.from(payload);
      return true;
    }
    return false;
  }
}

class Vp9State implements VideoState {
  format: VideoFormat | undefined;
  #record: Buffer | undefined;

  configure(record: Buffer): void {
    this.#record = vp9.buildVpcConfig(vp9.parseVpcConfig(record));
  }

  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const key = vp9.isKey(data);
    if (key) {
      const header = vp9.parseKeyFrame(data);
      const config = this.#record ?? vp9.buildVpcConfig(vp9.vpcConfigOf(header, 0));
      const { format } = this;
      if (!format?.config?.equals(config) || format.width !== header.width || format.height !== header.height) {
        this.format = { config, width: header.width, height: header.height, framerate: 0 };
      }
    }
    return this.format && { data, key };
  }
}

class Vp8State implements VideoState {
  format: VideoFormat | undefined;

  configure(): void {
    // VP8 has no configuration: its key frames tell everything.
  }

  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const key = vp8.isKey(data);
    if (key) {
      const { width, height } = vp8.parseKeyFrame(data);
      if (this.format?.width !== width || this.format.height !== height) {
        this.format = { width, height, framerate: 0 };
      }
    }
    return this.format && { data, key };
  }
}
