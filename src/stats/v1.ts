import Type, { type Static } from 'typebox';
import { PUBLISHER_KINDS, type Counters, type PublisherKind } from '../core/counters.ts';
import { localTime } from './local-time.ts';

const connections = Object.fromEntries(PUBLISHER_KINDS.map((kind) => [kind, Type.Integer()])) as Record<
  PublisherKind,
  ReturnType<typeof Type.Integer>
>;

/** v1 statistics object of the management API; throughputs as facts/01-rest-api.md section 10 defines them. */
export const StatisticsV1 = Type.Object({
  avgThroughputIn: Type.Integer({ description: 'bits per second over the last second with traffic' }),
  avgThroughputOut: Type.Integer(),
  connections: Type.Object(connections, { description: 'players, by publisher' }),
  createdTime: Type.String(),
  lastRecvTime: Type.String(),
  lastSentTime: Type.String(),
  lastThroughputIn: Type.Integer({ description: 'bytes in the last second with traffic' }),
  lastThroughputOut: Type.Integer(),
  lastUpdatedTime: Type.String(),
  maxThroughputIn: Type.Integer({ description: 'bits per second' }),
  maxThroughputOut: Type.Integer(),
  maxTotalConnectionTime: Type.String(),
  maxTotalConnections: Type.Integer(),
  totalBytesIn: Type.Integer(),
  totalBytesOut: Type.Integer(),
  totalConnections: Type.Integer(),
});

/** Shows the counters of a stream, application, virtual host or server in the v1 form. */
export function statisticsV1(counters: Counters): Static<typeof StatisticsV1> {
  const { in: input, out: output } = counters;
  return {
    avgThroughputIn: input.avgThroughput,
    avgThroughputOut: output.avgThroughput,
    connections: counters.publishers,
    createdTime: localTime(counters.createdTime),
    lastRecvTime: localTime(input.lastTime),
    lastSentTime: localTime(output.lastTime),
    lastThroughputIn: input.lastThroughput,
    lastThroughputOut: output.lastThroughput,
    lastUpdatedTime: localTime(counters.lastUpdatedTime),
    maxThroughputIn: input.maxThroughput,
    maxThroughputOut: output.maxThroughput,
    maxTotalConnectionTime: localTime(counters.maxTotalConnectionTime),
    maxTotalConnections: counters.maxTotalConnections,
    totalBytesIn: input.totalBytes,
    totalBytesOut: output.totalBytes,
    totalConnections: counters.totalConnections,
  };
}
