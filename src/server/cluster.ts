import type { Cluster } from '#cluster';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import { RelayTree } from '../directory/relay-tree.ts';
import { SessionNames } from '../directory/session-names.ts';
import { StreamChanges } from '../directory/stream-changes.ts';
import { StreamDirectory } from '../directory/stream-directory.ts';
import type { Logger } from '../log/log.ts';
import { OtherNodes } from '../peers/other-nodes.ts';
import { PeerCalls } from '../peers/peer-calls.ts';
import type { Closable } from './closable.ts';

/** This node in its cluster: calls between nodes, and what each has. */
export interface ClusterServices {
  readonly cluster: Cluster;
  /** Calls from other nodes. */
  readonly calls: PeerCalls;
  /** Calls to other nodes. */
  readonly others: OtherNodes;
  readonly directory: StreamDirectory;
  readonly changes: StreamChanges;
  readonly sessionNames: SessionNames;
  readonly tree: RelayTree;
}

export interface ClusterServicesOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly cluster: Cluster;
  readonly log: Logger;
}

/** @param components receives those to close */
export function openCluster(
  { config, registry, cluster, log }: ClusterServicesOptions,
  components: Closable[],
): ClusterServices {
  const directory = new StreamDirectory({ cluster, registry });
  const changes = new StreamChanges(registry, directory);
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  // a single node has no others to pass streams on to
  const tree = new RelayTree(cluster, config.cluster?.relayFanOut ?? Infinity);
  components.push(sessionNames, directory, changes, calls);
  return { cluster, calls, others, directory, changes, sessionNames, tree };
}
