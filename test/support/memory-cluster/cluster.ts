import type { ExecutionContext } from 'ava';
import type { Cluster } from '#cluster';
import { Random } from '../../soak/random.ts';
import { MemoryNode, type MemoryTiming, type Surroundings } from './node.ts';
import { Network, STORE } from './network.ts';
import { MemoryStore } from './store.ts';

const TIMING: MemoryTiming = { ttl: 2000, beat: 400, command: 1000, grace: 3000 };

type Test = Pick<ExecutionContext, 'teardown' | 'passed' | 'log' | 'fail'>;

/**
 * Nodes of one cluster in this process, with a store and a network of their own that faults can be put into. What is
 * random comes from a seed: with `virtualTime` the same seed gives the same run. A test that fails names its seed;
 * KILN_SEED repeats it.
 */
export class MemoryCluster {
  readonly random: Random;
  readonly network: Network;
  readonly #around: Surroundings;
  readonly #expiry: NodeJS.Timeout;
  #flush: NodeJS.Timeout | undefined;
  #away = false;

  private constructor(seed: number, timing: MemoryTiming, onFault: (error: Error) => void) {
    this.random = new Random(seed);
    this.network = new Network(this.random);
    const store = new MemoryStore(timing, () => (this.#flush ??= setTimeout(() => this.#tell(), 1)));
    let tokens = 0;
    const newToken = (): string => `${++tokens}`;
    this.#around = { network: this.network, store, timing, peers: new Map(), deaf: new Set(), newToken, onFault };
    this.#expiry = setInterval(() => {
      if (!this.#away) store.expire();
    }, timing.beat);
  }

  /** @param seed unless KILN_SEED is set */
  static create(t: Test, seed: number, timing = TIMING): MemoryCluster {
    const used = Number(process.env.KILN_SEED ?? seed);
    const cluster = new MemoryCluster(used, timing, (error) => t.fail(error.stack));
    t.teardown(async () => {
      if (!t.passed) t.log(`seed ${used}: KILN_SEED=${used} repeats it`);
      await cluster.#close();
    });
    return cluster;
  }

  /** A node that has joined. One with the same id is replaced. */
  async open(id: string): Promise<Cluster> {
    const node = new MemoryNode(id, this.#around);
    this.#around.peers.set(id, node);
    node.describe({ load: 0, full: false, info: {} });
    await node.beat();
    await node.config.sync();
    return node;
  }

  /** A node ends without a word. */
  kill(id: string): void {
    this.#around.peers.get(id)?.kill();
  }

  /** A node stands still: it hears nothing and says nothing, and its leases run out meanwhile. */
  pause(id: string): void {
    this.network.pause(id);
  }

  resume(id: string): void {
    this.network.resume(id);
  }

  /** No node reaches the store; with `ids` only those do not. */
  cutStore(ids: readonly string[] = [...this.#around.peers.keys()]): void {
    this.#away = ids.length === this.#around.peers.size;
    this.network.cut([STORE], ids);
  }

  /** Nodes on both sides do not reach each other. */
  split(some: readonly string[], others: readonly string[]): void {
    this.network.cut(some, others);
  }

  /** A node does not hear of changes of the configuration: it knows them when it asks. */
  deafen(id: string): void {
    this.#around.deaf.add(id);
  }

  /** All ways are open again, and nothing is lost. */
  heal(): void {
    this.#around.deaf.clear();
    if (this.#away) this.#around.store.prolong();
    this.#away = false;
    this.network.heal();
  }

  /** The store has lost everything. */
  emptyStore(): void {
    this.#around.store.empty();
  }

  #tell(): void {
    this.#flush = undefined;
    const view = this.#around.store.view();
    for (const [id, node] of this.#around.peers) this.network.send(STORE, id, () => node.see(view));
  }

  async #close(): Promise<void> {
    this.heal();
    for (const id of [...this.#around.peers.keys()]) {
      if (this.network.paused(id)) this.network.resume(id);
    }
    await Promise.all([...this.#around.peers.values()].map((node) => node.close()));
    clearInterval(this.#expiry);
    clearTimeout(this.#flush);
  }
}
