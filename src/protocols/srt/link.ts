import type { Link, LinkFigures } from '../../core/links.ts';
import type { Logger } from '../../log/log.ts';
import type { SrtFlow, SrtStatistics } from './statistics.ts';

const INTERVAL_MS = 60_000;

/**
 * Figures of a connection in the direction of its media. With a log: its statistics are logged when packets were lost, once a
 * minute at most.
 */
export class SrtLink implements Link {
  readonly #direction: 'received' | 'sent';
  readonly #log: Logger | undefined;
  #figures: LinkFigures | undefined;
  #loggedMs = -Infinity;
  #lost = 0;

  constructor(direction: 'received' | 'sent', log?: Logger) {
    this.#direction = direction;
    this.#log = log;
  }

  get figures(): LinkFigures | undefined {
    return this.#figures;
  }

  /** @param now milliseconds of a monotonic clock */
  counted(srt: SrtStatistics, now = performance.now()): void {
    this.#figures = figuresOf(srt, this.#direction);
    const lost = lostOf(srt[this.#direction]);
    if (lost <= this.#lost || now - this.#loggedMs < INTERVAL_MS) return;
    this.#lost = lost;
    this.#loggedMs = now;
    this.#log?.info({ srt }, 'SRT packets are being lost in the network');
  }
}

function lostOf({ lost, dropped }: SrtFlow): number {
  return lost + dropped;
}

function figuresOf({ rtt, capacity, received, sent }: SrtStatistics, direction: 'received' | 'sent'): LinkFigures {
  const { buffered, ...counts } = direction === 'received' ? received : { ...sent, belated: 0, undecryptable: 0 };
  return { rttMs: rtt, capacity, bufferedMs: buffered, counts };
}
