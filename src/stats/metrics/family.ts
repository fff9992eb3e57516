import type { Histogram } from '../../core/histogram.ts';

export type Labels = Readonly<Record<string, string>>;

/** One line of a scrape, as prom-client writes it. */
export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  /** Labels that many samples have, in one object that is kept: they are written out once for all of them. */
  readonly sharedLabels?: Labels;
  /** Of a histogram: name with the line's ending. */
  readonly metricName?: string;
}

/** Everything that is told under one name. */
export interface Family {
  /** By Prometheus' conventions: with the unit, and `_total` of a counter. */
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Called at each scrape. */
  samples(): Iterable<Sample> | Promise<Iterable<Sample>>;
}

type Read = () => number | Iterable<Sample> | Promise<Iterable<Sample>>;

/** What only grows, until the process ends. */
export function counter(name: string, help: string, read: Read): Family {
  return { name, help, type: 'counter', samples: () => samplesOf(read()) };
}

/** What is now. */
export function gauge(name: string, help: string, read: Read): Family {
  return { name, help, type: 'gauge', samples: () => samplesOf(read()) };
}

/** What was counted in buckets, with the labels of each. */
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

/** A sample for each entry that is not 0 of a record of counts, under one label. */
export function* byLabel(label: string, counts: Readonly<Record<string, number>>, sharedLabels?: Labels) {
  for (const [value, count] of Object.entries(counts)) {
    if (count !== 0) yield { labels: { [label]: value }, ...(sharedLabels && { sharedLabels }), value: count };
  }
}
