import type { InputStream } from '../../core/stream.ts';

const CHECKS = 8;
const LONGEST_MS = 1000;

export interface UseWatchOptions {
  readonly input: InputStream;
  /** How long it may be without viewers, in milliseconds. */
  readonly unusedMs: number;
  /** Whether other nodes have viewers of it that nothing here tells of. */
  readonly watchedElsewhere: () => Promise<boolean>;
  readonly onUnused: () => void;
}

/** Finds out that nobody has watched a stream for a while, on any node. */
export class UseWatch {
  readonly #options: UseWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #usedAt = performance.now();
  #asking = false;

  constructor(options: UseWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#check(), Math.min(LONGEST_MS, options.unusedMs / CHECKS)).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    const { input, unusedMs, watchedElsewhere, onUnused } = this.#options;
    const watched = [...input.outputs.values()].some((output) => output.watched);
    if (watched) this.#usedAt = performance.now();
    if (this.#asking || performance.now() - this.#usedAt < unusedMs) return;
    this.#asking = true;
    const since = this.#usedAt;
    if (await watchedElsewhere()) this.#usedAt = performance.now();
    this.#asking = false;
    if (this.#usedAt > since || input.closed) return;
    this.close();
    onUnused();
  }
}
