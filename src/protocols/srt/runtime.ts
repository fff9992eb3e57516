import { isMainThread } from 'node:worker_threads';
import { immediateExit } from '../../lib/leave.ts';
import type { Logger } from '../../log/log.ts';
import { SrtCounting } from './counting.ts';
import { SrtError } from './error.ts';
import type { PortGuard } from './guard/port-guard.ts';
import { CONNECTED, EVENT, INVALID, libsrt, type Libsrt } from './library.ts';
import { readStatistics, STATISTICS_BYTES, type SrtStatistics } from './statistics.ts';

/** Observer of a socket's events. */
export interface Watcher {
  /** @param events bits of EVENT that hold now; repeated as long as they hold */
  ready(events: number): void;
  /** Called with an error that `ready` has thrown. */
  fail(error: unknown): void;
}

/** Options of closing a socket. */
export interface Release {
  /** Called with the final statistics; undefined when the connection is gone. */
  readonly counted?: (statistics: SrtStatistics | undefined) => void;
  readonly done?: () => void;
  /** Earliest time of closing, on the clock of `performance`; at once unless given. */
  readonly notBefore?: number;
}

/** Sockets that one wait reports; others have their turn with the next. */
const MAX_EVENTS = 1024;
const EVENT_BYTES = 8;
const SCRATCH_BYTES = 64 * 1024;
/** Longest wait, when there are no events. */
const WAIT_MS = 1000;
/** Pause between waits, so that what arrives in it is handled together. */
const PAUSE_MS = 2;
/** Pause after a wait that failed. */
const RETRY_MS = 100;

/** Interval of checks for broken sockets: one that breaks between waits may have no event. */
const CHECK_MS = 1000;

/** Runtimes of this process that are open. */
let running = 0;
let leavesQuickly = false;

/**
 * libsrt in this process: start, end, and one wait for all sockets on a thread of libuv's pool (raise UV_THREADPOOL_SIZE by
 * one for it). Calls that may block run there too, every other one on JavaScript's own thread.
 */
export class SrtRuntime {
  readonly library: Libsrt;
  readonly counting: SrtCounting;
  /** Guards of the ports, closed before libsrt ends: connections may outlive their listener. */
  readonly guards = new Set<PortGuard>();
  /** Receive buffer, whose contents are delivered in the same turn. */
  readonly scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  readonly #log: Logger;
  readonly #epoll: number;
  /** Written by libsrt during a wait. */
  readonly #events = Buffer.alloc(MAX_EVENTS * EVENT_BYTES);
  readonly #interest = new Int32Array(1);
  readonly #watchers = new Map<number, Watcher>();
  /** Sockets to close; the first is being closed. */
  readonly #closing: ({ readonly socket: number } & Release)[] = [];
  readonly #statistics = Buffer.alloc(STATISTICS_BYTES);
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();
  #waiting = false;
  #pause: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;
  #onReleased: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  /** @throws SrtMissingError when there is no libsrt, SrtError when it does not start */
  static open(log: Logger): SrtRuntime {
    const library = libsrt();
    if (library.startup() === INVALID) throw new SrtError(`libsrt does not start: ${library.lastErrorText()}`);
    leaveQuickly();
    running++;
    return new SrtRuntime(library, log);
  }

  private constructor(library: Libsrt, log: Logger) {
    this.library = library;
    this.counting = new SrtCounting(library);
    this.#log = log.child({ module: 'srt' });
    this.#epoll = library.epollCreate();
  }

