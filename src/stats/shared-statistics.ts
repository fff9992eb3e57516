import { setTimeout as delay } from 'node:timers/promises';
import { UnavailableError, type Cluster, type NodeRow, type StatsSum } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/stream.ts';
import type { Counted } from './counted.ts';
import { NodeCounts } from './node-counts.ts';
import type { Place } from './places.ts';
import { countedOf } from './row.ts';
import { onStreamBegins } from './stream-begins.ts';

const EVERY_MS = 1000;
/** For so long what the other nodes count of a stream is not asked for again. */
const FRESH_MS = 500;
/** Those who ask for reports within this time get the same one. */
const GATHER_MS = 100;

export interface SharedStatisticsOptions {
  readonly cluster: Pick<Cluster, 'reportStats' | 'stats' | 'state' | 'nodes'>;
  readonly registry: Registry;
  /** Calls `reportSoon` of another node. @returns whether that has reported */
  readonly ask: (node: NodeRow, key: string) => Promise<boolean>;
}

export interface SharedCount {
  readonly counted: Counted;
  /** The other nodes could not be counted, or not all of them. */
  readonly stale: boolean;
}

/**
 * Statistics of the whole cluster, which any node answers: the sum of what all report. A node reports the server, virtual
 * hosts and applications once a second, and a stream when its viewers or sources change, or another node is asked for it.
 */
export class SharedStatistics {
  readonly #cluster: SharedStatisticsOptions['cluster'];
  readonly #ask: SharedStatisticsOptions['ask'];
  readonly #counts: NodeCounts;
  readonly #timer = setInterval(() => this.#report(), EVERY_MS).unref();
  readonly #unlisten: () => void;
  #closed = false;
  #reporting: Promise<boolean> | undefined;
  /** The report that is made when others have had the time to ask for theirs. */
  #gathering: Promise<boolean> | undefined;
  /** Whether all nodes have reported a stream, by its key, where they were asked just now. */
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor({ cluster, registry, ask }: SharedStatisticsOptions) {
    this.#cluster = cluster;
    this.#ask = ask;
    this.#counts = new NodeCounts(registry);
    this.#unlisten = onStreamBegins(registry, (input, application) => this.#begun(input, application));
  }

  /**
   * Reports a stream as it is in a moment, for another node that is asked for it.
   * @param key of its place
   * @returns whether that was counted
   */
  reportSoon(key: string): Promise<boolean> {
    this.#counts.ask(key);
    this.#gathering ??= delay(GATHER_MS).then(() => this.#reportNow());
    return this.#gathering;
  }

  /** What all nodes count of a place: this one as it is now, the others as they have reported. */
  async read(place: Place): Promise<SharedCount> {
    const { key, isStream } = place;
    const reported = await this.#sums(key);
    const others = isStream ? (reported?.get(key)?.others ?? []) : [];
    const complete = await this.#haveReported(key, others);
    const sums = others.length === 0 ? reported : await this.#sums(key);
    const counted = countedOf((sums ?? reported)?.get(key), this.#counts.row(place));
    return { counted, stale: sums === undefined || !complete };
  }

  /** Has other nodes report a stream. @returns whether all of them that are alive have */
  #haveReported(key: string, ids: readonly string[]): Promise<boolean> {
    if (ids.length === 0) return Promise.resolve(true);
    const asked = this.#asked.get(key);
    if (asked !== undefined) return asked;
    const nodes = this.#cluster.nodes().filter(({ id, state }) => state !== 'lost' && ids.includes(id));
    // one that is silent has nobody to report to
    const reporting = nodes.filter(({ state }) => state !== 'silent');
    const asking = Promise.all(reporting.map((node) => this.#ask(node, key)))
      .then((all) => all.length === nodes.length && all.every(Boolean))
      .finally(() => setTimeout(() => this.#asked.delete(key), FRESH_MS).unref());
    this.#asked.set(key, asking);
    return asking;
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
    this.#closed = true;
  }

  #begun(input: InputStream, application: Application): void {
    if (this.#cluster.state !== 'degraded') this.#counts.begun(application, input);
  }

  /** Of what is counted by now. */
  async #reportNow(): Promise<boolean> {
    this.#gathering = undefined;
    // the one that runs may have been made before
    await this.#reporting;
    return await this.#report();
  }

  /** One report at a time. @returns whether all of it was counted */
  #report(): Promise<boolean> {
    // while the store is unreachable, the rows of ended objects wait
    if (this.#closed || this.#cluster.state === 'degraded') return Promise.resolve(false);
    this.#reporting ??= this.#send().finally(() => (this.#reporting = undefined));
    return this.#reporting;
  }

  async #send(): Promise<boolean> {
    const rows = this.#counts.rows();
    const isCounted = await this.#cluster.reportStats(rows);
    if (isCounted) this.#counts.counted(rows);
    return isCounted;
  }
}
