import type { StatsRow, StatsSum, Values } from '#cluster';
import { PROVIDER_KINDS, PUBLISHER_KINDS, type Counters } from '../core/counters.ts';
import { each, type Counted, type Moved } from './counted.ts';

/** Bytes of counters that are gone. */
export interface Carried {
  readonly in: number;
  readonly out: number;
}

/**
 * Row of an object that a node reports. Gauges are `connections`, nonzero ones by kind, and throughputs. The time of creation
 * is negative: the store keeps the greatest value, and the oldest time is wanted.
 */
export function rowOf(key: string, counted: Counted, carried: Carried): StatsRow {
  const gauges: Record<string, number> = {
    connections: counted.totalConnections,
    lastIn: counted.in.lastThroughput,
    avgIn: counted.in.avgThroughput,
    lastOut: counted.out.lastThroughput,
    avgOut: counted.out.avgThroughput,
  };
  for (const kind of PUBLISHER_KINDS)
    if (counted.publishers[kind] !== 0) gauges[`publisher.${kind}`] = counted.publishers[kind];
  for (const kind of PROVIDER_KINDS)
    if (counted.providers[kind] !== 0) gauges[`provider.${kind}`] = counted.providers[kind];
  return {
    key,
    counters: { in: carried.in + counted.in.totalBytes, out: carried.out + counted.out.totalBytes },
    gauges,
    latest: latestOf(counted),
  };
}

/** Whether a row still has the numbers of viewers and sources, by kind, that the counters have. */
export function hasConnections({ gauges }: StatsRow, live: readonly Counters[]): boolean {
  const has = (gauge: string, count: (counters: Counters) => number): boolean =>
    (gauges[gauge] ?? 0) === live.reduce((all, counters) => all + count(counters), 0);
  return (
    PUBLISHER_KINDS.every((kind) => has(`publisher.${kind}`, ({ publishers }) => publishers[kind])) &&
    PROVIDER_KINDS.every((kind) => has(`provider.${kind}`, ({ providers }) => providers[kind]))
  );
}

/** Last row of an object that this node no longer has. */
export function lastRowOf(key: string, counted: Counted, carried: Carried): StatsRow {
  return { key, counters: { in: carried.in, out: carried.out }, gauges: {}, latest: latestOf(counted) };
}

function latestOf(counted: Counted): Values {
  return {
    created: -counted.createdTime,
    updated: counted.lastUpdatedTime,
    received: counted.in.lastTime,
    sent: counted.out.lastTime,
    maxIn: counted.in.maxThroughput,
    maxOut: counted.out.maxThroughput,
    maxConnections: counted.maxTotalConnections,
    maxConnectionsTime: counted.maxTotalConnectionTime,
  };
}

/**
 * Statistics of the whole cluster.
 * @param sum reports of the nodes; undefined when there are none
 * @param own present row of this node; undefined when it does not have the object
 */
export function countedOf(sum: StatsSum | undefined, own: StatsRow | undefined): Counted {
  const now =
    (kind: 'counters' | 'gauges') =>
    (name: string): number =>
      (sum?.[kind][name] ?? 0) - (sum?.own[kind][name] ?? 0) + (own?.[kind][name] ?? 0);
  const gauge = now('gauges');
  // an object that this node no longer has stays in the totals
  const counter = own === undefined ? (name: string): number => sum?.counters[name] ?? 0 : now('counters');
  const latest = (name: string): number => Math.max(sum?.latest[name] ?? -Infinity, own?.latest[name] ?? -Infinity);
  const created = -latest('created');
  const createdTime = Number.isFinite(created) ? created : Date.now();
  const time = (name: string): number => Math.max(latest(name), createdTime);
  const moved = (way: 'In' | 'Out', bytes: string, event: string): Moved => ({
    totalBytes: counter(bytes),
    lastThroughput: gauge(`last${way}`),
    avgThroughput: gauge(`avg${way}`),
    maxThroughput: Math.max(0, sum?.maxima[`avg${way}`] ?? 0, latest(`max${way}`), gauge(`avg${way}`)),
    lastTime: time(event),
  });
  const totalConnections = gauge('connections');
  const peak = sum?.maxima.connections ?? 0;
  const maxTotalConnections = Math.max(0, peak, latest('maxConnections'), totalConnections);
  return {
    createdTime,
    lastUpdatedTime: time('updated'),
    in: moved('In', 'in', 'received'),
    out: moved('Out', 'out', 'sent'),
    publishers: each(PUBLISHER_KINDS, (kind) => gauge(`publisher.${kind}`)),
    providers: each(PROVIDER_KINDS, (kind) => gauge(`provider.${kind}`)),
    totalConnections,
    maxTotalConnections,
    maxTotalConnectionTime:
      peak > 0 && peak === maxTotalConnections
        ? (sum?.maximaTimes.connections ?? createdTime)
        : time('maxConnectionsTime'),
  };
}
