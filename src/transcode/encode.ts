import { isDeepStrictEqual } from 'node:util';
import { parseOpusConfig } from '../codecs/opus.ts';
import { rescale, toSeconds, VIDEO_TIMEBASE, type Timebase } from '../core/timebase.ts';
import type { BitstreamFormat, EncodedPacket } from '../media-child/bitstream.ts';
import type { EncodeJob } from './encoding.ts';
import type { CodecChoice } from './codec-choice.ts';
import { EncoderSpan } from './encoder-span.ts';

/** Format of encoded packets, reported when their encoder has started. */
export interface EncodedFormat extends BitstreamFormat {
  /** Module of the codec inventory. */
  readonly module: string;
}

/** Receiver of a job's output. */
export interface EncodeSink {
  /** An encoder works: called before its first packet, before every new format, and after each failure. */
  started(format: EncodedFormat): void;
  /** In decode order, decode times strictly increasing; of a video from a key frame on. */
  packet(packet: EncodedPacket): void;
  /** The encoder failed. @param final whether none will follow */
  failed(reason: string, final: boolean): void;
}

const SECONDS: Timebase = { num: 1, den: 1 };
/** Audio frames that an encoder encodes again before the point where it takes over: it needs some of the past. */
const PREROLL_FRAMES = 2;
/** Samples that AAC encoders insert before the first one, by module. */
const AAC_PRIMING: Readonly<Record<string, number>> = { aac: 1024, fdkaac: 2048 };

/**
 * One encode of one input track, for all sinks of equal jobs. When encoders change, the output continues where it was,
 * without repetition.
 */
export class Encode {
  /** Consecutive failures without a packet. */
  strikes = 0;
  #job: EncodeJob;
  #codecs: CodecChoice;
  #sinks = new Map<EncodeSink, { waitsForKey: boolean }>();
  #format: EncodedFormat | undefined;
  #failed = false;
  #spans: EncoderSpan[] = [];
  #timebase: Timebase;
  /** End of the output, in ticks; undefined before the first packet. */
  #next: number | undefined;
  /** Ticks of an audio frame. */
  #frame = 0;
  /** In ticks of the format. */
  #lastDts = -1;

  constructor(job: EncodeJob, codecs: CodecChoice) {
    this.#job = job;
    this.#codecs = codecs;
    this.#timebase = timebaseOf(job);
  }

  get job(): EncodeJob {
    return this.#job;
  }

  get codecs(): CodecChoice {
    return this.#codecs;
  }

