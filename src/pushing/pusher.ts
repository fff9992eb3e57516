import type { GopCache } from '../core/gop-cache.ts';
import type { Track } from '../core/track.ts';
import { Watchdog } from '../lib/watchdog.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import type { StreamTask } from '../tasks/kind.ts';
import { pause } from '../lib/pause.ts';
import type { TrackChoice } from '../tasks/track-selection.ts';
import { movedDestination, type Destination } from './destination.ts';
import { PushError } from './error.ts';
import { Line } from './line.ts';
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
  readonly skipsStandby?: boolean;
  readonly start: () => GopCache | undefined;
  readonly log: Logger;
}

const KEEP_MS = 1000;
const FIRST_PAUSE_MS = 1000;
/** Range of later pauses, random so that pushes to one server that is down do not return at the same time. */
const PAUSE_MS = { least: 2000, most: 5000 };
/** A connection of this length resets the pauses. */
const LASTING_MS = 10_000;
/** Least time between two moves: servers might send each other's publishers in circles. */
const SETTLED_MS = 10_000;

/** Pushes a stream to a destination over successive connections, as long as its task runs. */
export class Pusher {
  readonly #options: PusherOptions;
  readonly #counts: PushCounts;
  readonly #faults: FaultLog;
  /** Tracks of the last connection. */
  #tracks: readonly Track[] = [];
  #failures = 0;
  #lastReason = '';
  /** Time of the last move to another connection, by the monotonic clock. */
  #movedAt = -Infinity;

  constructor(options: PusherOptions) {
    this.#options = options;
    this.#counts = new PushCounts(options.task.progress);
    this.#faults = new FaultLog(options.log);
  }

  /** Resolves when the task's signal has aborted. */
  async run(): Promise<void> {
    const { task } = this.#options;
    task.show(() => this.#counts.report);
    let line: Line | undefined;
    try {
      while (!task.signal.aborted) {
        const since = performance.now();
        try {
          line = await this.#connection(line);
        } catch (error) {
          line = undefined;
          if (task.signal.aborted) break;
          if (!(error instanceof PushError)) throw error;
          if (performance.now() - since > LASTING_MS) this.#failures = 0;
          this.#failed(error);
          await pause(this.#pauseMs(), task.signal);
        }
      }
    } finally {
      line?.sink.close();
      this.#faults.close();
    }
  }

  /**
   * Runs one connection until it ends.
   * @param made the connection, where it exists already
   * @returns the connection that the destination asked to move to
   * @throws PushError when it could not be made, or has ended
   */
  async #connection(made: Line | undefined): Promise<Line | undefined> {
    const { task, destination, choice, start, skipsStandby = false, log } = this.#options;
    if (made === undefined) this.#counts.connecting();
    const over = Promise.withResolvers<void>();
    // it may reject before it is awaited
    over.promise.catch(() => undefined);
    const fail = (error: PushError): void => over.reject(error);
    const end = (): void => over.resolve();
    const line = made ?? (await Line.open(destination, (to, events) => this.#open(to, events)));
    if (line === undefined) return undefined;
    const { sink } = line;
    const { output } = task;
    const session = new PushSession(sink, {
      output,
      choice,
      before: this.#tracks,
      start: start(),
      skipsStandby,
      faults: this.#faults,
      onWarnings: (warnings) => this.#warn(warnings),
      onFail: fail,
    });
    let next: Line | undefined;
    let isOver = false;
    let moving: Promise<void> | undefined;
    const move = async (url: string | undefined): Promise<void> => {
      const moved = await this.#move(line.destination, url);
      moving = undefined;
      if (isOver) return moved?.sink.close();
      next = moved;
      if (next !== undefined) end();
    };
    line.use({
      writable: () => session.resume(),
      failed: (reason) => fail(new PushError(reason)),
      moved: (url) => {
        if (performance.now() - this.#movedAt >= SETTLED_MS) moving ??= move(url).catch(fail);
      },
    });
    const since = performance.now();
    const count = (): void => {
      this.#counts.sent(sink.sentBytes, Math.round(performance.now() - since));
      task.keep(this.#counts.progress);
    };
    const timer = setInterval(count, KEEP_MS);
    task.signal.addEventListener('abort', end, { once: true });
    try {
      const taken = session.start();
      if (taken !== undefined) await Promise.race([taken, over.promise]);
      this.#counts.begin();
      this.#lastReason = '';
      log.info({ event: 'push.started' }, 'the stream is being pushed');
      if (!task.signal.aborted) await over.promise;
      sink.finish();
      return next;
    } catch (error) {
      session.close();
      sink.close();
      // a server may end this connection as soon as it has the new one
      await moving;
      if (next === undefined) throw error;
      return next;
    } finally {
      isOver = true;
      clearInterval(timer);
      task.signal.removeEventListener('abort', end);
      session.close();
      this.#tracks = session.tracks;
      if (this.#counts.isPushing) {
        count();
        this.#counts.end();
        task.keep(this.#counts.progress);
      }
    }
  }

  /** @returns undefined when the task has ended; @throws PushError */
  async #open(
    destination: Destination,
    events: Pick<SinkOptions, 'writable' | 'failed' | 'moved'>,
  ): Promise<Sink | undefined> {
    const { task, open, connectMs, sendMs } = this.#options;
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

  /**
   * Connects to the address that the destination asks for; undefined where that fails, and the present connection
   * continues.
   */
  async #move(destination: Destination, url: string | undefined): Promise<Line | undefined> {
    const { log } = this.#options;
    try {
      const line = await Line.open(movedDestination(destination, url), (to, events) => this.#open(to, events));
      this.#movedAt = performance.now();
      if (line !== undefined) log.info('the destination asked for another connection, which is made');
      return line;
    } catch (error) {
      if (!(error instanceof PushError)) throw error;
      log.warn(`the destination asks for another connection, which cannot be made: ${error.message}`);
      return undefined;
    }
  }

  #failed({ message }: PushError): void {
    const { log } = this.#options;
    this.#counts.failed(message);
    this.#failures += 1;
    // one line is enough for a destination that stays unreachable
    const level = message === this.#lastReason ? 'debug' : 'warn';
    this.#lastReason = message;
    log[level]({ event: 'push.failed' }, `the stream is not pushed, another connection will be tried: ${message}`);
  }

  /** Logs new warnings only: each connection repeats the same ones. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#counts.warnings.includes(warning)) this.#options.log.warn(warning);
    this.#counts.warnings = warnings;
  }

  #pauseMs(): number {
    if (this.#failures <= 1) return FIRST_PAUSE_MS;
    return PAUSE_MS.least + Math.random() * (PAUSE_MS.most - PAUSE_MS.least);
  }
}
