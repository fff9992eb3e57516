import { BackOff } from '../lib/back-off.ts';
import type { Encode } from './encode.ts';
import { Run, type RunEnd, type RunSetting } from './run.ts';

/** Shorter than the input's cache, so that nothing need be lost. */
const LONGEST_PAUSE_MS = 15_000;
/** Consecutive failures after which an encode that ffmpeg blames is given up. */
const MAX_STRIKES = 3;
/** Consecutive failures for no known reason after which a group is divided to find the encode at fault. */
const FAILURES_TOGETHER = 3;
/** Weight of the end of a run that had output for every encode, or was killed from outside. */
const SMALL_FAILURE = 0.25;
/** Consecutive crashes after which a single encode does not replay cached input, which may be the cause. */
const CRASHES_ON_INPUT = 2;

export interface GroupHandler {
  /** Some encodes leave the group, to run on their own. */
  apart(encodes: readonly Encode[], failures: number): void;
  /** An encode was given up, and leaves the group. */
  givenUp(encode: Encode, reason: string): void;
  /** Whether other encodes of the same input work, so that the input is not the cause. */
  othersWork(encode: Encode): boolean;
}

/** Encodes that share one ffmpeg, which is restarted whenever it ends. */
export class Group {
  readonly #setting: RunSetting;
  readonly #handler: GroupHandler;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  #encodes: readonly Encode[] = [];
  #run: Run | undefined;
  readonly #leaving = new Set<Run>();
  #failures: number;
  /** Consecutive ends without output, unless killed from outside. */
  #crashes = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param failures consecutive failures of its encodes for no known reason */
  constructor(setting: RunSetting, handler: GroupHandler, failures = 0) {
    this.#setting = setting;
    this.#handler = handler;
    this.#failures = failures;
  }

  get encodes(): readonly Encode[] {
    return this.#encodes;
  }

  get healthy(): boolean {
    return this.#run?.healthy ?? false;
  }

  get pids(): number[] {
    return [...this.#leaving, ...(this.#run === undefined ? [] : [this.#run])].flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Sets the encodes, or new jobs of the same ones. Starts a new run if needed, which continues where the one before
   * stopped.
   */
  set(encodes: readonly Encode[]): void {
    this.#encodes = encodes;
    if (this.#run?.does(encodes) === true) return;
    clearTimeout(this.#timer);
    this.#run?.finish();
    if (this.#run !== undefined) this.#leaving.add(this.#run);
    this.#run = undefined;
    this.#start();
  }

  /** Ends all at once. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#encodes = [];
    clearTimeout(this.#timer);
    this.#run?.kill();
    for (const run of this.#leaving) run.kill();
  }

  #start(): void {
    if (this.#encodes.length === 0 || this.#closed) return;
    const run: Run = new Run(
      this.#setting,
      this.#encodes,
      {
        gone: (end) => this.#gone(run, end),
        lost: (encode, reason) => this.#lost(encode, reason),
      },
      this.#encodes.length > 1 || this.#crashes < CRASHES_ON_INPUT,
    );
    this.#run = run;
  }

  #gone(run: Run, end: RunEnd | undefined): void {
    this.#leaving.delete(run);
    if (run !== this.#run) return;
    this.#run = undefined;
    if (end === undefined || this.#closed || this.#encodes.length === 0) return;
    const { reason } = end;
    this.#setting.inventory.runs.died++;
    this.#setting.log.warn(
      { event: 'encoder.died', pid: run.pid, reason },
      'an encoder process has died and will be started again',
    );
    for (const encode of this.#encodes) encode.fail(reason, false);
    this.#account(run, end);
    this.#timer = setTimeout(() => this.#start(), this.#backOff.next());
  }

  #account(run: Run, { reason, killed }: RunEnd): void {
    if (run.productive) this.#crashes = 0;
    else if (!killed && run.pid !== undefined && run.blamed === undefined) this.#crashes++;
    if (run.healthy) {
      this.#backOff.reset();
      this.#failures = 0;
    } else if (run.pid !== undefined && !(killed && run.productive)) {
      this.#findCulprit(run, reason, run.productive || killed ? SMALL_FAILURE : 1);
    }
  }

  #findCulprit(run: Run, reason: string, weight: number): void {
    const { blamed } = run;
    if (blamed !== undefined && this.#encodes.includes(blamed) && run.failedAt(blamed)) {
      blamed.strikes++;
      if (blamed.strikes < MAX_STRIKES) return;
      this.#drop(blamed);
      this.#backOff.reset();
      this.#handler.givenUp(blamed, reason);
      return;
    }
    this.#failures += weight;
    if (this.#failures < FAILURES_TOGETHER) return;
    const [only, ...others] = this.#encodes;
    if (only === undefined) return;
    if (others.length > 0) return this.#divide(run);
    if (!run.failedAt(only) || !this.#handler.othersWork(only)) return;
    this.#drop(only);
    this.#handler.givenUp(only, reason);
  }

  /** Keeps the encodes that worked if some did, else half of them. */
  #divide(run: Run): void {
    const failed = this.#encodes.filter((encode) => run.failedAt(encode));
    const half = Math.ceil(this.#encodes.length / 2);
    const away = failed.length > 0 && failed.length < this.#encodes.length ? failed : this.#encodes.slice(half);
    this.#drop(...away);
    this.#backOff.reset();
    this.#crashes = 0;
    this.#handler.apart(away, this.#failures);
  }

  #lost(encode: Encode, reason: string): void {
    this.#setting.log.warn(
      { reason, codec: encode.job.encoding.codec },
      'an encoder is restarted in a process of its own',
    );
    this.#drop(encode);
    if (this.#encodes.length === 0) this.set([]);
    encode.strikes++;
    if (encode.strikes >= MAX_STRIKES) return this.#handler.givenUp(encode, reason);
    encode.fail(reason, false);
    this.#handler.apart([encode], 0);
  }

  #drop(...away: readonly Encode[]): void {
    this.#encodes = this.#encodes.filter((encode) => !away.includes(encode));
  }
}
