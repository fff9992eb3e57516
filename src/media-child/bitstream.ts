import { lookOf, type Look } from '../codecs/vui.ts';
import { BitstreamError } from '../codecs/bits.ts';
import type { NutStream } from '../containers/nut/format.ts';
import type { NutFrame } from '../containers/nut/reader.ts';
import type { Packet } from '../core/packet.ts';
import type { Timebase } from '../core/timebase.ts';
import { DecodeOrder } from './decode-order.ts';
import { codecForm, type CodecForm, type CodedForm } from './codec-form.ts';

/** Format of encoded packets, for a decoder, read from the bitstream; a change makes a new object. */
export interface BitstreamFormat extends Look {
  readonly timebase: Timebase;
  /** As in a track. */
  readonly config?: Buffer;
  readonly inBandSets?: true;
  /** Pixels, of video and images. */
  readonly width?: number;
  readonly height?: number;
  /** Hz, of audio. */
  readonly samplerate?: number;
  readonly channels?: number;
}

/** One packet in the canonical form of its codec, times in the timebase of the format. */
export interface EncodedPacket {
  readonly dts: number;
  readonly pts: number;
  /** 0 for video and images. */
  readonly duration: number;
  readonly key: Packet['key'];
  readonly data: Buffer;
}

export interface BitstreamSink {
  /** Called before the first packet, and before the first packet of each new format. */
  format(format: BitstreamFormat): void;
  packet(packet: EncodedPacket): void;
}

/** Converts the output of an ffmpeg encoder to the canonical form of `Packet`. */
export class OutputAdapter {
  readonly #form: CodecForm;
  readonly #stream: NutStream;
  readonly #sink: BitstreamSink;
  #format: CodecForm['format'];
  #reordered = 0;
  #order: DecodeOrder<{ -readonly [K in keyof EncodedPacket]: EncodedPacket[K] }> | undefined;

  /**
   * @param stream from the header of the encoder's NUT
   * @throws BitstreamError if the encoder's headers are malformed
   */
  constructor(codec: CodedForm, stream: NutStream, sink: BitstreamSink) {
    this.#form = codecForm(codec, stream);
    this.#stream = stream;
    this.#sink = sink;
  }

  /**
   * Converts the next frame, whose data are changed in place.
   * @throws BitstreamError if the data do not conform to the codec
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
      const common = {
        timebase: this.#stream.timebase,
        config,
        width,
        height,
        ...lookOf(format),
        samplerate,
        channels,
      };
      this.#sink.format(inBandSets ? { ...common, inBandSets } : common);
    }
    this.#order ??= new DecodeOrder(this.#reordered, (packet) => this.#sink.packet(packet));
    this.#order.push({ dts: pts, pts, duration: unit.duration, key: unit.key, data: unit.data });
  }

  /** Ends the stream: hands over packets that were held to compute decode times. */
  end(): void {
    this.#order?.end();
  }
}
