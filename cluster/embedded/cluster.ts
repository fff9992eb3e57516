import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { ConfigCopy, type ConfigCopyOptions } from '../config-copy.ts';
import { NoNodeError, UnreachableError } from '../errors.ts';
import { Faults } from '../faults.ts';
import { incarnate } from '../identity.ts';
import type {
  Claim,
  ClaimOptions,
  Cluster,
  ClusterEvents,
  Json,
  NodeDescription,
  NodeIdentity,
  NodeRow,
  Owner,
  OwnerChange,
  PeerResponse,
  StatsRow,
  StatsSum,
} from '../types.ts';
import { EmbeddedClaims } from './claims.ts';
import { EmbeddedConfig } from './config.ts';
import { Locks } from './locks.ts';
import { EmbeddedRecords } from './records.ts';
import { EmbeddedStats } from './stats.ts';

export interface EmbeddedOptions extends ConfigCopyOptions {
  readonly id: string;
}

/**
 * Opens a node that runs alone.
 * @throws StorageError when the file cannot be locked or read
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Cluster> {
  return new EmbeddedCluster(options, await ConfigCopy.open(options));
}

class EmbeddedCluster implements Cluster {
  readonly self: NodeIdentity;
  readonly state = 'connected';
  readonly events = new EventEmitter<ClusterEvents>();
  readonly config: EmbeddedConfig;
  readonly records: EmbeddedRecords;
  readonly #copy: ConfigCopy;
  readonly #claims: EmbeddedClaims;
  readonly #stats = new EmbeddedStats();
  readonly #locks = new Locks();
  readonly #since = performance.now();
  #description: NodeDescription = { load: 0, full: false, info: {} };
  #drained = false;
  #retires = false;
  #draining = false;

  constructor({ id, onFault }: EmbeddedOptions, copy: ConfigCopy) {
    this.self = incarnate(id);
    this.#copy = copy;
    const faults = new Faults(onFault);
    this.config = new EmbeddedConfig(copy, (error) => faults.report(error));
    this.#claims = new EmbeddedClaims(this.self);
    this.records = new EmbeddedRecords(this.self.incarnation);
  }

  get draining(): boolean {
    return this.#draining;
  }

  readonly rejected = { entries: 0, rows: 0, certificates: 0 };

  stores(): readonly [] {
    return [];
  }

  nodes(): readonly NodeRow[] {
    const uptimeMs = Math.round(performance.now() - this.#since);
    const state = this.#draining ? 'draining' : 'ready';
    return [{ ...this.self, ...this.#description, address: undefined, state, uptimeMs, silentMs: 0 }];
  }

  describe(description: NodeDescription): void {
    const before = this.#description;
    this.#description = description;
    if (!isDeepStrictEqual(before, description)) this.events.emit('nodes');
  }

  retire(): Promise<void> {
    this.#retires = true;
    this.#tellDraining();
    return Promise.resolve();
  }

  drain(id: string): Promise<void> {
    return this.#setDraining(id, true);
  }

  undrain(id: string): Promise<void> {
    return this.#setDraining(id, false);
  }

  async claim(key: string, meta: Json, options: ClaimOptions): Promise<Claim> {
    return this.#claims.claim(key, meta, options);
  }

  get held(): number {
    return this.#claims.held;
  }

  async ownerOf(key: string): Promise<Owner | undefined> {
    return this.#claims.ownerOf(key);
  }

  async list(path: string): Promise<ReadonlyMap<string, Owner>> {
    return this.#claims.list(path);
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#claims.watch(path, listener);
  }

  withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#locks.run(key, fn);
  }

  async reportStats(rows: readonly StatsRow[]): Promise<boolean> {
    this.#stats.report(rows);
    return true;
  }

  async stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>> {
    return this.#stats.sums(keys);
  }

  /** Does nothing: there are no other nodes. */
  serve(): void {}

  async forward(to: NodeIdentity): Promise<PeerResponse> {
    throw new UnreachableError(`node ${to.id} is unknown: this node runs alone`);
  }

  async lives({ id, incarnation }: NodeIdentity): Promise<boolean | undefined> {
    return id === this.self.id ? incarnation === this.self.incarnation : undefined;
  }

  async connect(to: NodeIdentity): Promise<Duplex> {
    throw new UnreachableError(`node ${to.id} is unknown: this node runs alone`);
  }

  async close(): Promise<void> {
    this.#claims.close();
    await this.config.settled();
    await this.#copy.close();
  }

  async #setDraining(id: string, draining: boolean): Promise<void> {
    if (id !== this.self.id) throw new NoNodeError(`there is no node ${id}`);
    this.#drained = draining;
    this.#tellDraining();
  }

  #tellDraining(): void {
    const draining = this.#drained || this.#retires;
    if (this.#draining === draining) return;
    this.#draining = draining;
    this.events.emit('drain', draining);
    this.events.emit('nodes');
  }
}
