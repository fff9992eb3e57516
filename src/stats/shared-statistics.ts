import { UnavailableError, type Cluster, type StatsSum } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/stream.ts';
import type { Counted } from './counted.ts';
import { NodeCounts } from './node-counts.ts';
import type { Place } from './places.ts';
import { countedOf } from './row.ts';
import { onStreamBegins } from './stream-begins.ts';

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
  readonly #unlisten: () => void;
  #reporting: Promise<void> | undefined;

  constructor({ cluster, registry }: SharedStatisticsOptions) {
    this.#cluster = cluster;
    this.#counts = new NodeCounts(registry);
    this.#unlisten = onStreamBegins(registry, (input, application) => this.#begun(input, application));
  }

  /** What all nodes count of a place: this one as it is now, the others as they reported. */
  async read(place: Place): Promise<SharedCount> {
    const sums = await this.#sums(place.key);
    return { counted: countedOf(sums?.get(place.key), this.#counts.row(place)), stale: sums === undefined };
  }

  /** undefined when they are not available. */
  async #sums(key: string): Promise<ReadonlyMap<string, StatsSum> | undefined> {
    if (this.#cluster.state === 'degraded') return undefined;
    try {
      return await this.#cluster.stats([key]);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return undefined;
    }
  }

  /** Reports what was counted last. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#unlisten();
    await this.#reporting;
    await this.#report();
  }

  #begun(input: InputStream, application: Application): void {
    if (this.#cluster.state !== 'degraded') this.#counts.begun(application, input);
  }

  /** One report at a time. */
  #report(): Promise<void> {
    // while the store is unreachable, the rows of ended objects wait
    if (this.#cluster.state === 'degraded') return Promise.resolve();
    this.#reporting ??= this.#cluster.reportStats(this.#counts.rows()).finally(() => (this.#reporting = undefined));
    return this.#reporting;
  }
}