  /** @param events bits of EVENT @throws SrtError when there is no such socket any more */
  watch(socket: number, events: number, watcher: Watcher): void {
    this.#watchers.set(socket, watcher);
    this.#interest[0] = events;
    if (this.library.epollAdd(this.#epoll, socket, this.#interest) === INVALID) {
      this.#watchers.delete(socket);
      throw new SrtError(`a socket cannot be waited for: ${this.library.lastErrorText()}`);
    }
    this.#wait();
  }

  /** Replaces the events to watch for. @returns false when there is no such socket any more */
  rewatch(socket: number, events: number): boolean {
    this.#interest[0] = events;
    return this.library.epollUpdate(this.#epoll, socket, this.#interest) !== INVALID;
  }

  /** Stops watching a socket, which stays open. */
  unwatch(socket: number): void {
    if (this.#watchers.delete(socket)) this.library.epollRemove(this.#epoll, socket);
  }

  /**
   * Stops watching a socket, and closes it. Closing blocks on threads of libsrt, of which a listener's may wait for JavaScript:
   * it runs on a thread of libuv's pool, one socket after the other. So does reading the statistics, which blocks on a packet
   * that is being processed.
   */
  release(socket: number, release: Release = {}): void {
    this.unwatch(socket);
    this.counting.delete(socket);
    this.#closing.push({ socket, ...release });
    if (this.#closing.length === 1) this.#closeNext();
  }

  /** Ends libsrt. The caller has released every socket by then. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#pause);
    clearInterval(this.#timer);
    await this.counting.close();
    if (this.#closing.length > 0) await new Promise<void>((resolve) => (this.#onReleased = resolve));
    for (const guard of this.guards) guard.close();
    // a wait for no sockets ends by itself
    if (this.#waiting) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    this.library.epollRelease(this.#epoll);
    await new Promise<void>((resolve) => this.library.cleanup(() => resolve()));
    running--;
  }

  #closeNext(): void {
    const [next] = this.#closing;
    if (next === undefined) return this.#onReleased?.();
    const early = (next.notBefore ?? 0) - performance.now();
    if (early > 0) {
      setTimeout(() => this.#closeNext(), early);
      return;
    }
    const close = (): void =>
      this.library.close(next.socket, () => {
        this.#closing.shift();
        next.done?.();
        this.#closeNext();
      });
    if (next.counted === undefined) return close();
    this.library.statistics(next.socket, this.#statistics, 0, (_error, result) => {
      next.counted?.(result === INVALID ? undefined : readStatistics(this.#statistics));
      close();
    });
  }

  #wait(): void {
    if (this.#waiting || this.#pause !== undefined || this.#closed !== undefined || this.#watchers.size === 0) return;
    this.#waiting = true;
    this.library.epollWait(this.#epoll, this.#events, MAX_EVENTS, WAIT_MS, this.#onEvents);
  }

  readonly #onEvents = (error: unknown, count: number): void => {
    this.#waiting = false;
    if (this.#closed !== undefined) return this.#onIdle?.();
    // the wait failed: there is no socket left, or one has just gone
    const failed = error !== null && error !== undefined;
    if (failed) this.#log.error({ err: error }, 'waiting for events of libsrt failed');
    for (let i = 0; i < count; i++) {
      const at = i * EVENT_BYTES;
      this.#tell(this.#events.readInt32LE(at), this.#events.readInt32LE(at + 4));
    }
    this.#pause = setTimeout(this.#onPause, failed || count < 0 ? RETRY_MS : PAUSE_MS);
  };

  readonly #onPause = (): void => {
    this.#pause = undefined;
    this.#wait();
  };

  /** Delivers events; an error concerns this socket alone. */
  #tell(socket: number, events: number): void {
    const watcher = this.#watchers.get(socket);
    try {
      watcher?.ready(events);
    } catch (error) {
      watcher?.fail(error);
    }
  }

  #check(): void {
    for (const socket of this.#watchers.keys())
      if (this.library.state(socket) > CONNECTED) this.#tell(socket, EVENT.error);
  }
}

/**
 * Ends the process without libsrt's own cleanup when it exits while libsrt runs, as after a fault: the cleanup would wait
 * for threads that may wait for JavaScript.
 */
function leaveQuickly(): void {
  if (leavesQuickly || !isMainThread) return;
  leavesQuickly = true;
  const end = immediateExit();
  process.on('exit', (code) => {
    if (running > 0) end(code);
  });
}
