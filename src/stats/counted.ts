import { PROVIDER_KINDS, PUBLISHER_KINDS, type Counters, type Flow } from '../core/counters.ts';

/** Statistics of one direction. */
export type Moved = Pick<Flow, 'totalBytes' | 'lastThroughput' | 'avgThroughput' | 'maxThroughput' | 'lastTime'>;

/** Statistics of one object's counters, or of many nodes'. */
export interface Counted extends Pick<
  Counters,
  | 'createdTime'
  | 'lastUpdatedTime'
  | 'publishers'
  | 'providers'
  | 'totalConnections'
  | 'maxTotalConnections'
  | 'maxTotalConnectionTime'
> {
  readonly in: Moved;
  readonly out: Moved;
}

/** Sums several counters of one object: those of a stream and of its relays. */
export function added(first: Counted, ...others: readonly Counted[]): Counted {
  return others.reduce(plus, first);
}

function plus(a: Counted, b: Counted): Counted {
  const busier = b.maxTotalConnections > a.maxTotalConnections ? b : a;
  return {
    createdTime: Math.min(a.createdTime, b.createdTime),
    lastUpdatedTime: Math.max(a.lastUpdatedTime, b.lastUpdatedTime),
    in: moved(a.in, b.in),
    out: moved(a.out, b.out),
    publishers: each(PUBLISHER_KINDS, (kind) => a.publishers[kind] + b.publishers[kind]),
    providers: each(PROVIDER_KINDS, (kind) => a.providers[kind] + b.providers[kind]),
    totalConnections: a.totalConnections + b.totalConnections,
    maxTotalConnections: busier.maxTotalConnections,
    maxTotalConnectionTime: busier.maxTotalConnectionTime,
  };
}

function moved(a: Moved, b: Moved): Moved {
  return {
    totalBytes: a.totalBytes + b.totalBytes,
    lastThroughput: a.lastThroughput + b.lastThroughput,
    avgThroughput: a.avgThroughput + b.avgThroughput,
    maxThroughput: Math.max(a.maxThroughput, b.maxThroughput),
    lastTime: Math.max(a.lastTime, b.lastTime),
  };
}

export function each<K extends string>(kinds: readonly K[], value: (kind: K) => number): Record<K, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, value(kind)])) as Record<K, number>;
}
