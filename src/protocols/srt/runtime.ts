import { isMainThread } from 'node:worker_threads';
import koffi from 'koffi';
import type { Logger } from '../../log/log.ts';
import { SrtCounting } from './counting.ts';
import { SrtError } from './error.ts';
import type { PortGuard } from './guard/port-guard.ts';
import { CONNECTED, EVENT, INVALID, libsrt, type Libsrt } from './library.ts';
import { readStatistics, STATISTICS_BYTES, type SrtStatistics } from './statistics.ts';

/** What is waited for with a socket. */
export interface Watcher {
  /** @param events bits of EVENT that are the case, and are told again as long as they are */
  ready(events: number): void;
  /** It failed to take them. */
  fail(error: unknown): void;
}

/** Who wants to know of the end of a socket. */
export interface Release {
  /** What was counted; undefined when there is no connection any more. */
  readonly told?: (statistics: SrtStatistics | undefined) => void;
  readonly done?: () => void;
  /** When it may be closed, on the clock of `performance`; at once unless given. */
  readonly notBefore?: number;
}

/** Sockets that one wait tells of; others have their turn with the next. */
const MAX_EVENTS = 1024;
const EVENT_BYTES = 8;
const SCRATCH_BYTES = 64 * 1024;
/** A wait that nothing ends. */
const WAIT_MS = 1000;
/** From one wait to the next: what comes in between is taken in one go. */
const PAUSE_MS = 2;
/** Behind a wait that libsrt refuses. */
const RETRY_MS = 100;

/** How often sockets are asked whether they are over: of one that broke while nobody waited there may be no event. */
const CHECK_MS = 1000;

/** Threads that run libsrt, in this process. */
let running = 0;
let leavesQuickly = false;

/**
 * libsrt as it runs in this process: its start and its end, and one wait for all sockets, on a thread of libuv's pool
 * (UV_THREADPOOL_SIZE is to be raised by one). Everything else is called from JavaScript's own thread.
 */
export class SrtRuntime {
  readonly library: Libsrt;
  readonly counting: SrtCounting;
  /** Of the ports, closed before libsrt ends: connections may outlive the listener of theirs. */
  readonly guards = new Set<PortGuard>();
  /** What is received is put here, and handed over in the same turn. */
  readonly scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  readonly #log: Logger;
  readonly #epoll: number;
  /** Written by libsrt during a wait. */
  readonly #events = Buffer.alloc(MAX_EVENTS * EVENT_BYTES);
  readonly #interest = new Int32Array(1);
  readonly #watchers = new Map<number, Watcher>();
  /** Sockets to close, the first of them right now. */
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

  /** Waits for other events of a socket. @returns false when there is no such socket any more */
  rewatch(socket: number, events: number): boolean {
    this.#interest[0] = events;
    return this.library.epollUpdate(this.#epoll, socket, this.#interest) !== INVALID;
  }

  /** Waits for nothing of a socket any more, which stays open. */
  unwatch(socket: number): void {
    if (this.#watchers.delete(socket)) this.library.epollRemove(this.#epoll, socket);
  }

  /**
   * Closes a socket, and waits for nothing of it any more. libsrt waits in there for threads of its own, of which the one
   * of a listener may wait for JavaScript: it is done elsewhere, one socket after the other. So is the counting up, for
   * which what a packet that is being looked at holds is waited for.
   */
  release(socket: number, release: Release = {}): void {
    this.unwatch(socket);
    this.counting.delete(socket);
    this.#closing.push({ socket, ...release });
    if (this.#closing.length === 1) this.#closeNext();
  }

  /** Ends libsrt. Every socket is released by then. Idempotent. */
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
    // an epoll without sockets ends its wait by itself
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
    if (next.told === undefined) return close();
    this.library.statistics(next.socket, this.#statistics, 0, (_error, result) => {
      next.told?.(result === INVALID ? undefined : readStatistics(this.#statistics));
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
    // refused: no socket is left, or one went in the meantime
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

  /** What goes wrong with one socket is of no consequence for the others. */
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
 * When the process exits while libsrt runs, as it does after a fault, the library's own end would wait for threads of
 * its own that may wait for JavaScript: the process is ended without it.
 */
function leaveQuickly(): void {
  if (leavesQuickly || !isMainThread) return;
  leavesQuickly = true;
  const leave = koffi.load(null).func('void _exit(int)');
  process.on('exit', (code) => {
    if (running > 0) leave(code);
  });
}
