import type { GopCache } from '../core/gop-cache.ts';
import type { Reader } from '../core/reader.ts';
import type { InputStream } from '../core/stream.ts';
import { sameFormat, type MediaTrack } from '../core/track.ts';
import type { FaultLog, Logger } from '../log/log.ts';
import { FfmpegChild } from '../media-child/child.ts';
import type { Choice } from './choice.ts';
import type { CodecInventory } from './codecs.ts';
import { ffmpegArguments, type Command } from './command.ts';
import type { Encode } from './encode.ts';
import type { EncoderRun } from './encoder-runs.ts';
import { isSameJob } from './encoding.ts';
import { Feed } from './feed.ts';
import { Lag, MAX_LAG } from './lag.ts';
import { Output } from './output.ts';
import { silentOutputs } from './silence.ts';

/** What waits for the child's input: all that the cache may hold, and what comes while it is taken. */
const INPUT_LIMITS = { bytes: 32 * 1024 * 1024, seconds: 30 };
const WATCH_MS = 1000;
/** A run that has worked for so long, or put out so much, is one that works. */
const HEALTHY_SECONDS = 2;

export interface RunHandler {
  /** The child is gone. Nothing follows. @param end undefined when it was told to */
  gone(end: RunEnd | undefined): void;
  /** An encode puts out nothing any more though the others do. */
  lost(encode: Encode, reason: string): void;
}

/** How a run ended that was not to. */
export interface RunEnd {
  readonly reason: string;
  /** By somebody else: neither its input nor its work can be the cause. */
  readonly killed: boolean;
}

/** What all runs of a stream have in common. */
export interface RunSetting {
  /** Path of ffmpeg. */
  readonly path: string;
  readonly input: InputStream;
  readonly cache: GopCache;
  readonly inventory: CodecInventory;
  readonly decodes: Command['decodes'];
  /** How long an output that should give something may be silent, and input be stuck. */
  readonly hangMs: number;
  readonly log: Logger;
  readonly faults: FaultLog;
}

/** One ffmpeg at work on some encodes, from its start to its end. */
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
  /** Since when it is expected to put something out: it spoke last then, or could not be heard before. */
  #patientSince = 0;
  #lines = 0;
  #dropped = 0;
  /** Why it was killed. */
  #verdict: string | undefined;
  #finished = false;

  /** @param replay whether it begins with what the cache holds, or with what comes next */
  constructor(setting: RunSetting, encodes: readonly Encode[], handler: RunHandler, replay: boolean) {
    const { path, input, cache, decodes, faults } = setting;
    this.#setting = setting;
    this.#handler = handler;
    this.#outputs = encodes.map((encode) => new Output(encode));
    const decoding = new Map(this.#outputs.map(({ job, means }) => [job.from, means.decoder]));
    const tracks = [...decoding.keys()];
    const decoders = [...decoding.values()];
    const jobs = this.#outputs.map(({ job, means, resumeAt }) => {
      return { job, choice: means.encoder, resumeAt, mapsTones: means.mapsTones };
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

  /** Undefined when it could not be started. */
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

  /** Whether it does what these encodes are to do now, and nothing else. */
  does(encodes: readonly Encode[]): boolean {
    const outputs = this.#working;
    return (
      outputs.length === encodes.length &&
      outputs.every(({ encode, job }) => encodes.includes(encode) && isSameJob(encode.job, job))
    );
  }

  /** Whether every encode that was given input has put out something. */
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

  /** Whether an encode was given input and made nothing of it. */
  failedAt(encode: Encode): boolean {
    const output = this.#outputs.find((one) => one.encode === encode);
    return output !== undefined && this.#isFruitless(output);
  }

  /** The encode that the child says its end is to blame on. */
  get blamed(): Encode | undefined {
    // the first is the cause, others are the consequence
    const [index] = this.#child.diagnostics.blamed;
    return index === undefined ? undefined : this.#outputs[index]?.encode;
  }

  /** It gets no more input, puts out the rest and ends: another one goes on where its input ended. */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    // what waits for its input is of tracks that nobody else may know
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

  /** Ends it at once. */
  kill(): void {
    this.#finished = true;
    this.#reader.close();
    this.#child.kill();
  }

  #count(decoding: ReadonlyMap<MediaTrack, Choice>): (() => void)[] {
    const { inventory } = this.#setting;
    return [
      ...[...decoding].map(([{ type }, decoder]) => inventory.started(entryOf(type, decoder), 'decoder')),
      ...this.#outputs.map(({ job, means }) => inventory.started(entryOf(job.encoding.type, means.encoder), 'encoder')),
      inventory.runs.begin(this),
    ];
  }

  /** The outputs that were not given up. */
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
    // what came while this process stood still is heard first
    if (stoodStill) {
      this.#lag = new Lag();
      return;
    }
    if (!this.#finished && this.#lag.isLasting(this.#reader.queuedSeconds, now)) this.#reader.skip();
    this.#tellDropped();
    if (this.#finished || this.#verdict !== undefined) return;
    if (this.productive) this.#productiveSince ??= now;
    this.#judge(now);
  }

  /** Finds out whether it hangs, or one of its outputs does. */
  #judge(now: number): void {
    const { hangMs } = this.#setting;
    const { stopped, errors } = this.#child.diagnostics;
    // one that is about to end closes its outputs first
    const over = this.#outputs.filter(({ endedAt = now }) => now - endedAt >= WATCH_MS);
    if (over.length === this.#outputs.length) return this.#condemn(`ffmpeg has closed its outputs: ${errors}`);
    for (const [i, output] of this.#outputs.entries()) {
      if (over.includes(output) || stopped.has(i)) this.#lose(output, `its output has ended: ${errors}`);
    }
    // one that complains of its input works
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

  #tellDropped(): void {
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
