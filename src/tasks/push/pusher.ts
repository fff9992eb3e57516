import type { GopCache } from '../../core/gop-cache.ts';
import { Watchdog } from '../../core/watchdog.ts';
import { FaultLog, type Logger } from '../../log.ts';
import type { StreamTask } from '../kind.ts';
import { pause } from '../pause.ts';
import type { TrackChoice } from '../track-selection.ts';
import type { Destination } from './destination.ts';
import { PushError } from './error.ts';
import { PushCounts } from './progress.ts';
import { PushSession } from './session.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

export interface PusherOptions {
  readonly task: StreamTask;
  readonly destination: Destination;
  readonly choice: TrackChoice;
  readonly open: OpenSink;
  readonly connectMs: number;
  readonly sendMs: number;
  readonly start: () => GopCache | undefined;
  readonly log: Logger;
}

const KEEP_MS = 1000;
const FIRST_PAUSE_MS = 1000;
/** Later pauses are between these: many pushes to one server that is down come back one after the other. */
const PAUSE_MS = { least: 2000, most: 5000 };
/** After a connection of this length the next pause is the first again. */
const LASTING_MS = 10_000;

/** Pushes a stream to a destination, on one connection after the other, as long as its task runs. */
export class Pusher {
  readonly #options: PusherOptions;
  readonly #counts: PushCounts;
  readonly #faults: FaultLog;
  #failures = 0;
  #lastReason = '';

  constructor(options: PusherOptions) {
    this.#options = options;
    this.#counts = new PushCounts(options.task.progress);
    this.#faults = new FaultLog(options.log);
  }

  /** Resolves when the task's signal has aborted. */
  async run(): Promise<void> {
    const { task } = this.#options;
    task.show(() => this.#counts.report);
    try {
      while (!task.signal.aborted) {
        const since = performance.now();
        try {
          await this.#connection();
        } catch (error) {
          if (task.signal.aborted) break;
          if (!(error instanceof PushError)) throw error;
          if (performance.now() - since > LASTING_MS) this.#failures = 0;
          this.#failed(error);
          await pause(this.#pauseMs(), task.signal);
        }
      }
    } finally {
      this.#faults.close();
    }
  }

  /** @throws PushError when it could not be made, or is over */
  async #connection(): Promise<void> {
    const { task, choice, start, log } = this.#options;
    this.#counts.connecting();
    const over = Promise.withResolvers<void>();
    // there may be nobody who waits for it yet
    over.promise.catch(() => undefined);
    const fail = (error: PushError): void => over.reject(error);
    const end = (): void => over.resolve();
    let session: PushSession | undefined;
    const events = { writable: () => session?.resume(), failed: (reason: string) => fail(new PushError(reason)) };
    const sink = await this.#open(events);
    if (sink === undefined) return;
    const { output } = task;
    session = new PushSession(sink, {
      output,
      choice,
      start: start(),
      faults: this.#faults,
      onWarnings: (warnings) => this.#warn(warnings),
      onFail: fail,
    });
    const since = performance.now();
    const count = (): void => {
      this.#counts.sent(sink.sentBytes, Math.round(performance.now() - since));
      task.keep(this.#counts.progress);
    };
    const timer = setInterval(count, KEEP_MS);
    task.signal.addEventListener('abort', end, { once: true });
    try {
      session.start();
      this.#counts.begin();
      this.#lastReason = '';
      log.info({ event: 'push.started' }, 'the stream is being pushed');
      if (!task.signal.aborted) await over.promise;
      sink.finish();
    } catch (error) {
      sink.close();
      throw error;
    } finally {
      clearInterval(timer);
      task.signal.removeEventListener('abort', end);
      session.close();
      if (this.#counts.isPushing) {
        count();
        this.#counts.end();
        task.keep(this.#counts.progress);
      }
    }
  }

  /** @returns undefined when the task has ended meanwhile; @throws PushError */
  async #open(events: Pick<SinkOptions, 'writable' | 'failed'>): Promise<Sink | undefined> {
    const { task, destination, open, connectMs, sendMs } = this.#options;
    const stop = new AbortController();
    const late = new Watchdog(connectMs, () => stop.abort(new PushError(`not connected within ${connectMs} ms`)));
    const end = (): void => stop.abort(task.signal.reason);
    task.signal.addEventListener('abort', end, { once: true });
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason as Error), { once: true });
    const leftOut = (reason: string): void => this.#faults.count(`not pushed: ${reason}`);
    const opening = open(destination, { connectMs, sendMs, signal: stop.signal, leftOut, ...events });
    try {
      return await Promise.race([opening, stopped]);
    } catch (error) {
      opening.then(
        (sink) => sink.close(),
        () => undefined,
      );
      if (task.signal.aborted) return undefined;
      throw error;
    } finally {
      late.close();
      task.signal.removeEventListener('abort', end);
    }
  }

  #failed({ message }: PushError): void {
    const { log } = this.#options;
    this.#counts.failed(message);
    this.#failures += 1;
    // of a destination that stays away one line is enough
    const level = message === this.#lastReason ? 'debug' : 'warn';
    this.#lastReason = message;
    log[level]({ event: 'push.failed' }, `the stream is not pushed, another connection will be tried: ${message}`);
  }

  /** Each connection has the same ones again. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#counts.warnings.includes(warning)) this.#options.log.warn(warning);
    this.#counts.warnings = warnings;
  }

  #pauseMs(): number {
    if (this.#failures <= 1) return FIRST_PAUSE_MS;
    return PAUSE_MS.least + Math.random() * (PAUSE_MS.most - PAUSE_MS.least);
  }
}
