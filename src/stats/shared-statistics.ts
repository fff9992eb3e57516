import { setTimeout as delay } from 'node:timers/promises';
import { UnavailableError, type Cluster, type NodeRow, type StatsSum } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { Counted } from './counted.ts';
import { NodeCounts } from './node-counts.ts';
import type { Place } from './places.ts';
import { countedOf } from './row.ts';
import { onStreamBegins } from './stream-begins.ts';

const EVERY_MS = 1000;
/** Time in which the counts of a stream on other nodes are not requested again. */
const FRESH_MS = 500;
/** Requests for reports within this time share one report. */
const GATHER_MS = 100;

export interface SharedStatisticsOptions {
  readonly cluster: Pick<Cluster, 'reportStats' | 'stats' | 'state' | 'nodes'>;
  readonly registry: Registry;
  /** Calls `reportSoon` of another node. @returns whether that node has reported */
  readonly ask: (node: NodeRow, key: string) => Promise<boolean>;
}

export interface SharedCount {
  readonly counted: Counted;
  /** Whether some of the other nodes could not be counted. */
  readonly stale: boolean;
}

/**
 * Statistics of the whole cluster, the same on every node: the sum of all reports. A node reports the server, virtual hosts and
 * applications once a second, and a stream when its viewers or sources change, or when another node requests it.
 */
export class SharedStatistics {
  readonly #cluster: SharedStatisticsOptions['cluster'];
  readonly #ask: SharedStatisticsOptions['ask'];
  readonly #counts: NodeCounts;
  readonly #timer = setInterval(() => this.#report(), EVERY_MS).unref();
  readonly #unlisten: () => void;
  #closed = false;
  #reporting: Promise<boolean> | undefined;
  /** Report that begins after `GATHER_MS`, when other requests may have joined. */
  #gathering: Promise<boolean> | undefined;
  /** Recent requests, by key of a stream: whether all nodes have reported it. */
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor({ cluster, registry, ask }: SharedStatisticsOptions) {
    this.#cluster = cluster;
    this.#ask = ask;
    this.#counts = new NodeCounts(registry);
    this.#unlisten = onStreamBegins(registry, (input, application) => this.#begun(input, application));
  }

  /**
   * Reports the present counts of a stream within a moment, for another node.
   * @param key of its place
   * @returns whether the report was counted
   */
  reportSoon(key: string): Promise<boolean> {
    this.#counts.ask(key);
    this.#gathering ??= delay(GATHER_MS).then(() => this.#reportNow());
    return this.#gathering;
  }

  /** Statistics of a place: present ones of this node, and those that the others have reported. */
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
    // a silent node cannot report
    const reporting = nodes.filter(({ state }) => state !== 'silent');
    const asking = Promise.all(reporting.map((node) => this.#ask(node, key)))
      .then((all) => all.length === nodes.length && all.every(Boolean))
      .finally(() => setTimeout(() => this.#asked.delete(key), FRESH_MS).unref());
    this.#asked.set(key, asking);
    return asking;
  }

  /** Reads sums; undefined while the store is unreachable. */
  async #sums(key: string): Promise<ReadonlyMap<string, StatsSum> | undefined> {
    if (this.#cluster.state === 'degraded') return undefined;
    try {
      return await this.#cluster.stats([key]);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return undefined;
    }
  }

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

  async #reportNow(): Promise<boolean> {
    this.#gathering = undefined;
    // the running report may have been made before
    await this.#reporting;
    return await this.#report();
  }

  /** Reports, one report at a time. @returns whether all of it was counted */
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
