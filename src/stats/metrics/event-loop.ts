import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';
import { Histogram } from '../../core/histogram.ts';
import { counter, histogram, type Family } from './family.ts';

/** How often the delay of the event loop is measured. */
const EVERY_MS = 20;
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const PAUSE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];
type Monitor = ReturnType<typeof monitorEventLoopDelay>;

const KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/** How late the event loop is, how busy, and for how long garbage collection holds it. */
export class EventLoop {
  readonly families: readonly Family[];
  readonly #monitor = monitorEventLoopDelay({ resolution: EVERY_MS });
  readonly #delay = new Histogram(DELAY_SECONDS);
  readonly #pauses = new Map<string, Histogram>();
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.#paused(entry);
  });

  constructor() {
    this.#monitor.enable();
    this.#observer.observe({ entryTypes: ['gc'] });
    this.families = [
      histogram(
        'kiln_event_loop_delay_seconds',
        `By how much the event loop was late, measured every ${EVERY_MS} ms: media waits as long.`,
        () => [[{}, this.#readDelay()]],
      ),
      counter('kiln_event_loop_active_seconds_total', 'Time in which the event loop did something.', () => {
        return performance.eventLoopUtilization().active / 1000;
      }),
      histogram('kiln_gc_pause_seconds', 'Pauses for garbage collection, by kind.', () =>
        [...this.#pauses].map(([kind, counted]) => [{ kind }, counted] as const),
      ),
    ];
  }

  /** Idempotent. */
  close(): void {
    this.#monitor.disable();
    this.#observer.disconnect();
  }

  #paused(entry: { readonly duration: number }): void {
    const { kind = 0 } = (entry as { readonly detail?: { readonly kind?: number } }).detail ?? {};
    const name = KINDS[kind] ?? 'other';
    const pauses = this.#pauses.get(name) ?? new Histogram(PAUSE_SECONDS);
    this.#pauses.set(name, pauses);
    pauses.add(entry.duration / 1000);
  }

  /** Adds what was measured since the scrape before. */
  #readDelay(): Histogram {
    const { count } = this.#monitor;
    if (count > 0) addMeasured(this.#delay, this.#monitor);
    this.#monitor.reset();
    return this.#delay;
  }
}

/** Node keeps finer buckets, of which it tells by percentile, and measures the time between two looks in nanoseconds. */
function addMeasured(delay: Histogram, { count, mean, percentiles }: Monitor): void {
  const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - EVERY_MS / 1000);
  let before = 0;
  for (const [at, bound] of [...delay.bounds, Infinity].entries()) {
    let share = 0;
    for (const [percentile, value] of percentiles) if (lateness(value) <= bound) share = percentile / 100;
    const upTo = Math.max(before, Math.round(share * count));
    delay.counts[at] = (delay.counts[at] as number) + upTo - before;
    before = upTo;
  }
  delay.sum += lateness(mean) * count;
}
