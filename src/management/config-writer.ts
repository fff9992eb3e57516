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

/** Attempts at a change that another node anticipates, in spite of the lock. */
const MAX_ATTEMPTS = 3;

/**
 * Changes stored virtual hosts, each as all nodes know it by then, and makes one change of a virtual host at a time in the
 * whole cluster.
 */
export class ConfigWriter {
  readonly #cluster: Pick<Cluster, 'config' | 'withLock'>;
  readonly #log: Logger;
  /** Serializes changes of this node: it contends for locks with other nodes only. */
  #last: Promise<unknown> = Promise.resolve();
  /** Aborts when the running change has lost its lock: another node may be changing the same virtual host. */
  #lock: AbortSignal | undefined;

  constructor(cluster: Pick<Cluster, 'config' | 'withLock'>, log: Logger) {
    this.#cluster = cluster;
    this.#log = log;
  }

  /** Revision of a stored entry; 0 for none. */
  revision(key: string): number {
    return this.#cluster.config.entries().get(key)?.revision ?? 0;
  }

  /**
   * Runs a change of a virtual host while no other change of it runs. It may run several times: before it writes, it must not
   * do anything that cannot be repeated.
   * @throws clusterUnavailable when nothing was changed, changeUnknown when that is unknown, and what the change throws
   */
  change<T>(vhost: string, change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => this.#attempt(vhost, change));
    // failures go to the caller; the next change begins in any case
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Revision of an entry as this change has seen it: a write fails if it has another one by then. */
  expected(key: string): Expectation {
    return { key, seen: this.revision(key) };
  }

  /**
   * Stores changes, from within `change`, and waits until the registry has them.
   * @param expected entries that the change relies on
   * @throws storageFailed, ConflictError also when the lock was lost, UnavailableError; changeUnknown when the changes are
   * stored but cannot be read back
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
    // waits until this node has read its own write
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
