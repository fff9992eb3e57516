import { BackOff } from '../../../lib/back-off.ts';
import type { Elsewhere } from './elsewhere.ts';

const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;
/** Rounds without any answer; about seven minutes. */
const MAX_ROUNDS = 10;

/** Asks nodes again that did not list all that they have when a stream began: with growing pauses, and not for ever. */
export class LateNodes {
  readonly #onFound: (found: Elsewhere) => Promise<void>;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS, FIRST_PAUSE_MS);
  #nodes: readonly Elsewhere[];
  #rounds = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param onFound takes what a node has listed; never rejects */
  constructor(nodes: readonly Elsewhere[], onFound: (found: Elsewhere) => Promise<void>) {
    this.#nodes = nodes.filter(({ more }) => more !== undefined);
    this.#onFound = onFound;
    this.#wait();
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    if (this.#isClosed || this.#nodes.length === 0 || this.#rounds >= MAX_ROUNDS) return;
    this.#timer = setTimeout(() => void this.#ask(), this.#backOff.next()).unref();
  }

  async #ask(): Promise<void> {
    this.#rounds++;
    const asked = await Promise.all(this.#nodes.map(async (node) => (await node.more?.()) ?? node));
    this.#nodes = asked.filter(({ more }) => more !== undefined);
    for (const found of asked) {
      if (this.#isClosed) return;
      if (found.lists.size === 0) continue;
      this.#rounds = 0;
      await this.#onFound(found);
    }
    this.#wait();
  }
}
