import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { coalesced } from '../coalesce.ts';
import { ConfigCopy, type ConfigCopyOptions } from '../config-copy.ts';
import { UnavailableError } from '../errors.ts';
import { Faults } from '../faults.ts';
import { incarnate, newToken } from '../identity.ts';
import { PeerPort, type PeerPortOptions } from '../peer/port.ts';
import type {
  Claim, ClaimOptions, Cluster, ClusterEvents, ClusterState, Json, NodeDescription, NodeIdentity, NodeRow, Owner,
  OwnerChange, PeerHandler, PeerRequest, PeerResponse, PeerStreamHandler, StatsRow, StatsSum, StoreAddress,
} from '../types.ts';
import { ClaimTable } from './claim-table.ts';
import { RedisConfig } from './config.ts';
import { parseChanges, type TableReply } from './changes.ts';
import { Connection, type RedisOptions } from './connection.ts';
import { Leases } from './leases.ts';
import { RedisLocks } from './locks.ts';
import { Nodes, type Beat } from './nodes.ts';
import { Peers } from './peers.ts';
import { SCRIPTS } from './scripts.ts';
import { RedisStats } from './stats.ts';
import { timingOf, type Timing } from './timing.ts';

const ASK_AGAIN_MS = 100;

type PullReply = [epoch: string, open: number, claims: TableReply, config: TableReply];

export interface RedisClusterOptions extends ConfigCopyOptions {
  /** Of the cluster: several may share a Redis. */
  readonly name: string;
  /** Id of this node, its own in the cluster. */
  readonly id: string;
  readonly redis: RedisOptions;
  readonly port: PeerPortOptions;
  readonly timing?: Partial<Timing>;
}

/**
 * A node of a cluster that meets in Redis. It opens without Redis, too, with what it knew last.
 * @throws StorageError, and system errors when its port cannot be had
 */
export async function openRedis(options: RedisClusterOptions): Promise<Cluster> {
  const copy = await ConfigCopy.open(options);
  const cluster = new RedisCluster(options, copy);
  try {
    await cluster.start();
  } catch (error) {
    await cluster.close();
    throw error;
  }
  return cluster;
}

class RedisCluster implements Cluster {
  readonly self: NodeIdentity;
  readonly events = new EventEmitter<ClusterEvents>();
  readonly config: RedisConfig;
  readonly #timing: Timing;
  readonly #copy: ConfigCopy;
  readonly #connection: Connection;
  readonly #faults: Faults;
  readonly #table: ClaimTable;
  readonly #leases: Leases;
  readonly #nodes: Nodes;
  readonly #locks: RedisLocks;
  readonly #stats: RedisStats;
  readonly #port: PeerPort;
  readonly #peers: Peers;
  readonly #pull = coalesced(() => this.#pullNow());
  readonly #askPeers = coalesced(() => this.#askPeersNow());
  #state: ClusterState = 'degraded';
  #draining = false;
  /** Life of Redis, and whether it has everything that it should have. */
  #epoch = 0;
  #open = false;
  #replaced = false;
  /** How often the connection was lost. */
  #downs = 0;
  #closed = false;
  #pause = new AbortController();
  #running: Promise<void> | undefined;

