import {
  ConflictError,
  joinKey,
  StorageError,
  UnavailableError,
  type Change,
  type Cluster,
  type Expectation,
} from '#cluster';
import { kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';

/** How often a change is made anew that another node came before, in spite of the lock. */
const MAX_ATTEMPTS = 3;

/**
 * Changes what is stored of virtual hosts, each as all nodes have it by then, and one change of it at a time in the whole
 * cluster.
 */
export class ConfigWriter {
  readonly #cluster: Pick<Cluster, 'config' | 'withLock'>;
  readonly #log: Logger;
  /** Changes of this node go one after the other: it contends for locks with other nodes only. */
  #last: Promise<unknown> = Promise.resolve();
  /** Aborts when the change under way has lost its lock: another node may be changing the same by then. */
  #lock: AbortSignal | undefined;

  constructor(cluster: Pick<Cluster, 'config' | 'withLock'>, log: Logger) {
    this.#cluster = cluster;
    this.#log = log;
  }

  /** Of what is stored; 0 where nothing is. */
  revision(key: string): number {
    return this.#cluster.config.entries().get(key)?.revision ?? 0;
  }

  /**
   * Runs a change of a virtual host while no other is made of it. It may run several times: until it has written, it does
   * nothing that cannot be done again.
   * @throws clusterUnavailable when nothing was changed, changeUnknown when that is not known, and what the change does
   */
  change<T>(vhost: string, change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => this.#attempt(vhost, change));
    // who asked for it is told what it came to; the next one begins in any case
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** An entry as this change has seen it: what is written has no effect when it is another by then. */
  expected(key: string): Expectation {
    return { key, seen: this.revision(key) };
  }

  /**
   * Stores, inside a change, and waits until the registry has it.
   * @param expected entries that the change relies on
   * @throws storageFailed, ConflictError also when the lock was lost, UnavailableError; changeUnknown when it is stored
   * but cannot be read back
   */
  async write(changes: readonly Change[], expected: readonly Expectation[] = []): Promise<void> {
    const { config } = this.#cluster;
    this.#lock?.throwIfAborted();
    try {
      await config.write(changes, expected);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#log.error({ err: error }, 'a change through the management API could not be saved');
      throw kilnError('storageFailed');
    }
    // a write brings this node to where it was written
    await config.sync(config.position);
    if (config.stale) throw kilnError('changeUnknown');
  }

  async #attempt<T>(vhost: string, change: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      let begun = false;
      try {
        this.#requireStore();
        return await this.#cluster.withLock(joinKey('config', vhost), async (lock) => {
          begun = true;
          this.#lock = lock;
          await this.#cluster.config.sync();
          this.#requireStore();
          return await change();
        });
      } catch (error) {
        if (begun && error instanceof ConflictError && attempt < MAX_ATTEMPTS) continue;
        if (!(error instanceof ConflictError || error instanceof UnavailableError)) throw error;
        this.#log.warn({ reason: error.message }, 'a change through the management API failed');
        throw kilnError(error instanceof UnavailableError && error.mayBeDone ? 'changeUnknown' : 'clusterUnavailable');
      }
    }
  }

  #requireStore(): void {
    if (this.#cluster.config.stale) throw kilnError('clusterUnavailable');
  }
}
