import type { InputStream } from '../../core/input-stream.ts';

const CHECKS = 8;
const LONGEST_MS = 1000;

/**
 * Detects that a stream has had no viewers for a while. Viewers on other nodes count: they watch through a relay, or
 * this node counts them.
 */
export class UseWatch {
  readonly #input: InputStream;
  readonly #timer: NodeJS.Timeout;
  #usedAt = performance.now();

  /** @param unusedMs without viewers, in milliseconds */
  constructor(input: InputStream, unusedMs: number, onUnused: () => void) {
    this.#input = input;
    this.#timer = setInterval(
      () => {
        if (this.#isWatched) this.#usedAt = performance.now();
        if (performance.now() - this.#usedAt < unusedMs) return;
        this.close();
        onUnused();
      },
      Math.min(LONGEST_MS, unusedMs / CHECKS),
    ).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  get #isWatched(): boolean {
    for (const output of this.#input.outputs.values()) if (output.watched) return true;
    return false;
  }
}
