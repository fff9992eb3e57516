import { ranked, type Cluster } from '#cluster';
import type { Logger } from '../../log/log.ts';
import { taskKey, type TaskName, type TaskOrigin } from '../definition.ts';
import type { Tasks } from '../tasks.ts';
import { isAlive, isStoreFailure } from './stream-tasks.ts';

/** How long the tasks of a node that is gone wait for the publishers to return, to this node or another one. */
const RETURN_MS = 60_000;

export interface OrphansOptions {
  readonly cluster: Pick<Cluster, 'self' | 'state' | 'nodes'>;
  readonly tasks: Tasks;
  readonly log: Logger;
}

/** Tasks of the configuration that nodes have left behind which died: deleted when their streams do not return. */
export class Orphans {
  readonly #options: OrphansOptions;
  /** Since when nodes are gone, by incarnation: milliseconds of the monotonic clock. */
  #gone: ReadonlyMap<string, number> = new Map();

  constructor(options: OrphansOptions) {
    this.#options = options;
  }

  /** Deletes what is due. Call it every few seconds. */
  async sweep(): Promise<void> {
    const { cluster, log } = this.#options;
    // without the store, a node that has died looks like one that is only unreachable
    if (cluster.state === 'degraded') return;
    const left = this.#left();
    const now = performance.now();
    const before = this.#gone;
    this.#gone = new Map(left.map(([, { node }]) => [node, before.get(node) ?? now]));
    for (const [name, origin] of left) {
      const isDue = now - (this.#gone.get(origin.node) ?? now) >= RETURN_MS;
      if (!isDue || ranked(taskKey(name), cluster.nodes())[0] !== cluster.self.id) continue;
      try {
        await this.#options.tasks.definitions.remove(name, origin);
      } catch (error) {
        if (!isStoreFailure(error)) throw error;
        log.debug({ ...name, reason: error.message }, 'a task of a node that is gone could not be deleted yet');
        return;
      }
    }
  }

  #left(): (readonly [TaskName, TaskOrigin])[] {
    const { cluster, tasks } = this.#options;
    return [...tasks.definitions.names()].flatMap((name) => {
      const origin = tasks.definitions.get(name)?.origin;
      return origin === undefined || isAlive(cluster, origin.node) ? [] : [[name, origin] as const];
    });
  }
}
