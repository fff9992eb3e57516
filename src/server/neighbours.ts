import type { Cluster } from '#cluster';
import { openChannels } from './channels.ts';
import { Access } from '../access/access.ts';
import { signedPolicy } from '../access/policy/guard.ts';
import { configuredPorts } from '../access/policy/ports.ts';
import { Redirects } from '../access/redirects.ts';
import { AdmissionWebhooks } from '../access/webhooks/index.ts';
import { secretsOf } from '../config/cluster-secrets.ts';
import type { ServerConfig } from '../config/model.ts';
import type { FindOutput } from '../core/find-output.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { OtherNodes } from '../peers/other-nodes.ts';
import { PeerCalls } from '../peers/peer-calls.ts';
import { RelayTree } from '../directory/relay-tree.ts';
import { SessionNames } from '../directory/session-names.ts';
import { StreamChanges } from '../directory/stream-changes.ts';
import { StreamDirectory } from '../directory/stream-directory.ts';
import { StreamNames } from '../directory/stream-names.ts';
import { channelNames } from '../channels/channel-name.ts';
import { Relays } from '../relay/relays.ts';
import { FedNodes } from '../relay/fed-nodes.ts';
import { openPulling } from './pulling.ts';
import { openPushing } from './pushing.ts';
import { ClusterTasks } from '../tasks/cluster-tasks.ts';
import { Tasks } from '../tasks/tasks.ts';
import { ConnectionsElsewhere } from '../stats/connections-elsewhere.ts';

export interface NeighboursOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly cluster: Cluster;
  /** Base of relative paths. */
  readonly folder: string;
  readonly log: Logger;
}

export type Neighbours = ReturnType<typeof openNeighbours>;

/**
 * Opens the services that connect this node with others: names, directory, relays, calls between nodes, and their
 * users.
 */
export function openNeighbours({ config, registry, cluster, folder, log }: NeighboursOptions) {
  const directory = new StreamDirectory({ cluster, registry });
  const changes = new StreamChanges(registry, directory);
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const tasks = new Tasks({ cluster, registry, calls, log });
  const names = new StreamNames({ cluster, registry, changes, reserved: channelNames(tasks.definitions), log });
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  // a single node has no others to pass streams on to
  const tree = new RelayTree(cluster, config.cluster?.relayFanOut ?? Infinity);
  const relays = new Relays({ cluster, tree, directory, changes, log });
  const clusterTasks = new ClusterTasks({ cluster, tasks, others, calls, log });
  const { pulls, maps, demand } = openPulling({
    config,
    registry,
    cluster,
    names,
    directory,
    changes,
    tasks,
    clusterTasks,
    log,
  });
  const pushing = openPushing({ config, registry, cluster, tasks, log });
  registry.demand = demand.application;
  const find: FindOutput = async (application, name, query) => {
    const relay = await relays.find(application, name);
    if (relay !== undefined || !(await demand.bring(application, name, query))) return relay;
    // of nodes asked at the same time one pulls, and the others relay its stream
    return application.outputs.get(name) ?? relays.find(application, name);
  };
  const channels = openChannels({
    cluster,
    registry,
    names,
    changes,
    tasks,
    clusterTasks,
    others,
    calls,
    find,
    folder,
    log,
  });
  const webhooks = new AdmissionWebhooks({ cluster, registry, log, hidesClients: config.privacyProtection });
  const viewersElsewhere = new ConnectionsElsewhere(cluster);
  const access = new Access({
    registry,
    names,
    sessionNames,
    find,
    elsewhere: directory,
    countElsewhere: (application) => viewersElsewhere.of(application),
    guards: [signedPolicy(configuredPorts(config.bind)), webhooks.guard],
    openings: webhooks.openings,
    log,
  });
  const secrets = config.cluster === undefined ? [] : secretsOf(config.cluster);
  const redirects = new Redirects({ cluster, registry, directory, secrets });
  return {
    cluster,
    access,
    redirects,
    webhooks,
    names,
    sessionNames,
    directory,
    tree,
    calls,
    others,
    relays,
    fed: new FedNodes(),
    tasks,
    clusterTasks,
    pulls,
    channels,
    bring: demand.bring,
    fetch: demand.fetch,
    /** In the order of opening; `tasks` close before them. */
    parts: [names, sessionNames, directory, changes, relays, maps, pushing, channels.caches, calls, access, webhooks],
  };
}
