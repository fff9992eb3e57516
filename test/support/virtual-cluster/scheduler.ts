import { AsyncLocalStorage } from 'node:async_hooks';
import { replaceTime, type TimeSource, type VirtualTimer } from '../time/virtual-time.ts';

/** What clocks say when a world begins: always the same, so that a run depends on its seed alone. */
const ZERO = { monotonic: 1_000_000, date: 1_800_000_000_000 } as const;
/** So much happens in no millisecond of a run that goes on. */
const MOST_AT_ONCE = 20_000;

interface Task {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

const current = new AsyncLocalStorage<Process>();

/** The process whose code runs now. */
export function here(): Process {
  const process = current.getStore();
  if (process === undefined) throw new Error('this is to be called in a virtual process');
  return process;
}

/** Time of a world, which goes from one thing that is due to the next. Whatever is due at once happens in order. */
export class Scheduler implements TimeSource {
  readonly #nextTurn = setImmediate;
  /** A heap. */
  readonly #tasks: Task[] = [];
  readonly #starts = new WeakMap<VirtualTimer, number>();
  #now = 0;
  #order = 0;
  #atOnce = 0;
  /** Called after whatever happens. */
  onTurn = (): void => {};

  get now(): number {
    return this.#now;
  }

  /** Time is virtual in this thread until the result is called. */
  begin(): () => void {
    return replaceTime(this, ZERO);
  }

  /** Calls back later, whatever becomes of processes. */
  after(ms: number, run: () => void): void {
    this.#push({ at: this.#now + ms, order: this.#order++, run });
  }

  start(timer: VirtualTimer): void {
    this.#startIn(timer, Math.max(1, Math.ceil(timer.delay)));
  }

  readonly immediate = (timer: VirtualTimer): void => this.#startIn(timer, 0);

  /** Lets everything happen that is due by then. */
  async runUntil(end: number): Promise<void> {
    await this.#settle();
    for (;;) {
      const [task] = this.#tasks;
      if (task === undefined || task.at > end) break;
      this.#pop();
      this.#atOnce = task.at === this.#now ? this.#atOnce + 1 : 0;
      if (this.#atOnce > MOST_AT_ONCE) throw new Error(`time stands still at ${this.#now} ms`);
      this.#now = task.at;
      task.run();
      await this.#settle();
      this.onTurn();
    }
    this.#now = end;
  }

  /** Promises that are settled by now are followed up. */
  #settle(): Promise<void> {
    return new Promise((resolve) => this.#nextTurn(resolve));
  }

  #startIn(timer: VirtualTimer, ms: number): void {
    const process = current.getStore();
    const start = this.#order;
    this.#starts.set(timer, start);
    const run = (): void => {
      if (timer.cleared || this.#starts.get(timer) !== start) return;
      if (timer.repeats) this.start(timer);
      timer.run();
    };
    this.after(ms, process === undefined ? run : () => process.handle(run));
  }

  #push(task: Task): void {
    const tasks = this.#tasks;
    let at = tasks.length;
    tasks.push(task);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(task, tasks[above] as Task)) break;
      tasks[at] = tasks[above] as Task;
      at = above;
    }
    tasks[at] = task;
  }

  #pop(): void {
    const tasks = this.#tasks;
    const last = tasks.pop() as Task;
    if (tasks.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= tasks.length) break;
      if (below + 1 < tasks.length && isBefore(tasks[below + 1] as Task, tasks[below] as Task)) below += 1;
      if (!isBefore(tasks[below] as Task, last)) break;
      tasks[at] = tasks[below] as Task;
      at = below;
    }
    tasks[at] = last;
  }
}

function isBefore(a: Task, b: Task): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Something that runs, may stand still, and may die. Its code, timers and messages are told from those of others. */
export class Process {
  readonly name: string;
  readonly scheduler: Scheduler;
  #state: 'running' | 'stalled' | 'dead' = 'running';
  /** What came due while it stood still. */
  readonly #held: { readonly run: () => void; readonly isMessage: boolean }[] = [];
  readonly #ends = new Set<() => void>();

  constructor(name: string, scheduler: Scheduler) {
    this.name = name;
    this.scheduler = scheduler;
  }

  get isAlive(): boolean {
    return this.#state !== 'dead';
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Runs code of this process now. */
  enter<T>(code: () => T): T {
    return current.run(this, code);
  }

  /** A timer is due: the process handles it as soon as it runs. */
  handle(timer: () => void): void {
    this.#take(timer, false);
  }

  /** A message has come. What stood still handles its timers first. */
  deliver(message: () => void): void {
    this.#take(message, true);
  }

  stall(): void {
    if (this.#state === 'running') this.#state = 'stalled';
  }

  resume(): void {
    if (this.#state !== 'stalled') return;
    this.#state = 'running';
    const held = this.#held.splice(0);
    for (const isMessage of [false, true])
      for (const one of held)
        if (one.isMessage === isMessage) this.scheduler.after(0, () => this.#take(one.run, isMessage));
  }

  /** It is gone without a word: as by SIGKILL. */
  kill(): void {
    if (this.#state === 'dead') return;
    this.#state = 'dead';
    this.#held.length = 0;
    for (const end of this.#ends) end();
  }

  /** Calls back at its death. Returns its undo. */
  onEnd(end: () => void): () => void {
    this.#ends.add(end);
    return () => this.#ends.delete(end);
  }

  #take(run: () => void, isMessage: boolean): void {
    if (this.#state === 'running') this.enter(run);
    else if (this.#state === 'stalled') this.#held.push({ run, isMessage });
  }
}
