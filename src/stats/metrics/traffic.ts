import { PROVIDER_KINDS, PUBLISHER_KINDS, type Counters } from '../../core/counters.ts';
import type { Registry } from '../../core/registry.ts';
import { byLabel, counter, gauge, histogram, type Family, type Labels, type Sample } from './family.ts';

/** Clients rejected for one reason. */
export interface Refusals {
  readonly direction?: 'incoming' | 'outgoing';
  readonly protocol: string;
  readonly reason: string;
  readonly count: number;
}

export interface TrafficSources {
  readonly registry: Registry;
  readonly refusals: () => readonly Refusals[];
}

const WATCHED = ['hlsv3', 'llhls', 'webrtc'] as const;

/** Metrics of publishers and viewers of this node, by application, and of how well they are served by protocol. */
export function trafficFamilies({ registry, refusals }: TrafficSources): Family[] {
  const { viewing } = registry.counters;
  return [
    gauge('kiln_sources', 'Sources of streams at this node, by how they come in.', () =>
      kinds(registry, PROVIDER_KINDS, 'provider', ({ providers, providersSoFar }) => [providers, providersSoFar]),
    ),
    counter('kiln_sources_started_total', 'Sources of streams that have come to this node.', () =>
      kinds(registry, PROVIDER_KINDS, 'provider', ({ providersSoFar }) => [providersSoFar, providersSoFar]),
    ),
    gauge('kiln_viewers', 'Viewers at this node, by protocol; pushes and recordings are counted as such.', () =>
      kinds(registry, PUBLISHER_KINDS, 'protocol', ({ publishers: now, publishersSoFar }) => [now, publishersSoFar]),
    ),
    counter('kiln_viewer_sessions_total', 'Sessions of viewers that have begun at this node.', () =>
      kinds(registry, PUBLISHER_KINDS, 'protocol', ({ publishersSoFar }) => [publishersSoFar, publishersSoFar]),
    ),
    counter('kiln_application_received_bytes_total', 'Bytes that came of the streams of an application.', () =>
      applications(registry, (counters) => counters.in.totalBytes),
    ),
    counter('kiln_application_sent_bytes_total', 'Bytes that went to the viewers of an application.', () =>
      applications(registry, (counters) => counters.out.totalBytes),
    ),
    counter('kiln_viewer_sent_bytes_total', 'Bytes that went to viewers whom this node counts, by protocol.', () => [
      ...byLabel('protocol', viewing.sentBytes),
    ]),
    counter(
      'kiln_viewer_stalls_total',
      'How often a viewer that was being sent media got none for a second or more.',
      () => WATCHED.map((protocol) => ({ labels: { protocol }, value: viewing.stalls[protocol] })),
    ),
    histogram('kiln_viewer_join_seconds', 'Time from the request of a viewer to its first media, by protocol.', () =>
      Array.from(viewing.joins, ([protocol, joins]) => [{ protocol }, joins] as const),
    ),
    counter('kiln_refusals_total', 'Publishers and viewers that were refused, by class of reason.', () =>
      refusals().map(({ direction = 'unknown', protocol, reason, count }) => {
        return { labels: { direction, protocol, reason }, value: count };
      }),
    ),
  ];
}

function* levels(registry: Registry): Iterable<readonly [Labels, Counters]> {
  for (const vhost of registry.vhosts.values())
    for (const { name, counters } of vhost.applications.values())
      yield [{ vhost: vhost.name, application: name }, counters];
}

function* applications(registry: Registry, read: (counters: Counters) => number): Iterable<Sample> {
  for (const [labels, counters] of levels(registry)) yield { labels, value: read(counters) };
}

/** Values for each kind that an application has, or had. */
function* kinds<K extends string>(
  registry: Registry,
  all: readonly K[],
  label: string,
  read: (counters: Counters) => readonly [now: Record<K, number>, soFar: Record<K, number>],
): Iterable<Sample> {
  for (const [labels, counters] of levels(registry)) {
    const [now, soFar] = read(counters);
    for (const kind of all) if (soFar[kind] > 0) yield { labels: { ...labels, [label]: kind }, value: now[kind] };
  }
}
