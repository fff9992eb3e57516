import { EventEmitter } from 'node:events';
import { poolThreads } from '../lib/pool-threads.ts';
import { Limiter } from '../lib/limiter.ts';

/** Calls of one root in the system at a time. */
const CALLS = 2;
/** Threads of the pool that are left to all else: names of hosts, SRT, cryptography, and files that are not media. */
const LEFT = 6;
/** Limit of roots that have calls of their own. Further ones share theirs. */
const MAX_ROOTS = 1000;
const OTHERS = 'other folders';
/** A call that takes longer hangs: the file system is away, or about to fail. */
const HANGS_MS = 5000;
/** A disk counts as slow until none of its calls has hung for this long. */
const CALM_MS = 10_000;

interface DiskCallsOptions {
  readonly hangsMs: number;
  readonly calmMs: number;
  /** Calls of all roots in the system at a time. */
  readonly most: number;
}

interface DiskEvents {
  /** A call for a disk hangs. */
  readonly slow: [folder: string];
  /** Calls return again. @param ms from when the first one that hung had begun until the last one returned */
  readonly back: [folder: string, ms: number];
}

/** Thrown in place of an answer. */
export class DiskHangs extends Error {
  constructor() {
    super('the disk does not answer');
  }
}

/** Handler for `catch`: goes on where a disk hangs, and throws any other error. */
export function ifItHangs(error: unknown): undefined {
  if (!(error instanceof DiskHangs)) throw error;
}

/**
 * The calls of the system for media on disks, of this process: a call that hangs occupies a thread of libuv's pool until it returns, and
 * all files and host names of the process share these. So each root has a few calls at a time, and all roots together leave some threads.
 */
export class DiskCalls extends EventEmitter<DiskEvents> {
  readonly options: DiskCallsOptions;
  readonly all: Limiter;
  readonly #roots = new Map<string, RootCalls>();

  constructor(options: Partial<DiskCallsOptions> = {}) {
    super();
    // of each server of this process
    this.setMaxListeners(0);
    const most = Math.max(CALLS + 1, poolThreads() - LEFT);
    this.options = { hangsMs: HANGS_MS, calmMs: CALM_MS, most, ...options };
    this.all = new Limiter(this.options.most);
  }

  /** Number of roots that are slow at present. */
  get slow(): number {
    return [...this.#roots.values()].filter(({ isSlow }) => isSlow).length;
  }

  /** @param root a folder, or what else stands for a disk @param folder in it, as the log names the disk */
  of(root: string, folder = root): RootCalls {
    const known = this.#roots.get(root);
    if (known !== undefined) return known;
    if (this.#roots.size >= MAX_ROOTS && root !== OTHERS) return this.of(OTHERS);
    const calls = new RootCalls(folder, this);
    this.#roots.set(root, calls);
    return calls;
  }
}

/** The calls for one root. */
export class RootCalls {
  readonly #folder: string;
  readonly #calls: DiskCalls;
  readonly #limiter = new Limiter(CALLS);
  /** When those in the system began, oldest first, by the monotonic clock. */
  readonly #begun = new Set<{ readonly at: number }>();
  #timer: NodeJS.Timeout | undefined;
  /** Aborts when a call hangs; another one replaces it when none does any more. */
  #hang = new AbortController();
  /** When the first of the calls that hung had begun; undefined while the disk is not slow. */
  #slowSince: number | undefined;
  #hungAt = -Infinity;

  constructor(folder: string, calls: DiskCalls) {
    this.#folder = folder;
    this.#calls = calls;
  }

  /** Whether a call hangs at present. */
  get hangs(): boolean {
    return this.#hang.signal.aborted;
  }

  /** Whether a call hangs, or has hung a moment ago. */
  get isSlow(): boolean {
    return this.#slowSince !== undefined;
  }

  /** Calls the system when it is its turn. */
  take<T>(call: () => Promise<T>): Promise<T> {
    return this.#limiter.run(() => this.#calls.all.run(() => this.#watched(call)));
  }

  /**
   * Waits for what has calls of this root made, unless the disk hangs: then nothing new waits for it.
   * @throws what the work throws; DiskHangs if a call hangs already, and as soon as one does
   */
  async unlessHanging<T>(work: () => Promise<T>): Promise<T> {
    if (this.hangs) throw new DiskHangs();
    const { signal } = this.#hang;
    const { promise: hung, reject } = Promise.withResolvers<never>();
    const onHang = (): void => reject(new DiskHangs());
    signal.addEventListener('abort', onHang);
    try {
      return await Promise.race([work(), hung]);
    } finally {
      signal.removeEventListener('abort', onHang);
    }
  }

  async #watched<T>(call: () => Promise<T>): Promise<T> {
    const begun = { at: performance.now() };
    this.#begun.add(begun);
    if (this.#timer === undefined) this.#timer = this.#later(this.#calls.options.hangsMs);
    try {
      return await call();
    } finally {
      this.#begun.delete(begun);
      const now = performance.now();
      if (this.hangs) this.#hungAt = now;
      if (this.hangs && !this.#isHanging(now)) this.#hang = new AbortController();
    }
  }

  #later(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), ms).unref();
  }

  /** Whether the oldest call hangs. */
  #isHanging(now: number): boolean {
    const [oldest] = this.#begun;
    return oldest !== undefined && now - oldest.at >= this.#calls.options.hangsMs;
  }

  #look(): void {
    const { hangsMs, calmMs } = this.#calls.options;
    const now = performance.now();
    const [oldest] = this.#begun;
    this.#timer = undefined;
    if (oldest !== undefined && this.#isHanging(now)) {
      this.#hungAt = now;
      this.#hang.abort();
      if (this.#slowSince === undefined) {
        this.#slowSince = oldest.at;
        this.#calls.emit('slow', this.#folder);
      }
    } else if (this.#slowSince !== undefined && now - this.#hungAt >= calmMs) {
      const ms = this.#hungAt - this.#slowSince;
      this.#slowSince = undefined;
      this.#calls.emit('back', this.#folder, ms);
    }
    // while nothing is under way and the disk is not slow, there is nothing to look at
    if (this.isSlow) this.#timer = this.#later(Math.min(hangsMs, calmMs));
    else if (oldest !== undefined) this.#timer = this.#later(Math.max(1, oldest.at + hangsMs - now));
  }
}

/** Calls of this process. */
export const diskCalls = new DiskCalls();
