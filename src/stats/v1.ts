import Type, { type Static } from 'typebox';
import type { Counted } from './counted.ts';
import {
  alphabetical,
  NONE_ADDED,
  PublisherConnections,
  RECEIVED,
  received,
  SENT,
  sent,
  shownConnections,
  VIEWERS,
} from './fields.ts';
import { localTime } from '../lib/local-time.ts';

export const StatisticsV1 = Type.Object(
  alphabetical({
    ...RECEIVED,
    ...SENT,
    ...VIEWERS,
    connections: PublisherConnections,
    createdTime: Type.String(),
    lastUpdatedTime: Type.String(),
  }),
);

/**
 * Shows the counters of a stream, application, virtual host or server in the v1 form.
 * @param added as of `shownConnections`
 */
export function statisticsV1(counters: Counted, added = NONE_ADDED): Static<typeof StatisticsV1> {
  return {
    ...received(counters.in),
    ...sent(counters.out),
    connections: shownConnections(counters.publishers, added),
    createdTime: localTime(counters.createdTime),
    lastUpdatedTime: localTime(counters.lastUpdatedTime),
    maxTotalConnectionTime: localTime(counters.maxTotalConnectionTime),
    maxTotalConnections: counters.maxTotalConnections,
    totalConnections: counters.totalConnections,
  };
}
