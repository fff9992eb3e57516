import { isDeepStrictEqual } from 'node:util';
import { parseOpusConfig } from '../codecs/opus.ts';
import { rescale, toSeconds, VIDEO_TIMEBASE, type Timebase } from '../core/timebase.ts';
import type { BitstreamFormat, EncodedPacket } from '../media-child/bitstream.ts';
import type { EncodeJob } from './encoding.ts';
import type { Means } from './means.ts';
import { Turn } from './turn.ts';

/** What is told of encoded packets when their encoder has started. */
export interface EncodedFormat extends BitstreamFormat {
  /** Module of the codec inventory. */
  readonly module: string;
}

/** Who wants what a job makes. */
export interface EncodeSink {
  /** There is an encoder: in front of its first packet, of every other format, and after each failure. */
  started(format: EncodedFormat): void;
  /** In decode order, decode times strictly increasing; of a video from a key frame on. */
  packet(packet: EncodedPacket): void;
  /** There is no encoder. @param final none will come */
  failed(reason: string, final: boolean): void;
}

const SECONDS: Timebase = { num: 1, den: 1 };
/** Audio frames that are encoded anew in front of where an encoder takes over: it needs some of the past. */
const PREROLL_FRAMES = 2;
/** Samples that AAC encoders put in front of the first one, by module. */
const AAC_PRIMING: Readonly<Record<string, number>> = { aac: 1024, fdkaac: 2048 };

/**
 * One encode of one input track, for all who want the same. Encoders come and go; what they put out goes on
 * where it was, nothing twice.
 */
export class Encode {
  /** Failures in a row without a packet in between. */
  strikes = 0;
  #job: EncodeJob;
  #means: Means;
  #sinks = new Map<EncodeSink, { waitsForKey: boolean }>();
  #format: EncodedFormat | undefined;
  #failed = false;
  #turns: Turn[] = [];
  #timebase: Timebase;
  /** The time up to which everything was put out, undefined before anything was; the length of an audio frame. */
  #next: number | undefined;
  #frame = 0;
  /** In ticks of the format. */
  #lastDts = -1;

  constructor(job: EncodeJob, means: Means) {
    this.#job = job;
    this.#means = means;
    this.#timebase = timebaseOf(job);
  }

  get job(): EncodeJob {
    return this.#job;
  }

  get means(): Means {
    return this.#means;
  }

  get sinks(): readonly EncodeSink[] {
    return [...this.#sinks.keys()];
  }

  /** Whether an encoder has told its format. */
  get hasTold(): boolean {
    return this.#format !== undefined;
  }

  /** From which time on its input is still needed, in seconds. */
  get needed(): number {
    if (this.#next === undefined) return -Infinity;
    return toSeconds(this.#next - (PREROLL_FRAMES + 1) * this.#frame, this.#timebase);
  }

  /** What the encoder that begins next is to do: its input has another configuration, or it is to make something else of it. */
  follow(job: EncodeJob, means: Means): void {
    this.#job = job;
    this.#means = means;
  }

  /** What came before a time, in seconds, is not encoded any more. */
  skipTo(time: number): void {
    const next = rescale(time, SECONDS, this.#timebase);
    this.#next ??= next;
    const ahead = Math.max(0, next - this.#next);
    this.#next += this.#frame === 0 ? ahead : Math.floor(ahead / this.#frame) * this.#frame;
  }

  /** Who wants it from now on. Those who come to a running encoder are told its format at once. */
  setSinks(sinks: readonly EncodeSink[]): void {
    const known = this.#sinks;
    this.#sinks = new Map(sinks.map((sink) => [sink, known.get(sink) ?? { waitsForKey: true }]));
    const format = this.#format;
    if (format === undefined || this.#failed) return;
    for (const sink of sinks) if (!known.has(sink)) sink.started(format);
  }

  /**
   * A new encoder begins, behind those that are there.
   * @returns the place of its output, and the time from which on it is to encode, in seconds; undefined: all
   */
  begin(): { turn: Turn; resumeAt: number | undefined } {
    this.#count(timebaseOf(this.#job));
    const turn = new Turn(this, this.#timebase, this.#next ?? -Infinity);
    this.#turns.push(turn);
    if (this.#next === undefined) return { turn, resumeAt: undefined };
    const lead = this.#frame === 0 ? 0 : PREROLL_FRAMES * this.#frame - this.#priming;
    return { turn, resumeAt: toSeconds(this.#next - lead, this.#timebase) };
  }

  /**
   * The encoder that began last gets no input from a time on, for another one is about to begin.
   * @param time undefined when it got none at all
   */
  cut(time: number | undefined, timebase: Timebase): void {
    const turn = this.#turns.at(-1);
    if (turn === undefined || turn.ended) return;
    if (this.#next === undefined) {
      turn.until = -Infinity;
      return;
    }
    // what nobody takes is left to the next one
    if (time !== undefined && this.#sinks.size > 0) this.skipTo(toSeconds(time, timebase));
    turn.until = this.#next;
  }

  /** Its encoder is not there any more. */
  fail(reason: string, final: boolean): void {
    this.#failed = true;
    for (const sink of this.#sinks.keys()) sink.failed(reason, final);
  }

  /** Called by a turn. */
  take(turn: Turn, item: BitstreamFormat | EncodedPacket): void {
    if ('data' in item) {
      const tolerance = this.#frame / 2;
      if (item.pts < turn.from - tolerance || item.pts >= turn.until - tolerance) return;
      if (turn === this.#turns.at(-1)) this.#advance(item);
      // what an audio encoder puts in front of the beginning, and what begins there: players have no time below zero
      if (item.pts < 0) return;
    }
    if (turn === this.#turns[0]) this.#deliver(item);
    else turn.held.push(item);
  }

  /** Called by a turn. */
  ended(turn: Turn): void {
    if (turn !== this.#turns[0]) return;
    while (this.#turns[0]?.ended) {
      this.#turns.shift();
      const waiting = this.#turns[0]?.held ?? [];
      for (const item of waiting.splice(0)) this.#deliver(item);
    }
  }

  #advance({ pts, duration }: EncodedPacket): void {
    this.strikes = 0;
    this.#frame = duration;
    this.#next = Math.max(this.#next ?? 0, pts + (duration || 1));
  }

  /** Counts its times in another timebase from now on. */
  #count(timebase: Timebase): void {
    const from = this.#timebase;
    if (isDeepStrictEqual(from, timebase)) return;
    if (this.#next !== undefined) this.#next = rescale(this.#next, from, timebase);
    this.#frame = rescale(this.#frame, from, timebase);
    this.#timebase = timebase;
  }

  /** Samples that the encoder puts in front of the first one it is given. */
  get #priming(): number {
    const { codec } = this.#job.encoding;
    const config = this.#format?.config;
    if (codec === 'OPUS' && config !== undefined) return parseOpusConfig(config).preSkip;
    return AAC_PRIMING[this.#means.encoder.module] ?? 0;
  }

  #deliver(item: BitstreamFormat | EncodedPacket): void {
    if ('data' in item) this.#deliverPacket(item);
    else this.#deliverFormat({ ...item, module: this.#means.encoder.module });
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
