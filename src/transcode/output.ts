import { BitstreamError } from '../codecs/bits.ts';
import { NutError } from '../containers/nut/error.ts';
import { NutReader } from '../containers/nut/reader.ts';
import { toSeconds, type Timebase } from '../core/timebase.ts';
import { OutputAdapter, type BitstreamFormat, type EncodedPacket } from '../media-child/bitstream.ts';
import type { Encode } from './encode.ts';
import type { EncodeJob } from './encoding.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';
import type { Means } from './means.ts';
import type { Turn } from './turn.ts';

/** What a child puts out for one encode: the bytes of a pipe become packets in their turn. */
export class Output {
  readonly encode: Encode;
  /** What its encoder does, as when it began. */
  readonly job: EncodeJob;
  readonly means: Means;
  readonly resumeAt: number | undefined;
  readonly #turn: Turn;
  readonly #reader: NutReader;
  #adapter: OutputAdapter | undefined;
  #timebase: Timebase | undefined;
  #endedAt: number | undefined;
  /** Seconds on the input's clock up to which it has put out something, and when it last did, by `performance.now()`. */
  reached: number | undefined;
  /** How many seconds of media it has put out. */
  advanced = 0;
  lastAt = performance.now();

  constructor(encode: Encode) {
    const { turn, resumeAt } = encode.begin();
    this.encode = encode;
    this.job = encode.job;
    this.means = encode.means;
    this.resumeAt = resumeAt;
    this.#turn = turn;
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

  /** Since when it has put out nothing more, by `performance.now()`. */
  get endedAt(): number | undefined {
    return this.#endedAt;
  }

  /** @returns why the bytes are not what they should be; undefined when they are */
  push(chunk: Buffer): string | undefined {
    if (this.ended) return undefined;
    return faultOf(() => this.#reader.push(chunk));
  }

  /** Nothing comes any more. Idempotent. */
  end(): void {
    if (this.ended) return;
    this.#endedAt = performance.now();
    faultOf(() => {
      this.#adapter?.end();
    });
    this.#turn.end();
  }

  #format(format: BitstreamFormat): void {
    this.#timebase = format.timebase;
    this.#turn.format(format);
  }

  #packet(packet: EncodedPacket): void {
    const end = toSeconds(packet.pts + packet.duration, this.#timebase as Timebase) - OFFSET_SECONDS;
    this.advanced += Math.max(0, end - (this.reached ?? end));
    this.reached = Math.max(this.reached ?? 0, end);
    this.lastAt = performance.now();
    this.#turn.packet(packet);
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
