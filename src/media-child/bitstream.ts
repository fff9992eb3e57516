import { lookOf, type Look } from '../codecs/vui.ts';
import { BitstreamError } from '../codecs/bits.ts';
import type { NutStream } from '../containers/nut/format.ts';
import type { NutFrame } from '../containers/nut/reader.ts';
import type { Packet } from '../core/packet.ts';
import type { Timebase } from '../core/timebase.ts';
import { DecodeOrder } from './decode-order.ts';
import { codecForm, type CodecForm, type CodedForm } from './codec-form.ts';

/** What a decoder must know of encoded packets, as the encoder's bitstream tells; a change makes a new object. */
export interface BitstreamFormat extends Look {
  readonly timebase: Timebase;
  /** As a track has it. */
  readonly config?: Buffer;
  readonly inBandSets?: true;
  /** Of pictures. */
  readonly width?: number;
  readonly height?: number;
  /** Of sound. */
  readonly samplerate?: number;
  readonly channels?: number;
}

/** One packet in the canonical form of its codec, times in the timebase of the format. */
export interface EncodedPacket {
  readonly dts: number;
  readonly pts: number;
  /** 0 for pictures. */
  readonly duration: number;
  readonly key: Packet['key'];
  readonly data: Buffer;
}

export interface BitstreamSink {
  /** Told in front of the first packet, and in front of the first one that is different. */
  format(format: BitstreamFormat): void;
  packet(packet: EncodedPacket): void;
}

/** Brings what an ffmpeg encoder puts out into the canonical form of `Packet`. */
export class OutputAdapter {
  readonly #form: CodecForm;
  readonly #stream: NutStream;
  readonly #sink: BitstreamSink;
  #format: CodecForm['format'];
  #reordered = 0;
  #order: DecodeOrder<{ -readonly [K in keyof EncodedPacket]: EncodedPacket[K] }> | undefined;

  /**
   * @param stream as the encoder's NUT tells of it
   * @throws BitstreamError when the encoder's headers are malformed
   */
  constructor(codec: CodedForm, stream: NutStream, sink: BitstreamSink) {
    this.#form = codecForm(codec, stream);
    this.#stream = stream;
    this.#sink = sink;
  }

  /**
   * Takes the next frame, whose data become the adapter's: they are changed in place.
   * @throws BitstreamError when the data are not what the codec says
   */
  push({ pts, data, extradata }: NutFrame): void {
    const form = this.#form;
    if (extradata !== undefined) form.configure(extradata);
    const unit = form.take(data);
    const { format } = form;
    if (unit === undefined || format === undefined) throw new BitstreamError('the encoder output cannot be decoded');
    if (format !== this.#format) {
      const { reorderedFrames } = form;
      if (this.#order !== undefined && reorderedFrames !== this.#reordered) this.#order.restart(reorderedFrames);
      this.#reordered = reorderedFrames;
      this.#format = format;
      const { config, inBandSets, width, height, samplerate, channels } = format;
      const told = { timebase: this.#stream.timebase, config, width, height, ...lookOf(format), samplerate, channels };
      this.#sink.format(inBandSets ? { ...told, inBandSets } : told);
    }
    this.#order ??= new DecodeOrder(this.#reordered, (packet) => this.#sink.packet(packet));
    this.#order.push({ dts: pts, pts, duration: unit.duration, key: unit.key, data: unit.data });
  }

  /** Nothing comes any more: hands over packets that waited for others to tell their decode times. */
  end(): void {
    this.#order?.end();
  }
}
