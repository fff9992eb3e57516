import { BitstreamError } from '../codecs/bits.ts';
import { NutError } from '../containers/nut/error.ts';
import { NutReader } from '../containers/nut/reader.ts';
import { toSeconds, type Timebase } from '../core/timebase.ts';
import { OutputAdapter, type BitstreamFormat, type EncodedPacket } from '../media-child/bitstream.ts';
import type { Encode } from './encode.ts';
import type { EncodeJob } from './encoding.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';
import type { CodecChoice } from './codec-choice.ts';
import type { EncoderSpan } from './encoder-span.ts';

/** Output of a child for one encode: turns the bytes of a pipe into packets of a span. */
export class Output {
  readonly encode: Encode;
  /** The job as it was when the encoder began. */
  readonly job: EncodeJob;
  readonly codecs: CodecChoice;
  readonly resumeAt: number | undefined;
  readonly #span: EncoderSpan;
  readonly #reader: NutReader;
  #adapter: OutputAdapter | undefined;
  #timebase: Timebase | undefined;
  #endedAt: number | undefined;
  /** End of the output on the input's clock, in seconds. */
  reached: number | undefined;
  /** Seconds of media written. */
  advanced = 0;
  /** Time of the newest output, by `performance.now()`. */
  lastAt = performance.now();

  constructor(encode: Encode) {
    const { span, resumeAt } = encode.begin();
    this.encode = encode;
    this.job = encode.job;
    this.codecs = encode.codecs;
    this.resumeAt = resumeAt;
    this.#span = span;
    this.#reader = new NutReader({
      streams: ([stream]) => {
        if (stream === undefined) throw new NutError('an output without a stream');
        this.#adapter = new OutputAdapter(this.job.encoding.codec, stream, {
          format: (format) => this.#format(format),
          packet: (packet) => this.#packet(packet),
        });
      },
      frame: (frame) => this.#adapter?.push(frame),
    });
  }

  get ended(): boolean {
    return this.#endedAt !== undefined;
  }

  /** Time of `end`, by `performance.now()`. */
  get endedAt(): number | undefined {
    return this.#endedAt;
  }

  /** @returns the fault of malformed bytes; undefined if they are well-formed */
  push(chunk: Buffer): string | undefined {
    if (this.ended) return undefined;
    return faultOf(() => this.#reader.push(chunk));
  }

  /** Ends the output. Idempotent. */
  end(): void {
    if (this.ended) return;
    this.#endedAt = performance.now();
    faultOf(() => {
      this.#adapter?.end();
    });
    this.#span.end();
  }

  #format(format: BitstreamFormat): void {
    this.#timebase = format.timebase;
    this.#span.format(format);
  }

  #packet(packet: EncodedPacket): void {
    const end = toSeconds(packet.pts + packet.duration, this.#timebase as Timebase) - OFFSET_SECONDS;
    this.advanced += Math.max(0, end - (this.reached ?? end));
    this.reached = Math.max(this.reached ?? 0, end);
    this.lastAt = performance.now();
    this.#span.packet(packet);
  }
}

function faultOf(action: () => void): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof NutError || error instanceof BitstreamError) return error.message;
    throw error;
  }
}