  get sinks(): readonly EncodeSink[] {
    return [...this.#sinks.keys()];
  }

  get hasFormat(): boolean {
    return this.#format !== undefined;
  }

  /** Time from which the input is still needed, in seconds. */
  get needed(): number {
    if (this.#next === undefined) return -Infinity;
    return toSeconds(this.#next - (PREROLL_FRAMES + 1) * this.#frame, this.#timebase);
  }

  /** Sets the job of the next encoder, after a change of the input's configuration or of the encoding. */
  follow(job: EncodeJob, codecs: CodecChoice): void {
    this.#job = job;
    this.#codecs = codecs;
  }

  /** Skips input before a time, in seconds. */
  skipTo(time: number): void {
    const next = rescale(time, SECONDS, this.#timebase);
    this.#next ??= next;
    const ahead = Math.max(0, next - this.#next);
    this.#next += this.#frame === 0 ? ahead : Math.floor(ahead / this.#frame) * this.#frame;
  }

  /** Sets the receivers. New ones of a running encoder get its format at once. */
  setSinks(sinks: readonly EncodeSink[]): void {
    const known = this.#sinks;
    this.#sinks = new Map(sinks.map((sink) => [sink, known.get(sink) ?? { waitsForKey: true }]));
    const format = this.#format;
    if (format === undefined || this.#failed) return;
    for (const sink of sinks) if (!known.has(sink)) sink.started(format);
  }

  /**
   * Begins a span for a new encoder, after the existing ones.
   * @returns the span, and the time from which the encoder is to encode, in seconds; undefined to encode everything
   */
  begin(): { span: EncoderSpan; resumeAt: number | undefined } {
    this.#count(timebaseOf(this.#job));
    const span = new EncoderSpan(this, this.#timebase, this.#next ?? -Infinity);
    this.#spans.push(span);
    if (this.#next === undefined) return { span, resumeAt: undefined };
    const lead = this.#frame === 0 ? 0 : PREROLL_FRAMES * this.#frame - this.#priming;
    return { span, resumeAt: toSeconds(this.#next - lead, this.#timebase) };
  }

  /**
   * Ends the input of the newest encoder at a time, because another one is about to begin.
   * @param time undefined if it got no input
   */
  cut(time: number | undefined, timebase: Timebase): void {
    const span = this.#spans.at(-1);
    if (span === undefined || span.ended) return;
    if (this.#next === undefined) {
      span.until = -Infinity;
      return;
    }
    // without sinks, the next encoder continues from here
    if (time !== undefined && this.#sinks.size > 0) this.skipTo(toSeconds(time, timebase));
    span.until = this.#next;
  }

  /** Reports the loss of the encoder to all sinks. */
  fail(reason: string, final: boolean): void {
    this.#failed = true;
    for (const sink of this.#sinks.keys()) sink.failed(reason, final);
  }

  /** Called by a span. */
  take(span: EncoderSpan, item: BitstreamFormat | EncodedPacket): void {
    if ('data' in item) {
      const tolerance = this.#frame / 2;
      if (item.pts < span.from - tolerance || item.pts >= span.until - tolerance) return;
      if (span === this.#spans.at(-1)) this.#advance(item);
      // samples that an audio encoder inserts before the beginning: players know no negative times
      if (item.pts < 0) return;
    }
    if (span === this.#spans[0]) this.#deliver(item);
    else span.held.push(item);
  }

  /** Called by a span. */
  ended(span: EncoderSpan): void {
    if (span !== this.#spans[0]) return;
    while (this.#spans[0]?.ended) {
      this.#spans.shift();
      const waiting = this.#spans[0]?.held ?? [];
      for (const item of waiting.splice(0)) this.#deliver(item);
    }
  }

  #advance({ pts, duration }: EncodedPacket): void {
    this.strikes = 0;
    this.#frame = duration;
    this.#next = Math.max(this.#next ?? 0, pts + (duration || 1));
  }

  /** Converts the times to another timebase. */
  #count(timebase: Timebase): void {
    const from = this.#timebase;
    if (isDeepStrictEqual(from, timebase)) return;
    if (this.#next !== undefined) this.#next = rescale(this.#next, from, timebase);
    this.#frame = rescale(this.#frame, from, timebase);
    this.#timebase = timebase;
  }

  get #priming(): number {
    const { codec } = this.#job.encoding;
    const config = this.#format?.config;
    if (codec === 'OPUS' && config !== undefined) return parseOpusConfig(config).preSkip;
    return AAC_PRIMING[this.#codecs.encoder.module] ?? 0;
  }

  #deliver(item: BitstreamFormat | EncodedPacket): void {
    if ('data' in item) this.#deliverPacket(item);
    else this.#deliverFormat({ ...item, module: this.#codecs.encoder.module });
  }

  #deliverFormat(format: EncodedFormat): void {
    if (!this.#failed && isDeepStrictEqual(format, this.#format)) return;
    if (this.#format !== undefined) this.#lastDts = rescale(this.#lastDts, this.#format.timebase, format.timebase);
    this.#format = format;
    this.#failed = false;
    for (const sink of this.#sinks.keys()) sink.started(format);
  }

  #deliverPacket({ dts, pts, duration, key, data }: EncodedPacket): void {
    this.#lastDts = Math.max(dts, this.#lastDts + 1);
    const packet = { dts: this.#lastDts, pts: Math.max(pts, this.#lastDts), duration, key, data };
    for (const [sink, state] of this.#sinks) {
      if (state.waitsForKey && !key) continue;
      state.waitsForKey = false;
      sink.packet(packet);
    }
  }
}

function timebaseOf({ encoding }: EncodeJob): Timebase {
  return encoding.type === 'audio' ? { num: 1, den: encoding.samplerate } : VIDEO_TIMEBASE;
}
