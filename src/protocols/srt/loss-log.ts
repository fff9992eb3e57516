import type { Logger } from '../../log/log.ts';
import type { SrtFlow, SrtStatistics } from './statistics.ts';

const INTERVAL_MS = 60_000;

/** Logs the statistics of a connection when packets were lost, once a minute at most. */
export class LossLog {
  readonly #log: Logger;
  readonly #direction: 'received' | 'sent';
  #lastMs = -Infinity;
  #lost = 0;

  constructor(log: Logger, direction: 'received' | 'sent') {
    this.#log = log;
    this.#direction = direction;
  }

  /** @param now milliseconds of a monotonic clock */
  add(srt: SrtStatistics, now = performance.now()): void {
    const lost = lostOf(srt[this.#direction]);
    if (lost <= this.#lost || now - this.#lastMs < INTERVAL_MS) return;
    this.#lost = lost;
    this.#lastMs = now;
    this.#log.info({ srt }, 'SRT packets are being lost in the network');
  }
}

function lostOf({ lost, dropped }: SrtFlow): number {
  return lost + dropped;
}
