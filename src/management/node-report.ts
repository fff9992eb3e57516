import type { Cluster, Json, NodeRow } from '#cluster';
import { isSameConfig, type ConfigHashes } from '../config/config-hash.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { NodeLimits, type Limits } from './node-limits.ts';
import { LoadMeter } from './own-load.ts';

const EVERY_MS = 1000;
const NONE: Limits = { load: 0, bitrate: 0, viewers: 0 };

export interface NodeFacts {
  readonly version: string;
  readonly addresses: { readonly [module: string]: readonly string[] };
  /** URL of this node itself: full nodes redirect viewers there. */
  readonly publicUrl?: string | undefined;
  /** Hashes that show which nodes have the same Server.xml. */
  readonly configHashes: ConfigHashes;
}

export interface NodeReportOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly facts: NodeFacts;
  /** Undefined: the node is never full. */
  readonly limits?: Limits | undefined;
  readonly log: Logger;
}

/** Reports this node's state to the cluster once a second, and logs which nodes were started with another Server.xml. */
export class NodeReport {
  readonly #options: NodeReportOptions;
  readonly #meter = new LoadMeter();
  readonly #limits: NodeLimits;
  #sentBytes: number;
  #at = performance.now();
  #others: ReadonlySet<string> = new Set();
  /** Nodes that were logged, by incarnation and id. */
  #reported: ReadonlySet<string> = new Set();
  readonly #timer = setInterval(() => this.tell(), EVERY_MS).unref();

  constructor(options: NodeReportOptions) {
    this.#options = options;
    this.#limits = new NodeLimits(options.limits ?? NONE);
    this.#sentBytes = options.registry.sentBytes;
    this.tell();
  }

  tell(): void {
    const { cluster, registry, facts, log } = this.#options;
    const { version, addresses, publicUrl, configHashes } = facts;
    const info: { [key: string]: Json } = {
      version,
      addresses,
      ...(publicUrl !== undefined && { publicUrl }),
      streams: streams(registry),
      sessions: registry.counters.totalConnections,
      ...configHashes,
    };
    const load = this.#measure();
    const before = this.full;
    this.#limits.add({ load, bitrate: this.#bitrate(), viewers: registry.counters.totalConnections });
    if (this.full !== undefined && before === undefined)
      log.warn({ event: 'node.full' }, `this node is full: ${this.full}`);
    if (this.full === undefined && before !== undefined) log.info({ event: 'node.room' }, 'this node has room again');
    cluster.describe({ load, full: this.full !== undefined, info });
    this.#compare(cluster.nodes(), configHashes);
    this.#follow(cluster.nodes(), cluster.self.id);
  }

  get full(): string | undefined {
    return this.#limits.full;
  }

  get room(): number {
    return this.#limits.room;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #measure(): number {
    try {
      return this.#meter.measure();
    } catch (err) {
      this.#options.log.warn({ err }, 'the load of this node cannot be measured: the node counts as fully loaded');
      return 1;
    }
  }

  /** Bits per second sent since the last call. */
  #bitrate(): number {
    const { sentBytes } = this.#options.registry;
    const [before, at, now] = [this.#sentBytes, this.#at, performance.now()];
    this.#sentBytes = sentBytes;
    this.#at = now;
    return now > at ? (Math.max(0, sentBytes - before) * 8000) / (now - at) : 0;
  }

  #follow(rows: readonly NodeRow[], own: string): void {
    const { log } = this.#options;
    const ids = rows.filter(({ id, state }) => state !== 'lost' && id !== own).map(({ id }) => id);
    const others = new Set(ids);
    for (const node of others)
      if (!this.#others.has(node)) log.info({ event: 'node.joined', node }, `node ${node} has joined the cluster`);
    for (const node of this.#others)
      if (!others.has(node)) log.info({ event: 'node.left', node }, `node ${node} has left the cluster`);
    this.#others = others;
  }

  #compare(rows: readonly NodeRow[], own: ConfigHashes): void {
    const differing = new Set<string>();
    for (const { id, incarnation, state, info } of rows) {
      if (state === 'lost' || info.configHash === undefined || isSameConfig(info, own)) continue;
      const which = `${incarnation} ${id}`;
      if (!this.#reported.has(which))
        this.#options.log.warn({ node: id }, 'a node of the cluster was started with another Server.xml than this one');
      differing.add(which);
    }
    this.#reported = differing;
  }
}

function streams(registry: Registry): number {
  let count = 0;
  for (const { applications } of registry.vhosts.values()) {
    for (const application of applications.values()) count += [...application.streams()].length;
  }
  return count;
}
