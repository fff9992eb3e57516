import type { GopCache } from '../core/gop-cache.ts';
import type { Reader } from '../core/reader.ts';
import type { InputStream } from '../core/input-stream.ts';
import { sameFormat, type MediaTrack } from '../core/track.ts';
import type { FaultLog, Logger } from '../log/log.ts';
import { FfmpegChild } from '../media-child/child.ts';
import type { Choice } from './module-choice.ts';
import type { CodecInventory } from './codecs.ts';
import { ffmpegArguments, type Command } from './command.ts';
import type { Encode } from './encode.ts';
import type { EncoderRun } from './encoder-runs.ts';
import { isSameJob } from './encoding.ts';
import { Feed } from './feed.ts';
import { Lag, MAX_LAG } from './lag.ts';
import { Output } from './output.ts';
import { silentOutputs } from './silence.ts';

/** Limits of the input queue: the whole cache, and what arrives while that is written. */
const INPUT_LIMITS = { bytes: 32 * 1024 * 1024, seconds: 30 };
const WATCH_MS = 1000;
/** Seconds of work, or of output, after which a run is healthy. */
const HEALTHY_SECONDS = 2;

export interface RunHandler {
  /** The child has ended. Nothing follows. @param end undefined if it was asked to */
  gone(end: RunEnd | undefined): void;
  /** An encode has no more output though the others do. */
  lost(encode: Encode, reason: string): void;
}

/** An unexpected end of a run. */
export interface RunEnd {
  readonly reason: string;
  /** Whether it was killed from outside: then neither its input nor its work is the cause. */
  readonly killed: boolean;
}

/** Common settings of all runs of a stream. */
export interface RunSetting {
  readonly path: string;
  readonly input: InputStream;
  readonly cache: GopCache;
  readonly inventory: CodecInventory;
  readonly decodes: Command['decodes'];
  /** Timeout of expected output, and of blocked input. */
  readonly hangMs: number;
  readonly log: Logger;
  readonly faults: FaultLog;
}

/** One ffmpeg process and its encodes, from its start to its end. */
export class Run implements EncoderRun {
  readonly #setting: RunSetting;
  readonly #handler: RunHandler;
  readonly #outputs: readonly Output[];
  readonly #child: FfmpegChild;
  readonly #feed: Feed;
  readonly #reader: Reader;
  readonly #uncount: readonly (() => void)[];
  #lag = new Lag();
  readonly #watch = setInterval(() => this.#look(), WATCH_MS);
  readonly #lost = new Set<Output>();
  #lookedAt = performance.now();
  #productiveSince: number | undefined;
  /** Start of the timeout for output: the newest line on standard error, or the end of a standstill of this process. */
  #patientSince = 0;
  #lines = 0;
  #dropped = 0;
  /** Reason why Kiln killed it. */
  #verdict: string | undefined;
  #finished = false;

