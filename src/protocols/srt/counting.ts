import { INVALID, type Libsrt } from './library.ts';
import { readStatistics, STATISTICS_BYTES, type SrtStatistics } from './statistics.ts';

type OnStatistics = (statistics: SrtStatistics) => void;

/** From the end of one round to the next. */
const PAUSE_MS = 1000;

/**
 * Reads the statistics of each connection about once a second, since libsrt forgets those of a connection whose peer has
 * gone. A read may block on a packet that is being processed: it runs on a thread of libuv's pool, one at a time.
 */
export class SrtCounting {
  readonly #library: Libsrt;
  readonly #connections = new Map<number, OnStatistics>();
  /** Written by libsrt during a read. */
  readonly #struct = Buffer.alloc(STATISTICS_BYTES);
  #asking = false;
  #pause: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;
  #closed = false;

  constructor(library: Libsrt) {
    this.#library = library;
  }

  add(socket: number, onStatistics: OnStatistics): void {
    this.#connections.set(socket, onStatistics);
    this.#plan();
  }

  delete(socket: number): void {
    this.#connections.delete(socket);
  }

  /** Resolves when no read is running. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#pause);
    if (this.#asking) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #plan(): void {
    if (this.#asking || this.#pause !== undefined || this.#closed || this.#connections.size === 0) return;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#asking = true;
      this.#ask([...this.#connections]);
    }, PAUSE_MS).unref();
  }

  /** @param round connections that are still to be read */
  #ask(round: [number, OnStatistics][]): void {
    const next = this.#closed ? undefined : round.pop();
    if (next === undefined) {
      this.#asking = false;
      this.#onIdle?.();
      return this.#plan();
    }
    const [socket, onStatistics] = next;
    if (this.#connections.get(socket) !== onStatistics) return this.#ask(round);
    this.#library.statistics(socket, this.#struct, 0, (_error, result) => {
      if (result !== INVALID && this.#connections.get(socket) === onStatistics)
        onStatistics(readStatistics(this.#struct));
      this.#ask(round);
    });
  }
}
