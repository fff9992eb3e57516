import * as av1 from '../../codecs/av1.ts';
import * as vp8 from '../../codecs/vp8.ts';
import * as vp9 from '../../codecs/vp9.ts';
import { isSameShape, lookOf, type Look } from '../../codecs/vui.ts';
import type { Packet } from '../../core/packet.ts';
import type { VideoCodec } from '../../core/track.ts';
import { NalState } from './nal-video.ts';

/** Format of a video track, for a decoder; a change makes a new object. */
export interface VideoFormat extends Look {
  readonly config?: Buffer;
  /** 0 when the stream does not have it. */
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
  readonly inBandSets?: true;
}

/** Follows the configuration of one codec and brings its frames into canonical form. */
export interface VideoState {
  /** undefined until the stream has described it. */
  readonly format: VideoFormat | undefined;
  /** Applies a decoder configuration record. @throws BitstreamError */
  configure(record: Buffer): void;
  /** @returns undefined for data that cannot be shown. @throws BitstreamError */
  frame(data: Buffer): { readonly data: Buffer; readonly key: Packet['key'] } | undefined;
}

export function videoState(codec: VideoCodec): VideoState {
  switch (codec) {
    case 'H264':
    case 'H265':
      return new NalState(codec);
    case 'AV1':
      return new Av1State();
    case 'VP9':
      return new Vp9State();
    case 'VP8':
      return new Vp8State();
  }
}

class Av1State implements VideoState {
  format: VideoFormat | undefined;
  #record: Buffer | undefined;
  #sequence: Buffer | undefined;
  #header: av1.Av1SequenceHeader | undefined;

  configure(record: Buffer): void {
    av1.parseAv1Config(record);
    this.#record = Buffer.from(record.subarray(4));
  }

  /**
   * Prefers the sequence header before a key frame: encoders write another one into the record (SVT-AV1 for one), which
   * is used only where key frames have none.
   */
  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const unit = av1.canonicalize(data);
    if (unit.length === 0) return undefined;
    const key = av1.isKeyUnit(unit);
    if (key && !this.#adopt(unit) && this.#record !== undefined) this.#adopt(this.#record);
    if (key) this.#follow(unit);
    return this.format && { data: unit, key };
  }

  /** @returns false when there is no sequence header */
  #adopt(data: Buffer): boolean {
    for (const { type, payload } of av1.obus(data)) {
      if (type !== av1.OBU.sequenceHeader) continue;
      if (this.#sequence?.equals(payload)) return true;
      const header = av1.parseSequenceHeader(payload);
      const { width, height, framerate, colour } = header;
      this.format = { config: av1.buildAv1Config(data), width, height, framerate, ...lookOf({ colour }) };
      this.#header = header;
      this.#sequence = Buffer.from(payload);
      return true;
    }
    return false;
  }

  /** Takes the shape of samples from the key frames themselves. */
  #follow(unit: Buffer): void {
    const { format } = this;
    if (format === undefined || this.#header === undefined) return;
    const sar = av1.keyUnitShape(unit, this.#header);
    if (isSameShape(sar, format.sar)) return;
    const { sar: _, ...rest } = format;
    this.format = { ...rest, ...lookOf({ sar }) };
  }
}

class Vp9State implements VideoState {
  format: VideoFormat | undefined;
  #record: vp9.VpcConfig | undefined;

  configure(record: Buffer): void {
    this.#record = vp9.parseVpcConfig(record);
  }

  frame(data: Buffer): { data: Buffer; key: boolean } | undefined {
    const key = vp9.isKey(data);
    if (key) {
      const header = vp9.parseKeyFrame(data);
      const { width, height, sar } = header;
      const record = this.#record ?? vp9.vpcConfigOf(header, 0);
      const config = vp9.buildVpcConfig(record);
      const { format } = this;
      const isSameSize = format?.width === width && format.height === height && isSameShape(format.sar, sar);
      if (!isSameSize || !format.config?.equals(config))
        this.format = { config, width, height, framerate: 0, ...lookOf({ sar, colour: record }) };
    }
    return this.format && { data, key };
  }
}

class Vp8State implements VideoState {
  format: VideoFormat | undefined;

  configure(): void {
    // VP8 has no configuration: its key frames have everything
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
