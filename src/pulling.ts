import type { Cluster, StoreAddress } from '#cluster';
import type { ServerConfig } from './config/model.ts';
import { ownPorts } from './config/ports.ts';
import { hostFromUrl } from './config/values.ts';
import type { Registry } from './core/registry.ts';
import type { Logger } from './log.ts';
import { blockList } from './config/networks.ts';
import { OriginMaps } from './origins/origin-maps.ts';
import type { StreamChanges } from './origins/stream-changes.ts';
import type { StreamDirectory } from './origins/stream-directory.ts';
import type { StreamNames } from './origins/stream-names.ts';
import { Demand } from './providers/pull/demand.ts';
import { PullGuard, type PullGuardOptions } from './providers/pull/guard.ts';
import { PullKind } from './providers/pull/kind.ts';
import { ovtSource } from './providers/pull/ovt-source.ts';
import { PulledStreams } from './providers/pull/pulled-streams.ts';
import { bySchemes } from './providers/pull/schemes.ts';
import { rtspSource } from './providers/rtsp-pull/source.ts';
import type { ClusterTasks } from './tasks/cluster-tasks.ts';
import type { Tasks } from './tasks/tasks.ts';

export interface PullingOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly cluster: Cluster;
  readonly names: StreamNames;
  readonly directory: StreamDirectory;
  readonly changes: StreamChanges;
  readonly tasks: Tasks;
  readonly clusterTasks: ClusterTasks;
  readonly log: Logger;
}

/** Everything that pulls streams from elsewhere: on order, and for viewers that ask for them. */
export function openPulling({
  config,
  registry,
  cluster,
  names,
  directory,
  changes,
  tasks,
  clusterTasks,
  log,
}: PullingOptions) {
  const configured = configuredStores(config);
  const guard = new PullGuard({
    nodes: () => cluster.nodes(),
    ports: closedPorts(config),
    stores: () => [...configured, ...cluster.stores()],
    networks: blockList(config.modules.pull?.networks),
  });
  const rtsp = rtspSource(guard);
  const kind = new PullKind({ names, open: bySchemes({ ovt: ovtSource(guard), rtsp, rtspc: rtsp }), log });
  tasks.add(kind);
  const pulls = new PulledStreams({ directory, definitions: tasks.definitions, tasks: clusterTasks, log });
  const ovtPort = config.bind.publishers.ovt?.port;
  const maps = new OriginMaps({ registry, ovtPort, isFromStore: (input) => kind.isFromStore(input), log });
  const demand = new Demand({ registry, directory, changes, pulls, maps, log });
  return { pulls, maps, demand };
}

/** The ports of this server, but for the one that streams are pulled from. */
function closedPorts(config: ServerConfig): PullGuardOptions['ports'] {
  const tcp = new Set(ownPorts(config, 'tcp'));
  const { ovt } = config.bind.publishers;
  if (ovt?.port !== undefined) tcp.delete(ovt.port);
  return { tcp, udp: new Set(ownPorts(config, 'udp')) };
}

/** Where Server.xml says that the store is, or who knows where. */
function configuredStores({ cluster }: ServerConfig): StoreAddress[] {
  const { url, sentinels = [], cluster: endpoints = [] } = cluster?.redis ?? {};
  return [...sentinels, ...endpoints, ...(url === undefined ? [] : [endpointOf(url)])];
}

function endpointOf(url: string): StoreAddress {
  const { hostname, port } = new URL(url);
  return { host: hostFromUrl(hostname), port: port === '' ? 6379 : Number(port) };
}
