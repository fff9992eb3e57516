import type { Histogram } from '../../lib/histogram.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  /** Labels of many samples, as one object that stays the same: they are formatted once for all. */
  readonly sharedLabels?: Labels;
  /** Name of a histogram with `_bucket`, `_sum` or `_count`. */
  readonly metricName?: string;
}

export interface Family {
  /** By the conventions of Prometheus: ends with the unit, and for a counter with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Iterable<Sample> | Promise<Iterable<Sample>>;
}

type Read = () => number | Iterable<Sample> | Promise<Iterable<Sample>>;

/** A value that only grows, until the process ends. */
export function counter(name: string, help: string, read: Read): Family {
  return { name, help, type: 'counter', samples: () => samplesOf(read()) };
}

/** A value at present. */
export function gauge(name: string, help: string, read: Read): Family {
  return { name, help, type: 'gauge', samples: () => samplesOf(read()) };
}

/** Values that were counted in buckets, one histogram for each set of labels. */
export function histogram(
  name: string,
  help: string,
  read: () => Iterable<readonly [labels: Labels, counted: Counted]>,
): Family {
  return { name, help, type: 'histogram', samples: () => histogramSamples(name, read()) };
}

type Counted = Pick<Histogram, 'bounds' | 'counts' | 'sum'>;

function samplesOf(read: ReturnType<Read>): ReturnType<Family['samples']> {
  return typeof read === 'number' ? [{ value: read }] : read;
}

function* histogramSamples(name: string, all: Iterable<readonly [Labels, Counted]>): Iterable<Sample> {
  for (const [sharedLabels, { bounds, counts, sum }] of all) {
    let count = 0;
    for (const [at, inBucket] of counts.entries()) {
      count += inBucket;
      const le = at < bounds.length ? String(bounds[at]) : '+Inf';
      yield { metricName: `${name}_bucket`, sharedLabels, labels: { le }, value: count };
    }
    yield { metricName: `${name}_sum`, sharedLabels, value: sum };
    yield { metricName: `${name}_count`, sharedLabels, value: count };
  }
}

/** A sample for each nonzero entry of a record of counts, under one label. */
export function* byLabel(label: string, counts: Readonly<Record<string, number>>, sharedLabels?: Labels) {
  for (const [value, count] of Object.entries(counts)) {
    if (count !== 0) yield { labels: { [label]: value }, ...(sharedLabels && { sharedLabels }), value: count };
  }
}
