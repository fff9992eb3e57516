import { constants, PerformanceObserver } from 'node:perf_hooks';
import { Histogram } from '../../lib/histogram.ts';
import { counter, histogram, type Family } from './family.ts';

/** Period of looks at the delay. */
const EVERY_MS = 20;
/** A loop with less to do, as a share of its time, is looked at after so many periods: it was on time in those between. */
const AT_REST = { utilization: 0.02, periods: 5 };
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const PAUSE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];

const KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** Delay and utilization of the event loop, and pauses by garbage collection. */
export class EventLoop {
  readonly families: readonly Family[];
  readonly #delay = new Histogram(DELAY_SECONDS);
  readonly #pauses = new Map<string, Histogram>();
  #timer = setTimeout(() => this.#look(), EVERY_MS).unref();
  readonly #observer = new PerformanceObserver((list) => list.getEntries().forEach((entry) => this.#paused(entry)));
  #lookedAt = performance.now();
  #used = performance.eventLoopUtilization();
  /** Until the next look. */
  #periods = 1;

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
    this.families = [
      histogram(
        'kiln_event_loop_delay_seconds',
        `By how much the event loop was late, looked at every ${EVERY_MS} ms, and less often at rest: media waits as long.`,
        () => [[{}, this.#delay]],
      ),
      counter('kiln_event_loop_active_seconds_total', 'Time in which the event loop did something.', () => {
        return performance.eventLoopUtilization().active / 1000;
      }),
      histogram('kiln_gc_pause_seconds', 'Pauses for garbage collection, by kind.', () =>
        Array.from(this.#pauses, ([kind, pauses]) => [{ kind }, pauses] as const),
      ),
    ];
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#observer.disconnect();
  }

  #look(): void {
    const now = performance.now();
    this.#delay.add(Math.max(0, now - this.#lookedAt - this.#periods * EVERY_MS) / 1000);
    for (let between = 1; between < this.#periods; between++) this.#delay.add(0);
    this.#lookedAt = now;
    const used = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(used, this.#used);
    this.#used = used;
    this.#periods = utilization < AT_REST.utilization ? AT_REST.periods : 1;
    this.#timer = setTimeout(() => this.#look(), this.#periods * EVERY_MS).unref();
  }

  #paused(entry: { readonly duration: number }): void {
    const { kind = 0 } = (entry as { readonly detail?: { readonly kind?: number } }).detail ?? {};
    const name = KINDS[kind] ?? 'other';
    const pauses = this.#pauses.get(name) ?? new Histogram(PAUSE_SECONDS);
    this.#pauses.set(name, pauses);
    pauses.add(entry.duration / 1000);
  }
}
