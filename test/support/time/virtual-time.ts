import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers';
import timersPromises from 'node:timers/promises';
import type { ExecutionContext } from 'ava';

type Callback = (...args: unknown[]) => void;

/** What timers and clocks go by while time is virtual. */
export interface TimeSource {
  /** Whole milliseconds since it began. */
  readonly now: number;
  start(timer: VirtualTimer): void;
  /** undefined leaves immediates to Node. */
  readonly immediate?: (timer: VirtualTimer) => void;
}

/** What stands in for a Timeout or Immediate of Node. */
export class VirtualTimer {
  readonly #time: TimeSource;
  readonly run: () => void;
  readonly delay: number;
  readonly repeats: boolean;
  cleared = false;

  constructor(time: TimeSource, run: () => void, delay: number, repeats: boolean) {
    this.#time = time;
    this.run = run;
    this.delay = delay;
    this.repeats = repeats;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.#time.start(this);
    return this;
  }

  close(): this {
    this.cleared = true;
    return this;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Time that goes on by one millisecond at each step, or of several in which nothing is due. */
class VirtualTime implements TimeSource {
  /** What is due, by its millisecond. */
  readonly #due = new Map<number, VirtualTimer[]>();
  readonly #dueOf = new WeakMap<VirtualTimer, number>();
  #now = 0;

  get now(): number {
    return this.#now;
  }

  start(timer: VirtualTimer): void {
    const at = this.#now + Math.max(1, Math.ceil(timer.delay));
    this.#dueOf.set(timer, at);
    const others = this.#due.get(at);
    if (others === undefined) this.#due.set(at, [timer]);
    else others.push(timer);
  }

  /** A millisecond passes. @returns whether something was due */
  step(): boolean {
    this.#now++;
    const due = this.#due.get(this.#now);
    if (due === undefined) return false;
    this.#due.delete(this.#now);
    for (const timer of due) {
      if (timer.cleared || this.#dueOf.get(timer) !== this.#now) continue;
      if (timer.repeats) this.start(timer);
      timer.run();
    }
    return true;
  }

  /** The time passes in which nothing is due, up to a limit. */
  skip(): void {
    for (let ms = 0; ms < LONGEST_SKIP_MS && !this.#due.has(this.#now + 1); ms++) this.#now++;
  }
}

/** Turns of the event loop without anything before time skips, and how much of it then: what is compressed or hashed is not seen. */
const IDLE_TURNS = 3;
const LONGEST_SKIP_MS = 40;

let users = 0;
let restore = (): void => {};

/**
 * Makes time virtual in this thread until the test ends: timers, `node:timers/promises`, Date and performance.now(). It
 * goes on by itself, one millisecond for each turn of the event loop, so what waits for a time waits for turns only. While
 * nothing is under way but timers, it goes faster.
 * Tests that overlap in one file share it; what has to come out the same for a seed needs `test.serial`.
 * Sockets, files and other processes are as slow as ever: nothing of that kind belongs in such a test.
 */
export function virtualTime(t: Pick<ExecutionContext, 'teardown'>): void {
  if (users++ === 0) restore = begin();
  t.teardown(() => {
    if (--users === 0) restore();
  });
}

/** Numbers of requests, handles and immediates of this thread by kind, without the immediate that asks. */
function underWay(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind !== 'Timeout') counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** Returns a function that tells whether nothing is under way but what was when this was called, and has been ever since. */
function onlyOlder(): () => boolean {
  let older = underWay();
  older.delete('Immediate');
  return () => {
    const now = underWay();
    for (const [kind, count] of now) if (count > (older.get(kind) ?? 0)) return false;
    older = now;
    return true;
  };
}

/** Returns its undo. */
function begin(): () => void {
  const time = new VirtualTime();
  // whole numbers: sums of fractions depend on when it began
  const restore = replaceTime(time, { monotonic: Math.ceil(performance.now()), date: Date.now() });
  const isIdle = onlyOlder();
  let goesOn = true;
  let idleTurns = 0;
  const step = (): void => {
    if (!goesOn) return;
    idleTurns = time.step() ? 0 : idleTurns + 1;
    // what is left to be done after a timer is an immediate, or a request of Node's
    if (idleTurns >= IDLE_TURNS && isIdle()) time.skip();
    setImmediate(step);
  };
  setImmediate(step);
  return () => {
    goesOn = false;
    restore();
  };
}

/**
 * Timers, `node:timers/promises`, Date and performance.now() of this thread go by the given time. Returns its undo.
 * @param zero what the clocks say when it begins
 */
export function replaceTime(time: TimeSource, zero: { readonly monotonic: number; readonly date: number }): () => void {
  const real = {
    timers: { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate },
    promises: { setTimeout: timersPromises.setTimeout },
    now: performance.now,
    Date,
  };
  const add = (callback: Callback, delay: number | undefined, args: readonly unknown[], repeats = false) => {
    const timer = new VirtualTimer(time, () => callback(...args), Number(delay) || 0, repeats);
    time.start(timer);
    return timer;
  };
  const clear = (timer?: VirtualTimer): void => void timer?.close();
  const today = (): number => zero.date + time.now;
  const { immediate } = time;
  const virtual = {
    setTimeout: (callback: Callback, delay?: number, ...args: unknown[]) => add(callback, delay, args),
    setInterval: (callback: Callback, delay?: number, ...args: unknown[]) => add(callback, delay, args, true),
    clearTimeout: clear,
    clearInterval: clear,
    ...(immediate !== undefined && {
      setImmediate: (callback: Callback, ...args: unknown[]) => {
        const timer = new VirtualTimer(time, () => callback(...args), 0, false);
        immediate(timer);
        return timer;
      },
      clearImmediate: clear,
    }),
  };
  const Virtual = class extends Date {
    constructor(...args: [] | [number]) {
      super(...(args.length === 0 ? ([today()] as const) : args));
    }

    static override now(): number {
      return today();
    }
  };
  Object.assign(globalThis, virtual, { Date: Virtual });
  Object.assign(timers, virtual);
  Object.assign(timersPromises, {
    setTimeout: <T>(delay?: number, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T | undefined> =>
      new Promise((resolve, reject) => {
        const abort = (): void => {
          timer.close();
          reject(new DOMException('This operation was aborted', 'AbortError'));
        };
        const end = (): void => {
          signal?.removeEventListener('abort', abort);
          resolve(value);
        };
        const timer = add(end, delay, []);
        if (signal?.aborted === true) abort();
        else signal?.addEventListener('abort', abort, { once: true });
      }),
  });
  syncBuiltinESMExports();
  performance.now = () => zero.monotonic + time.now;
  return () => {
    Object.assign(globalThis, real.timers, { Date: real.Date });
    Object.assign(timers, real.timers);
    Object.assign(timersPromises, real.promises);
    syncBuiltinESMExports();
    performance.now = real.now;
  };
}