  /** @param replay whether the input begins with the cached packets, or with the next one */
  constructor(setting: RunSetting, encodes: readonly Encode[], handler: RunHandler, replay: boolean) {
    const { path, input, cache, decodes, faults } = setting;
    this.#setting = setting;
    this.#handler = handler;
    this.#outputs = encodes.map((encode) => new Output(encode));
    const decoding = new Map(this.#outputs.map(({ job, codecs }) => [job.from, codecs.decoder]));
    const tracks = [...decoding.keys()];
    const decoders = [...decoding.values()];
    const jobs = this.#outputs.map(({ job, codecs, resumeAt }) => {
      return { job, choice: codecs.encoder, resumeAt, mapsTones: codecs.mapsTones };
    });
    this.#child = new FfmpegChild({
      path,
      faults,
      outputs: jobs.length,
      args: ffmpegArguments({ tracks, decoders, jobs, decodes }),
      handler: {
        output: (index, chunk) => this.#take(this.#outputs[index] as Output, chunk),
        outputEnd: (index) => (this.#outputs[index] as Output).end(),
        drain: () => this.#drained(),
        gone: (reason, killed) => this.#gone({ reason, killed }),
      },
    });
    this.#uncount = this.#count(decoding);
    this.#feed = new Feed(tracks, this.#child, faults);
    this.#reader = input.read(this.#feed, INPUT_LIMITS, input.queue('encoder', { seconds: MAX_LAG }));
    if (replay) cache.replay((packet) => this.#reader.push(packet));
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get input(): InputStream {
    return this.#setting.input;
  }

  get mediaSeconds(): number {
    return Math.max(0, ...this.#outputs.map(({ advanced }) => advanced));
  }

  get queuedSeconds(): number {
    return this.#reader.queuedSeconds;
  }

  /** Whether it runs exactly the current jobs of these encodes. */
  does(encodes: readonly Encode[]): boolean {
    const outputs = this.#working;
    return (
      outputs.length === encodes.length &&
      outputs.every(({ encode, job }) => encodes.includes(encode) && isSameJob(encode.job, job))
    );
  }

  /** Whether there is output, and from every encode that got input. */
  get productive(): boolean {
    const outputs = this.#working;
    return outputs.some(({ reached }) => reached !== undefined) && !outputs.some((output) => this.#isFruitless(output));
  }

  /** Whether it has been productive for a while. */
  get healthy(): boolean {
    if (!this.productive) return false;
    const since = this.#productiveSince;
    if (since !== undefined && performance.now() - since >= HEALTHY_SECONDS * 1000) return true;
    return this.#outputs.every(({ advanced, ended }) => ended || advanced >= HEALTHY_SECONDS);
  }

  /** Whether an encode got input and has no output. */
  failedAt(encode: Encode): boolean {
    const output = this.#outputs.find((one) => one.encode === encode);
    return output !== undefined && this.#isFruitless(output);
  }

  /** The encode that the child's diagnostics blame for its end. */
  get blamed(): Encode | undefined {
    // the first is the cause, others are the consequence
    const [index] = this.#child.diagnostics.blamed;
    return index === undefined ? undefined : this.#outputs[index]?.encode;
  }

  /** Ends the input, so that the child writes the rest and ends; another run continues where the input ended. */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    // queued packets may be of tracks that no later run decodes
    this.#feed.takeLast();
    this.#reader.resume();
    this.#reader.close();
    for (const {
      encode,
      job: { from },
      ended,
    } of this.#outputs) {
      const isLast = !sameFormat(encode.job.from, from);
      if (!ended) encode.cut(this.#feed.edge(from, isLast), from.timebase);
    }
    this.#child.end();
  }

  kill(): void {
    this.#finished = true;
    this.#reader.close();
    this.#child.kill();
  }

  #count(decoding: ReadonlyMap<MediaTrack, Choice>): (() => void)[] {
    const { inventory } = this.#setting;
    return [
      ...[...decoding].map(([{ type }, decoder]) => inventory.started(entryOf(type, decoder), 'decoder')),
      ...this.#outputs.map(({ job, codecs }) =>
        inventory.started(entryOf(job.encoding.type, codecs.encoder), 'encoder'),
      ),
      inventory.runs.begin(this),
    ];
  }

  get #working(): readonly Output[] {
    return this.#outputs.filter((output) => !this.#lost.has(output));
  }

  #isFruitless({ job, reached }: Output): boolean {
    return reached === undefined && this.#feed.fed(job.from) !== undefined;
  }

  #take(output: Output, chunk: Buffer): void {
    const fault = output.push(chunk);
    if (fault !== undefined) this.#lose(output, `the output of its encoder is malformed: ${fault}`);
  }

  #drained(): void {
    this.#feed.drained();
    this.#reader.resume();
  }

  #look(): void {
    const now = performance.now();
    const { lines } = this.#child.diagnostics;
    const stoodStill = now - this.#lookedAt > 2 * WATCH_MS;
    if (stoodStill || lines !== this.#lines) this.#patientSince = now;
    this.#lookedAt = now;
    this.#lines = lines;
    // read first what arrived while this process stood still
    if (stoodStill) {
      this.#lag = new Lag();
      return;
    }
    if (!this.#finished && this.#lag.isLasting(this.#reader.queuedSeconds, now)) this.#reader.skip();
    this.#logDropped();
    if (this.#finished || this.#verdict !== undefined) return;
    if (this.productive) this.#productiveSince ??= now;
    this.#judge(now);
  }

  /** Detects whether the child, or one of its outputs, hangs. */
  #judge(now: number): void {
    const { hangMs } = this.#setting;
    const { stopped, errors } = this.#child.diagnostics;
    // a child that is about to end closes its outputs first
    const over = this.#outputs.filter(({ endedAt = now }) => now - endedAt >= WATCH_MS);
    if (over.length === this.#outputs.length) return this.#condemn(`ffmpeg has closed its outputs: ${errors}`);
    for (const [i, output] of this.#outputs.entries()) {
      if (over.includes(output) || stopped.has(i)) this.#lose(output, `its output has ended: ${errors}`);
    }
    // a child that complains of its input works
    if (now - this.#patientSince < hangMs) return;
    const { fullSince = now } = this.#feed;
    const quiet = this.#outputs.every(({ lastAt }) => now - lastAt > hangMs);
    if (quiet && now - fullSince > hangMs) return this.#condemn('ffmpeg does not read its input');
    const silent = silentOutputs(this.#outputs, this.#feed, now, hangMs);
    const open = this.#outputs.filter(({ ended, job }) => !ended && this.#feed.fed(job.from) !== undefined);
    if (silent.length > 0 && silent.length === open.length) return this.#condemn('ffmpeg produces no output');
    for (const output of silent) this.#lose(output, 'it produces no output');
  }

  #condemn(verdict: string): void {
    this.#verdict = verdict;
    this.#child.kill();
  }

  #lose(output: Output, reason: string): void {
    output.end();
    if (this.#finished || this.#lost.has(output)) return;
    this.#lost.add(output);
    this.#handler.lost(output.encode, reason);
  }

  #logDropped(): void {
    const { dropped } = this.#reader;
    const count = dropped - this.#dropped;
    this.#dropped = dropped;
    if (count > 0) this.#setting.log.warn({ count }, 'the encoders are too slow: frames of the input are dropped');
  }

  #gone(end: RunEnd): void {
    clearInterval(this.#watch);
    for (const uncount of this.#uncount) uncount();
    this.#reader.close();
    for (const output of this.#outputs) output.end();
    if (this.#finished) this.#handler.gone(undefined);
    else if (this.#verdict === undefined) this.#handler.gone(end);
    else this.#handler.gone({ reason: this.#verdict, killed: false });
  }
}

function entryOf(type: 'video' | 'image' | 'audio', { name }: Choice): { mediaType: 'Video' | 'Audio'; name: string } {
  return { mediaType: type === 'audio' ? 'Audio' : 'Video', name };
}
