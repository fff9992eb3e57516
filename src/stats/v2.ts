import Type, { type Static } from 'typebox';
import type { Counted } from './counted.ts';
import {
  alphabetical,
  NONE_ADDED,
  ProviderConnections,
  PublisherConnections,
  RECEIVED,
  received,
  SENT,
  shownSources,
  sent,
  shownConnections,
  VIEWERS,
} from './fields.ts';
import { localTime } from '../lib/local-time.ts';

/** v2 statistics object of the management API: the v1 values by side, and sources counted by provider. */
export const StatisticsV2 = Type.Object({
  createdTime: Type.String(),
  lastUpdatedTime: Type.String(),
  providers: Type.Object(alphabetical({ ...RECEIVED, connections: ProviderConnections })),
  publishers: Type.Object(alphabetical({ ...SENT, ...VIEWERS, connections: PublisherConnections })),
});

export function statisticsV2(counters: Counted, added = NONE_ADDED): Static<typeof StatisticsV2> {
  return {
    createdTime: localTime(counters.createdTime),
    lastUpdatedTime: localTime(counters.lastUpdatedTime),
    providers: { ...received(counters.in), connections: shownSources(counters.providers) },
    publishers: {
      ...sent(counters.out),
      connections: shownConnections(counters.publishers, added),
      maxTotalConnectionTime: localTime(counters.maxTotalConnectionTime),
      maxTotalConnections: counters.maxTotalConnections,
      totalConnections: counters.totalConnections,
    },
  };
}
