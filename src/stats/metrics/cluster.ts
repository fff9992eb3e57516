import type { Cluster, NodeState } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { counter, gauge, histogram, type Family, type Sample } from './family.ts';
import type { StoreCounts } from './store-counts.ts';

const STATES = ['ready', 'draining', 'silent', 'lost'] as const satisfies readonly NodeState[];

export interface ClusterSources {
  readonly cluster: Pick<Cluster, 'nodes' | 'self' | 'state' | 'draining' | 'held' | 'rejected'>;
  readonly store: StoreCounts;
  readonly registry: Registry;
  /** Streams that continue one that ended without being handed over. */
  readonly continued: () => number;
  /** Publishers that wait for the node that has their name to answer or die. */
  readonly heldPublishers: () => number;
  /** Nodes that this one sends streams to, by the way that led them here. */
  readonly relayFeeds: () => Readonly<Record<string, number>>;
}

/** Metrics of the cluster as this node sees it, and of what it holds there. Sums over nodes are made in PromQL. */
export function clusterFamilies(sources: ClusterSources): Family[] {
  const { cluster, store, registry, continued, heldPublishers, relayFeeds } = sources;
  return [
    gauge('kiln_cluster_nodes', 'Nodes of the cluster by state, as this node knows them.', () => nodes(cluster)),
    gauge('kiln_cluster_connected', 'Whether this node reaches the store of its cluster.', () => {
      return Number(cluster.state === 'connected');
    }),
    gauge('kiln_node_draining', 'Whether this node accepts no new streams.', () => Number(cluster.draining)),
    gauge(
      'kiln_cluster_claims',
      'What this node holds in the cluster: names of streams, and tasks.',
      () => cluster.held,
    ),
    gauge(
      'kiln_cluster_distrusted',
      'What this node refuses because it is not authenticated as part of its cluster.',
      () => Object.entries(cluster.rejected).map(([kind, value]) => ({ labels: { kind }, value })),
    ),
    counter(
      'kiln_cluster_beats_total',
      'Beats by which this node keeps what it holds: taken by Redis, or missed.',
      () => Object.entries(store.beats).map(([result, value]) => ({ labels: { result }, value })),
    ),
    histogram('kiln_redis_command_seconds', 'Time until Redis had answered a command of this node.', () => [
      [{}, store.answers],
    ]),
    counter('kiln_redis_command_failures_total', 'Commands that Redis has not answered as it should.', () => {
      return store.unanswered;
    }),
    gauge(
      'kiln_relays',
      'Output streams of other nodes that this node relays, or whose HLS or LL-HLS players it counts; those of both once.',
      () => relays(registry),
    ),
    gauge(
      'kiln_relay_feeds',
      'Nodes that this node sends output streams to, those of each stream counted. Of `way` `relay` are those that got it from no other ' +
        'node, for which its owner has no bound.',
      () => Object.entries(relayFeeds()).map(([way, value]) => ({ labels: { way }, value })),
    ),
    counter(
      'kiln_stream_takeovers_total',
      'Streams that go on here where one before them, on any node, was left.',
      () => continued(),
    ),
    gauge('kiln_held_publishers', 'Publishers that wait while the node that has their name does not answer.', () =>
      heldPublishers(),
    ),
  ];
}

function nodes(cluster: ClusterSources['cluster']): Sample[] {
  const rows = cluster.nodes();
  return STATES.map((state) => ({ labels: { state }, value: rows.filter((row) => row.state === state).length }));
}

function* relays(registry: Registry): Iterable<Sample> {
  for (const vhost of registry.vhosts.values())
    for (const application of vhost.applications.values())
      yield { labels: { vhost: vhost.name, application: application.name }, value: countRelays(application) };
}

function countRelays(application: Application): number {
  const names = new Set(application.relays.keys());
  for (const { outputs } of application.elsewhere())
    for (const { name, sessions } of outputs.values()) if (sessions.size > 0) names.add(name);
  return names.size;
}
