import { statfs } from 'node:fs/promises';
import { diskCalls } from '../../../core/disk-calls.ts';

/** A file server answers this each time, and not from what it is known to have. */
const WATCH_MS = 5000;

/** Asks the disks of DVR from time to time whether they answer, so that a stream that begins does not wait for one that hangs. */
export class RootWatch {
  readonly #roots = new Set<string>();
  /** Roots that have not answered yet. */
  readonly #asked = new Set<string>();
  readonly #timer = setInterval(() => this.#ask(), WATCH_MS).unref();

  use(root: string): void {
    this.#roots.add(root);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #ask(): void {
    for (const root of this.#roots) {
      if (this.#asked.has(root)) continue;
      this.#asked.add(root);
      // one that is not there answers, too
      const answer = diskCalls.of(root).take(() => statfs(root));
      void answer.catch(() => undefined).then(() => this.#asked.delete(root));
    }
  }
}
