import { GopCache } from '../core/gop-cache.ts';
import type { Reader } from '../core/reader.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { Track } from '../core/track.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import type { Offer } from './module-choice.ts';
import type { CodecInventory } from './codecs.ts';
import type { Command } from './command.ts';
import { Encode, type EncodedFormat, type EncodeSink } from './encode.ts';
import { isSameEncode, isSameJob, type EncodeJob } from './encoding.ts';
import { predictedFormat } from './predicted-format.ts';
import { Group } from './group.ts';
import { chooseCodecs, type CodecChoice } from './codec-choice.ts';
import type { RunSetting } from './run.ts';

/** A job and the receiver of its output. */
export interface EncodeTask {
  readonly job: EncodeJob;
  readonly sink: EncodeSink;
}

export interface TranscoderOptions {
  readonly inventory: CodecInventory;
  readonly decodes: Command['decodes'];
  readonly log: Logger;
  /** Timeout of expected output of an encoder. */
  readonly hangMs?: number;
}

/** Limits of the input kept for encoders that are restarted. */
const CACHE_LIMITS = { bytes: 16 * 1024 * 1024, seconds: 20 };
const HANG_MS = 10_000;
const MERGE_MS = 3000;

/** A job that failed for good, kept while it is requested. */
interface Refusal {
  readonly job: EncodeJob;
  readonly reason: string;
  readonly notified: Set<EncodeSink>;
}

/** State after the inventory of the machine was read. */
interface Opened {
  readonly offer: Offer | undefined;
  readonly setting: RunSetting;
}

/**
 * Encodes an input stream: all jobs in one ffmpeg, equal ones once. Encoders that end are restarted and continue where they
 * were, from the cached input; an encoder that cannot work is left out, so that it does not block the others.
 */
export class Transcoder {
  readonly #input: InputStream;
  readonly #options: TranscoderOptions;
  readonly #faults: FaultLog;
  readonly #cache = new GopCache(CACHE_LIMITS, (track) => this.#needed(track));
  readonly #reader: Reader;
  #tasks: readonly EncodeTask[] = [];
  #rests = false;
  #opened: Opened | undefined;
  #encodes: readonly Encode[] = [];
  #groups: readonly Group[] = [];
  #refusals: readonly Refusal[] = [];
  /** Newest encode of each sink, which continues where it was if it is requested again. */
  readonly #latest = new WeakMap<EncodeSink, Encode>();
  /** Sinks that were given a predicted format, without an encoder. */
  readonly #predicted = new WeakSet<EncodeSink>();
  #merging: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param before earlier input, with which encoders begin */
  constructor(input: InputStream, options: TranscoderOptions, before?: GopCache) {
    this.#input = input;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    before?.replay((packet) => this.#cache.packet(packet));
    this.#reader = input.read({ packet: (packet) => this.#cache.packet(packet), close: () => this.close() });
    void this.#open();
  }

