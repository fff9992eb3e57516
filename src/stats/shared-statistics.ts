import { UnavailableError, type Cluster } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { Counted } from './counted.ts';
import { NodeCounts } from './node-counts.ts';
import type { Place } from './places.ts';
import { countedOf } from './row.ts';

const EVERY_MS = 1000;

export interface SharedStatisticsOptions {
  readonly cluster: Pick<Cluster, 'reportStats' | 'stats' | 'state'>;
  readonly registry: Registry;
}

export interface SharedCount {
  readonly counted: Counted;
  /** The other nodes could not be counted. */
  readonly stale: boolean;
}

/** Statistics of the whole cluster: each node reports what it counts once a second, and any answers the sum. */
export class SharedStatistics {
  readonly #cluster: Pick<Cluster, 'reportStats' | 'stats' | 'state'>;
  readonly #counts: NodeCounts;
  readonly #timer = setInterval(() => this.#report(), EVERY_MS).unref();
  #reporting: Promise<void> | undefined;

  constructor({ cluster, registry }: SharedStatisticsOptions) {
    this.#cluster = cluster;
    this.#counts = new NodeCounts(registry);
  }

  /** What all nodes count of a place: this one as it is now, the others as they reported. */
  async read(place: Place): Promise<SharedCount> {
    try {
      const sums = await this.#cluster.stats([place.key]);
      return { counted: countedOf(sums.get(place.key), this.#counts.row(place)), stale: false };
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return { counted: countedOf(undefined, this.#counts.row(place)), stale: true };
    }
  }

  /** Tells the last of what was counted. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#reporting;
    await this.#report();
  }

  /** A report that takes longer than a second is not overtaken. */
  #report(): Promise<void> {
    // while nobody hears it, what has ended waits to be told
    if (this.#cluster.state === 'degraded') return Promise.resolve();
    this.#reporting ??= this.#cluster.reportStats(this.#counts.rows()).finally(() => (this.#reporting = undefined));
    return this.#reporting;
  }
}
