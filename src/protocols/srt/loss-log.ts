import type { Logger } from '../../log/log.ts';
import type { SrtFlow, SrtStatistics } from './statistics.ts';

const INTERVAL_MS = 60_000;

/** Tells of a bad way: what a connection has counted, whenever something was lost on it, once a minute at most. */
export class LossLog {
  readonly #log: Logger;
  readonly #direction: 'received' | 'sent';
  #told = -Infinity;
  #lost = 0;

  constructor(log: Logger, direction: 'received' | 'sent') {
    this.#log = log;
    this.#direction = direction;
  }

  /** @param now in milliseconds, of a clock that never goes back */
  add(srt: SrtStatistics, now = performance.now()): void {
    const lost = lostOf(srt[this.#direction]);
    if (lost <= this.#lost || now - this.#told < INTERVAL_MS) return;
    this.#lost = lost;
    this.#told = now;
    this.#log.info({ srt }, 'SRT packets are being lost in the network');
  }
}

function lostOf({ lost, dropped }: SrtFlow): number {
  return lost + dropped;
}
