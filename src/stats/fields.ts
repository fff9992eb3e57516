import Type, { type Static, type TInteger } from 'typebox';
import { PROVIDER_KINDS, PUBLISHER_KINDS, type ProviderKind, type PublisherKind } from '../core/counters.ts';
import type { Counted, Moved } from './counted.ts';
import { localTime } from '../lib/local-time.ts';

/** Fields of incoming bytes; throughputs as docs/compatibility.md#statistics defines them. */
export const RECEIVED = {
  avgThroughputIn: Type.Integer({ description: 'bits per second over the last second with traffic' }),
  lastRecvTime: Type.String(),
  lastThroughputIn: Type.Integer({ description: 'bytes in the last second with traffic' }),
  maxThroughputIn: Type.Integer({ description: 'bits per second' }),
  totalBytesIn: Type.Integer(),
};

export const SENT = {
  avgThroughputOut: Type.Integer({ description: 'bits per second over the last second with traffic' }),
  lastSentTime: Type.String(),
  lastThroughputOut: Type.Integer({ description: 'bytes in the last second with traffic' }),
  maxThroughputOut: Type.Integer({ description: 'bits per second' }),
  totalBytesOut: Type.Integer(),
};

export const VIEWERS = {
  maxTotalConnectionTime: Type.String({ description: 'when there were that many' }),
  maxTotalConnections: Type.Integer(),
  totalConnections: Type.Integer(),
};

/** Publishers that OvenMediaEngine does not have: answers have their keys only where they are in use. */
export type AddedKind = 'flv' | 'playback' | 'rtmp' | 'rtsp';

const { flv, playback, rtmp, rtsp, ...always } = integers<PublisherKind>(PUBLISHER_KINDS);
export const PublisherConnections = Type.Object(
  alphabetical({
    ...always,
    flv: Type.Optional(flv),
    playback: Type.Optional(playback),
    rtmp: Type.Optional(rtmp),
    rtsp: Type.Optional(rtsp),
  }),
  {
    description:
      'current viewers, by publisher; `playback` where an application has that module, `flv`, `rtmp` and `rtsp` where players have a port',
  },
);

/** @param added publishers in use beside those of OvenMediaEngine */
export function shownConnections(
  { flv: overHttp, playback: playing, rtmp: overRtmp, rtsp: overRtsp, ...others }: Counted['publishers'],
  added: ReadonlySet<AddedKind>,
): Static<typeof PublisherConnections> {
  return alphabetical({
    ...others,
    ...(added.has('playback') && { playback: playing }),
    ...(added.has('rtsp') && { rtsp: overRtsp }),
    ...(added.has('rtmp') && { rtmp: overRtmp }),
    ...(added.has('flv') && { flv: overHttp }),
  });
}

export const NONE_ADDED: ReadonlySet<AddedKind> = new Set();

const { hlspull, rtmppull, ...sources } = integers<ProviderKind>(PROVIDER_KINDS);
const ADDED_SOURCES = { hlspull: Type.Optional(hlspull), rtmppull: Type.Optional(rtmppull) };
export const ProviderConnections = Type.Object(alphabetical({ ...sources, ...ADDED_SOURCES }), {
  description: 'current sources, by provider; `hlspull` and `rtmppull` where there are any',
});

/** Answers have the keys of OvenMediaEngine alone where no stream is pulled over RTMP or HLS. */
export function shownSources({
  hlspull: byHls,
  rtmppull: byRtmp,
  ...rest
}: Counted['providers']): Static<typeof ProviderConnections> {
  return alphabetical({ ...rest, ...(byHls > 0 && { hlspull: byHls }), ...(byRtmp > 0 && { rtmppull: byRtmp }) });
}

function integers<K extends string>(kinds: readonly K[]): Record<K, TInteger> {
  return Object.fromEntries(kinds.map((kind) => [kind, Type.Integer()])) as Record<K, TInteger>;
}

/** Fields in the order in which answers show them (docs/compatibility.md#statistics). */
export function alphabetical<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))) as T;
}

export function received(flow: Moved) {
  return {
    avgThroughputIn: flow.avgThroughput,
    lastRecvTime: localTime(flow.lastTime),
    lastThroughputIn: flow.lastThroughput,
    maxThroughputIn: flow.maxThroughput,
    totalBytesIn: flow.totalBytes,
  };
}

export function sent(flow: Moved) {
  return {
    avgThroughputOut: flow.avgThroughput,
    lastSentTime: localTime(flow.lastTime),
    lastThroughputOut: flow.lastThroughput,
    maxThroughputOut: flow.maxThroughput,
    totalBytesOut: flow.totalBytes,
  };
}
