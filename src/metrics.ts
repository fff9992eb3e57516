import type { Registry } from './core/registry.ts';
import type { Neighbours } from './neighbours.ts';
import { AllStreams } from './stats/metrics/all-streams.ts';
import { EventLoop } from './stats/metrics/event-loop.ts';
import { Exposition } from './stats/metrics/exposition.ts';
import { gauge, type Family } from './stats/metrics/family.ts';
import { processFamilies } from './stats/metrics/process.ts';
import { streamFamilies } from './stats/metrics/streams.ts';
import { trafficFamilies } from './stats/metrics/traffic.ts';
import type { Version } from './version.ts';

export interface MetricsOptions {
  readonly registry: Registry;
  readonly neighbours: Neighbours;
  readonly version: Version;
}

/** What Prometheus is told of this node. It measures from now on. */
export function openMetrics({ registry, neighbours, version }: MetricsOptions) {
  const { access, cluster } = neighbours;
  const eventLoop = new EventLoop();
  const streams = new AllStreams(registry);
  const families: Family[] = [
    gauge('kiln_node_info', 'This node, and what it runs.', () => [
      { labels: { node: cluster.self.id, version: version.version, runtime: process.version }, value: 1 },
    ]),
    ...processFamilies(),
    ...eventLoop.families,
    ...trafficFamilies({ registry, refusals: () => access.refusals.all() }),
    ...streamFamilies(streams),
  ];
  return {
    exposition: new Exposition(families),
    close: () => {
      eventLoop.close();
      streams.close();
    },
  };
}
