import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { ClusterTasks } from '../tasks/cluster-tasks.ts';
import { Tasks } from '../tasks/tasks.ts';
import type { ClusterServices } from './cluster.ts';

/** Tasks: pulls, pushes, recordings and channels. */
export interface TaskServices {
  /** Runs tasks on this node. */
  readonly tasks: Tasks;
  /** Lists and changes tasks of all nodes. */
  readonly clusterTasks: ClusterTasks;
}

export interface TaskServicesOptions {
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly log: Logger;
}

export function openTasks({ registry, nodes, log }: TaskServicesOptions): TaskServices {
  const { cluster, calls, others } = nodes;
  const tasks = new Tasks({ cluster, registry, calls, log });
  return { tasks, clusterTasks: new ClusterTasks({ cluster, tasks, others, calls, log }) };
}