  constructor({ name, id, redis, port, timing, onFault: tell }: RedisClusterOptions, copy: ConfigCopy) {
    this.self = incarnate(id);
    this.#timing = timingOf(timing);
    this.#copy = copy;
    const prefix = `{kiln:${encodeURIComponent(name)}}:`;
    this.#faults = new Faults(tell);
    const onFault = (error: Error): void => this.#faults.report(error);
    const connection = new Connection(redis, prefix, this.#timing.command, {
      onUp: () => this.#wake(),
      onDown: () => this.#down(),
      onMessage: (what) => this.#hear(what),
      onFault,
    });
    const common = { self: this.self, connection, timing: this.#timing, onFault };
    this.#connection = connection;
    this.#leases = new Leases({ ...common, latest: (key) => this.#table.record(key) });
    this.#table = new ClaimTable((key, record) => this.#leases.observe(key, record), onFault);
    this.#nodes = new Nodes(common);
    this.#locks = new RedisLocks(connection.client, prefix);
    this.#stats = new RedisStats(this.self, connection);
    this.config = new RedisConfig({
      connection, copy, timing: this.#timing, pull: this.#pull, isDegraded: () => this.#state === 'degraded', onFault,
    });
    this.#port = new PeerPort({ ...port, self: this.self, now: () => this.#nodes.now(), rows: () => this.#nodes.rows() });
    this.#peers = new Peers({
      self: this.self, port: this.#port, nodes: this.#nodes, timing: this.#timing,
      isDegraded: () => this.#state === 'degraded', holds: (key) => this.#knowsHolder(key),
      superseding: (held, by) => this.#leases.superseding(held, by),
    });
  }

  /** Resolves when Redis has answered once, or did not in time. */
  async start(): Promise<void> {
    this.#nodes.address = await this.#port.listen((request, from) => this.#peers.answer(request, from));
    const first = new Promise<void>((resolve) => this.events.once('state', () => resolve()));
    this.#running = this.#run();
    await Promise.race([first, delay(2 * this.#timing.command)]);
  }

  get state(): ClusterState {
    return this.#state;
  }

  get draining(): boolean {
    return this.#draining;
  }

  stores(): readonly StoreAddress[] {
    return this.#connection.addresses;
  }

  nodes(): readonly NodeRow[] {
    return this.#nodes.rows();
  }

  describe(description: NodeDescription): void {
    this.#nodes.describe(description);
  }

  drain(id: string): Promise<void> {
    return this.#nodes.setDraining(id, true);
  }

  undrain(id: string): Promise<void> {
    return this.#nodes.setDraining(id, false);
  }

  async claim(key: string, meta: Json, options: ClaimOptions): Promise<Claim> {
    const end = performance.now() + 2 * (this.#timing.grace + this.#timing.ttl);
    for (;;) {
      try {
        const { promised, mayClaim } = this.#peers;
        if (mayClaim) {
          const claim = await this.#leases.claim(key, newToken(), meta, options, () => this.#peers.promised === promised);
          if (claim !== undefined) return claim;
        } else if (this.#state === 'degraded') {
          throw new UnavailableError('Redis cannot be reached');
        }
      } catch (error) {
        if (options.silence === 'stop' || !(error instanceof UnavailableError)) throw error;
        return await this.#claimAmongPeers(key, meta, options, error);
      }
      if (performance.now() > end) throw new UnavailableError('those who have held keys come first, and have not come yet');
      await delay(ASK_AGAIN_MS);
    }
  }

  async ownerOf(key: string): Promise<Owner | undefined> {
    await this.#pull().catch(() => undefined);
    return this.#table.ownerOf(key);
  }

  async list(path: string): Promise<ReadonlyMap<string, Owner>> {
    await this.#pull().catch(() => undefined);
    return this.#table.list(path);
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#table.watch(path, listener);
  }

  withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#locks.run(key, fn);
  }

  async reportStats(rows: readonly StatsRow[]): Promise<void> {
    if (this.#state === 'degraded') return;
    // counters only grow: what could not be told now is told with the next report
    await this.#stats.report(rows, this.#epoch).catch((error: Error) => this.#faults.report(error));
  }

  stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>> {
    return this.#stats.sums(keys);
  }

  serve(handler: PeerHandler, streams?: PeerStreamHandler): void {
    this.#peers.serve(handler);
    this.#port.serveStreams(streams);
  }

  forward(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse> {
    return this.#port.call(to, request, timeoutMs);
  }

  connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex> {
    return this.#port.connect(to, path, timeoutMs);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
    await this.#running;
    this.#table.close();
    await this.#leases.close().catch(() => undefined);
    await this.#nodes.leave().catch(() => undefined);
    this.#connection.close();
    await this.#port.close();
    await this.config.settled();
    await this.#copy.close();
  }

  async #run(): Promise<void> {
    // before the connection is there a beat would only tell that it is not
    await this.#rest(this.#timing.command);
    while (!this.#closed) {
      this.#pause = new AbortController();
      await this.#beat();
      await this.#rest(this.#timing.beat);
    }
  }

  async #rest(forMs: number): Promise<void> {
    await delay(forMs, undefined, { signal: this.#pause.signal }).catch(() => undefined);
  }

  /** What happens every second: this node is heard of, hears what changed, and renews what it holds. */
  async #beat(): Promise<void> {
    const downs = this.#downs;
    try {
      this.#connection.probe();
      const beat = await this.#nodes.beat(this.config.position);
      // before anything that takes its time
      await this.#leases.renew();
      await this.#follow(beat);
      // the connection may be gone since it was answered
      if (!this.#closed && downs === this.#downs) this.#setState('connected');
    } catch (error) {
      this.#setState('degraded');
      this.#faults.report(error as Error);
      if (!(error instanceof UnavailableError)) return;
      if (!this.#closed && this.#leases.atStake) this.#askPeers().catch((fault: Error) => this.#faults.report(fault));
    }
  }

  async #follow(beat: Beat): Promise<void> {
    if (beat.replaced && !this.#replaced) this.events.emit('replaced');
    this.#replaced = beat.replaced;
    if (beat.wanted) await this.config.offer(beat.epoch);
    const moved = beat.epoch !== this.#epoch || beat.open !== this.#open || this.#state === 'degraded' ||
      beat.claimsRevision !== this.#table.revision || beat.configRevision !== this.config.position.revision;
    if (this.#state === 'degraded') this.#table.forget();
    if (moved) await this.#pull();
    this.#followDrain();
  }

  #followDrain(): void {
    const { draining } = this.#nodes;
    if (draining === this.#draining) return;
    this.#draining = draining;
    this.events.emit('drain', draining);
  }

  async #pullNow(): Promise<void> {
    const { epoch, revision } = this.config.position;
    const args = [epoch, this.#table.revision, revision];
    const [id, open, claims, config] = (await this.#connection.run(SCRIPTS.pull, args)) as PullReply;
    this.#epoch = Number(id);
    this.#open = open === 1;
    this.#table.apply(parseChanges(claims), this.#open);
    if (this.#open) this.config.apply(this.#epoch, parseChanges(config));
  }

  /** A holder goes on without the store as long as nobody else has it either. */
  async #askPeersNow(): Promise<void> {
    const asked = performance.now();
    const superseded = await this.#peers.allWithoutStore(this.#leases.held());
    if (superseded !== undefined) this.#leases.extendAll(asked, superseded);
  }

  async #claimAmongPeers(key: string, meta: Json, options: ClaimOptions, cause: Error): Promise<Claim> {
    if (this.#leases.holds(key)) throw new UnavailableError(`this node holds ${key}, and the store cannot be reached`, { cause });
    // held before anybody is asked: of two nodes that claim it at once neither hears that it is free
    const lease = this.#leases.holdUnconfirmed(key, newToken(), meta, options);
    if (await this.#peers.allDeny(key)) return { lease };
    await lease.release();
    throw new UnavailableError(`${key} is held elsewhere, and the store cannot be reached`, { cause });
  }

  #knowsHolder(key: string): boolean {
    return this.#leases.holds(key) || (this.#state === 'connected' && this.#table.ownerOf(key) !== undefined);
  }

  #hear(what: string): void {
    const [kind, token = ''] = what.split(' ');
    if (kind === 'yielded') this.#leases.yielded(token);
    else if (kind === 'nodes') this.#wake();
    else this.#pull().catch(() => undefined);
  }

  /** Does not wait for the next second. */
  #wake(): void {
    this.#pause.abort();
  }

  #down(): void {
    this.#downs += 1;
    this.#setState('degraded');
  }

  #setState(state: ClusterState): void {
    // that the connection ends with the node is nothing to tell
    if (state === this.#state || this.#closed) return;
    this.#state = state;
    this.events.emit('state', state);
  }
}
