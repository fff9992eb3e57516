import { INVALID, type Libsrt } from './library.ts';
import { readStatistics, STATISTICS_BYTES, type SrtStatistics } from './statistics.ts';

type Told = (statistics: SrtStatistics) => void;

/** From the end of one round to the next. */
const PAUSE_MS = 1000;

/**
 * Asks libsrt what it counts of each connection, about once a second: it knows nothing of one any more whose other side has
 * gone. It may wait for a packet that is being taken in: that is done on a thread of libuv's pool, one after the other.
 */
export class SrtCounting {
  readonly #library: Libsrt;
  readonly #connections = new Map<number, Told>();
  /** Written by libsrt while it is asked. */
  readonly #struct = Buffer.alloc(STATISTICS_BYTES);
  #asking = false;
  #pause: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;
  #closed = false;

  constructor(library: Libsrt) {
    this.#library = library;
  }

  add(socket: number, told: Told): void {
    this.#connections.set(socket, told);
    this.#plan();
  }

  delete(socket: number): void {
    this.#connections.delete(socket);
  }

  /** Nothing is asked any more when it is done. */
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

  /** @param round who is still to be asked */
  #ask(round: [number, Told][]): void {
    const next = this.#closed ? undefined : round.pop();
    if (next === undefined) {
      this.#asking = false;
      this.#onIdle?.();
      return this.#plan();
    }
    const [socket, told] = next;
    if (this.#connections.get(socket) !== told) return this.#ask(round);
    this.#library.statistics(socket, this.#struct, 0, (_error, result) => {
      if (result !== INVALID && this.#connections.get(socket) === told) told(readStatistics(this.#struct));
      this.#ask(round);
    });
  }
}