  /**
   * Sets the jobs. Jobs that stay continue without a gap.
   * @param rests whether there is no viewer: then nothing is encoded once all formats are known
   */
  setJobs(tasks: readonly EncodeTask[], rests = false): void {
    if (this.#closed) return;
    this.#tasks = tasks;
    this.#rests = rests;
    if (this.#opened !== undefined) this.#arrange(this.#opened);
  }

  get pids(): number[] {
    return this.#groups.flatMap(({ pids }) => pids);
  }

  /** Ends the encoders at once. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#tasks = [];
    for (const encode of this.#encodes) encode.setSinks([]);
    this.#encodes = [];
    for (const group of this.#groups) group.close();
    clearInterval(this.#merging);
    this.#reader.close();
    this.#cache.close();
    this.#faults.close();
  }

  async #open(): Promise<void> {
    const { inventory, decodes, log, hangMs = HANG_MS } = this.#options;
    const offer = await inventory.offer();
    if (this.#closed) return;
    const path = offer?.capabilities.path ?? '';
    const setting = {
      path,
      input: this.#input,
      cache: this.#cache,
      inventory,
      decodes,
      hangMs,
      log,
      faults: this.#faults,
    };
    this.#opened = { offer, setting };
    this.#arrange(this.#opened);
  }

  /** Finds or makes the encode of each task, and runs them. */
  #arrange({ offer, setting }: Opened): void {
    const before = this.#encodes;
    const refusals: Refusal[] = [];
    const predicted = this.#rests ? this.#predict(refusals, offer) : undefined;
    const tasks = predicted === undefined ? this.#tasks : [];
    const found = tasks.map((task) => before.find(({ job }) => isSameEncode(job, task.job)));
    const taken = new Set(found);
    const wanted = new Map<Encode, EncodeSink[]>();
    const isAudioAlone = tasks.every(({ job }) => job.encoding.type === 'audio');
    const { newest } = this.#input.arrival;
    for (const [i, { job, sink }] of tasks.entries()) {
      const same = found[i] ?? [...wanted.keys()].find((encode) => isSameEncode(encode.job, job));
      const codecs =
        same !== undefined && isSameJob(same.job, job) ? same.codecs : this.#chooseCodecs(job, refusals, offer, sink);
      if (codecs === undefined) continue;
      // a sink may have another job now: its encode continues where it was
      const latest = this.#latest.get(sink);
      const encode = same ?? (latest === undefined || taken.has(latest) ? new Encode(job, codecs) : latest);
      const hasRested = !before.includes(encode) && (encode === latest || this.#predicted.has(sink));
      // without video to encode, audio begins at the newest input, not at the last key frame
      if (hasRested && isAudioAlone && newest !== undefined) encode.skipTo(newest);
      this.#latest.set(sink, encode);
      taken.add(encode);
      if (same?.job.from !== job.from) encode.follow(job, codecs);
      wanted.set(encode, [...(wanted.get(encode) ?? []), sink]);
    }
    // jobs that cannot be done stay refused while resting
    const rested = this.#rests ? this.#refusals.filter((refusal) => !refusals.includes(refusal)) : [];
    this.#refusals = [...refusals, ...rested];
    this.#encodes = [...wanted.keys()];
    for (const encode of before) if (!wanted.has(encode)) encode.setSinks([]);
    for (const [encode, sinks] of wanted) encode.setSinks(sinks);
    this.#group(setting);
    for (const [sink, format] of predicted ?? []) {
      this.#predicted.add(sink);
      sink.started(format);
    }
  }

  /** Formats known without an encoder; undefined if one has to run to report its format. */
  #predict(refusals: Refusal[], offer: Offer | undefined): Map<EncodeSink, EncodedFormat> | undefined {
    const predicted = new Map<EncodeSink, EncodedFormat>();
    for (const { job, sink } of this.#tasks) {
      if (this.#latest.get(sink)?.hasFormat === true || this.#predicted.has(sink)) continue;
      const codecs = this.#chooseCodecs(job, refusals, offer, sink);
      if (codecs === undefined) continue;
      const format = predictedFormat(job, codecs);
      if (format === undefined) return undefined;
      predicted.set(sink, format);
    }
    return predicted;
  }

  /** Encoder and decoder of a job; undefined if there are none, which is reported once to each sink. */
  #chooseCodecs(
    job: EncodeJob,
    refusals: Refusal[],
    offer: Offer | undefined,
    sink: EncodeSink,
  ): CodecChoice | undefined {
    const isSame = (refusal: Refusal) => isSameJob(refusal.job, job);
    const known = refusals.find(isSame) ?? this.#refusals.find(isSame);
    const codecs = known?.reason ?? chooseCodecs(job, offer, this.#options.log);
    if (typeof codecs !== 'string') return codecs;
    const refusal = known ?? { job, reason: codecs, notified: new Set() };
    if (!refusals.includes(refusal)) refusals.push(refusal);
    if (!refusal.notified.has(sink)) {
      refusal.notified.add(sink);
      sink.failed(refusal.reason, true);
    }
    return undefined;
  }

  /** Encodes stay in their group; new ones join the first. */
  #group(setting: RunSetting): void {
    this.#groups = this.#groups.filter(({ encodes, pids }) => encodes.length > 0 || pids.length > 0);
    const placed = new Set(this.#groups.flatMap(({ encodes }) => encodes));
    const added = this.#encodes.filter((encode) => !placed.has(encode));
    if (this.#groups.length === 0 && added.length > 0) this.#addGroup(setting, 0);
    for (const [i, group] of this.#groups.entries()) {
      const kept = group.encodes.filter((encode) => this.#encodes.includes(encode));
      group.set(i === 0 ? [...kept, ...added] : kept);
    }
  }

  #addGroup(setting: RunSetting, failures: number): Group {
    const group = new Group(
      setting,
      {
        apart: (encodes, before) => this.#addGroup(setting, before).set(encodes),
        givenUp: (encode, reason) => this.#giveUp(encode, reason),
        othersWork: (encode) => this.#othersWork(encode),
      },
      failures,
    );
    this.#groups = [...this.#groups, group];
    return group;
  }

  #giveUp(encode: Encode, reason: string): void {
    this.#encodes = this.#encodes.filter((one) => one !== encode);
    this.#refusals = [...this.#refusals, { job: encode.job, reason, notified: new Set(encode.sinks) }];
    encode.fail(reason, true);
    this.#merging ??= setInterval(() => this.#merge(), MERGE_MS);
  }

  /** Merges the groups once all work again: the encode at fault was found. */
  #merge(): void {
    const [first, ...others] = this.#groups.filter(({ encodes }) => encodes.length > 0);
    if (others.length > 0 && ![first, ...others].every((group) => group?.healthy)) return;
    clearInterval(this.#merging);
    this.#merging = undefined;
    const encodes = this.#groups.flatMap((group) => group.encodes);
    for (const group of others) group.set([]);
    first?.set(encodes);
  }

  #othersWork({ job }: Encode): boolean {
    return this.#groups.some(({ healthy, encodes }) => healthy && encodes.some((other) => other.job.from === job.from));
  }

  #needed({ id }: Track): number {
    let needed = this.#opened === undefined ? -Infinity : Infinity;
    for (const encode of this.#encodes) if (encode.job.from.id === id) needed = Math.min(needed, encode.needed);
    return needed;
  }
}
