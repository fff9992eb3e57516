import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { coalesced } from '../coalesce.ts';
import { ConfigCopy, type ConfigCopyOptions } from '../config-copy.ts';
import { Rejections, type Rejection } from '../rejections.ts';
import { UnavailableError } from '../errors.ts';
import { Faults } from '../faults.ts';
import { incarnate, newToken } from '../identity.ts';
import { PeerPort, type PeerPortOptions } from '../peer/port.ts';
import { atMost } from '../running-time.ts';
import type {
  Claim,
  ClaimOptions,
  Cluster,
  ClusterEvents,
  ClusterState,
  Rejected,
  Json,
  NodeDescription,
  NodeIdentity,
  NodeRow,
  Owner,
  OwnerChange,
  PeerHandler,
  PeerRequest,
  PeerResponse,
  PeerStreamHandler,
  StatsRow,
  StatsSum,
  StoreAddress,
} from '../types.ts';
import { markDead } from './node-death/mark-dead.ts';
import { ClaimTable } from './claim-table.ts';
import { RedisConfig } from './config.ts';
import { ClockWatch, type ClockReport } from './clock-watch.ts';
import { Connection, type RedisOptions } from './connection.ts';
import { Heartbeat } from './heartbeat.ts';
import { KnownPeers } from './known-peers.ts';
import { createLeasing, type Leasing } from './leases/leasing.ts';
import { RedisLocks } from './locks.ts';
import { Nodes } from './nodes.ts';
import { DeathDetector } from './node-death/death-detector.ts';
import { SilentNodes } from './node-death/silent-nodes.ts';
import { Outage, type StoreReport } from './outage.ts';
import { Peers } from './peers.ts';
import { RedisRecords } from './records.ts';
import { Signatures } from './signatures.ts';
import { StoreSync } from './store-sync.ts';
import { settingsReport, type StoreSettings } from './settings.ts';
import { RedisStats } from './stats.ts';
import { timingOf, type Timing } from './timing.ts';

export interface RedisClusterOptions extends ConfigCopyOptions {
  /** Name of the cluster: several may share a Redis. */
  readonly name: string;
  /** Id of this node, its own in the cluster. */
  readonly id: string;
  readonly redis: RedisOptions;
  readonly port: PeerPortOptions;
  readonly timing?: Partial<Timing>;
  /** File that keeps who the other nodes are, for a start without Redis; undefined keeps it nowhere. */
  readonly nodesFile?: string;
  /** Called when Redis becomes unreachable, and reachable again. Failures in between are not reported to `onFault`. */
  readonly onStore?: (report: StoreReport) => void;
  /** Called once for each entry or node that is rejected because it is not proved to come from the cluster. */
  readonly onRejection?: (report: Rejection) => void;
  /** Called when this node's clock begins or ceases to differ from that of Redis by more than half a second. */
  readonly onClock?: (report: ClockReport) => void;
  /** Called for each command to Redis: the seconds until its answer, or undefined when there was none that can be used. */
  readonly onCommand?: (seconds: number | undefined) => void;
  /** Called for each beat, with whether Redis has taken it. */
  readonly onBeat?: (taken: boolean) => void;
  /** Called with the settings of Redis at the first connection, and when they differ at a later one. */
  readonly onSettings?: (settings: StoreSettings) => void;
  /** Called when a node was marked dead; for this node itself when the others have marked it dead. */
  readonly onMarkedDead?: (node: NodeIdentity) => void;
}

/**
 * A node of a cluster that meets in Redis. It opens without Redis, too, with what it knew last.
 * @throws StorageError, and system errors when its port cannot be had
 */
export async function openRedis(options: RedisClusterOptions): Promise<Cluster> {
  const copy = await ConfigCopy.open(options);
  const known = await KnownPeers.open({ ...options, file: options.nodesFile }).catch(async (error: Error) => {
    await copy.close();
    throw error;
  });
  const cluster = new RedisCluster(options, copy, known);
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
  readonly records: RedisRecords;
  readonly #timing: Timing;
  readonly #copy: ConfigCopy;
  readonly #known: KnownPeers;
  readonly #connection: Connection;
  readonly #faults: Faults;
  readonly #rejections: Rejections;
  readonly #outage: Outage;
  readonly #table: ClaimTable;
  readonly #leasing: Leasing;
  readonly #nodes: Nodes;
  readonly #locks: RedisLocks;
  readonly #stats: RedisStats;
  readonly #port: PeerPort;
  readonly #peers: Peers;
  readonly #sync: StoreSync;
  readonly #heartbeat: Heartbeat;
  readonly #deathDetector: DeathDetector;
  readonly #silentNodes: SilentNodes;
  readonly #onMarkedDead: (node: NodeIdentity) => void;
  readonly #askPeers = coalesced(() => this.#askPeersNow());
  #closed = false;

  constructor(
    {
      name,
      id,
      redis,
      port,
      timing,
      onFault: report,
      onStore = () => {},
      onRejection = () => {},
      onClock = () => {},
      onCommand = () => {},
      onBeat = () => {},
      onSettings = () => {},
      onMarkedDead = () => {},
    }: RedisClusterOptions,
    copy: ConfigCopy,
    known: KnownPeers,
  ) {
    this.self = incarnate(id);
    this.#timing = timingOf(timing);
    this.#copy = copy;
    this.#known = known;
    this.#onMarkedDead = onMarkedDead;
    const prefix = `{kiln:${encodeURIComponent(name)}}:`;
    this.#faults = new Faults(report);
    this.#rejections = new Rejections(onRejection);
    this.#outage = new Outage({ store: () => this.#connection.place, onReport: onStore });
    const onFault = (error: Error): void => this.#onFault(error);
    const reportSettings = settingsReport(() => this.#connection.client.info(), onSettings);
    const own = `alive:${encodeURIComponent(id)}:${this.self.incarnation}`;
    const connection = new Connection(redis, { prefix, own }, this.#timing.command, {
      onUp: () => {
        this.#heartbeat.wake();
        void reportSettings().catch(onFault);
      },
      onDown: (reason) => this.#heartbeat.down(reason),
      onMessage: (what) => this.#hear(what),
      onCommand,
      onFault,
    });
    const common = { self: this.self, connection, timing: this.#timing, onFault };
    const trust = { signatures: new Signatures(name, port.secrets), rejections: this.#rejections };
    this.#connection = connection;
    this.#leasing = createLeasing({
      ...common,
      latest: (key) => this.#table.record(key),
      promisedUntil: () => this.#peers.promisedUntil,
    });
    const { leases, renewal } = this.#leasing;
    this.#table = new ClaimTable((key, record) => leases.observe(key, record), onFault);
    this.#nodes = new Nodes({ ...common, ...trust, known, clock: new ClockWatch(onClock) });
    this.#locks = new RedisLocks(connection.client, prefix);
    this.#stats = new RedisStats(this.self, connection);
    this.records = new RedisRecords(this.self.incarnation, connection, onFault);
    this.config = new RedisConfig({
      connection,
      copy,
      timing: this.#timing,
      ...trust,
      pull: () => this.#sync.pull(),
      opened: () => this.#sync.opened(),
      isDegraded: () => this.state === 'degraded',
      onFault,
    });
    const followed = { ...common, events: this.events, nodes: this.#nodes, leases, config: this.config };
    this.#sync = new StoreSync({ ...followed, table: this.#table });
    this.#heartbeat = new Heartbeat({
      ...followed,
      renewal,
      sync: this.#sync,
      outage: this.#outage,
      onAtStake: () => void this.#askPeers().catch(onFault),
      onAsk: (node) => this.#silentNodes.ask(node),
      onConfirmed: () => void this.#peers.confirm().catch(onFault),
      onMarkedDead: () => onMarkedDead(this.self),
      onBeat,
    });
    this.#port = new PeerPort({
      ...port,
      self: this.self,
      now: () => this.#nodes.now(),
      addressOf: (id) => this.#nodes.addressOf(id),
      rejections: this.#rejections,
      onReached: (node) => this.#deathDetector.reached(node),
      onRefused: (node) => this.#deathDetector.refused(node),
      onFault,
    });
    const marking = {
      ...common,
      leases,
      onMarkedDead: (node: NodeIdentity) => this.#onDeath(node),
    };
    this.#deathDetector = new DeathDetector({
      self: this.self,
      port: this.#port,
      nodes: () => this.#nodes.rows(),
      timeoutMs: this.#timing.command,
      markDead: (node) => markDead(marking, node),
      onFault,
    });
    this.events.on('nodes', () => this.#deathDetector.follow());
    this.#peers = new Peers({
      self: this.self,
      port: this.#port,
      nodes: this.#nodes,
      timing: this.#timing,
      isDegraded: () => this.state === 'degraded',
      holds: (key) => this.#knowsHolder(key),
      laterClaims: (held, by) => leases.laterClaims(held, by),
    });
    this.#silentNodes = new SilentNodes({ peers: this.#peers, nodes: this.#nodes, onFault });
  }

  /** Resolves when Redis has answered once, or did not in time. */
  async start(): Promise<void> {
    this.#nodes.address = await this.#port.listen((request, from) => this.#peers.answer(request, from));
    const first = new Promise<void>((resolve) => this.events.once('state', () => resolve()));
    this.#heartbeat.start();
    await atMost(2 * this.#timing.command, first);
  }

  get state(): ClusterState {
    return this.#heartbeat.state;
  }

  get draining(): boolean {
    return this.#heartbeat.draining;
  }

  get rejected(): Rejected {
    return this.#rejections.counts;
  }

  get held(): number {
    return this.#leasing.leases.size;
  }

  stores(): readonly StoreAddress[] {
    return this.#connection.addresses;
  }

  nodes(): readonly NodeRow[] {
    return this.#nodes.rows();
  }

  describe(description: NodeDescription): void {
    if (this.#nodes.describe(description)) this.#heartbeat.wake();
  }

  async retire(): Promise<void> {
    this.#nodes.retire();
    await atMost(this.#timing.command, this.#heartbeat.beat());
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
        if (this.#peers.mayClaim) {
          const claim = await this.#leasing.claims.claim(key, newToken(), meta, options);
          if (claim !== undefined) return claim;
        } else if (this.state === 'degraded') {
          throw new UnavailableError('Redis cannot be reached');
        }
      } catch (error) {
        if (options.silence === 'stop' || !(error instanceof UnavailableError)) throw error;
        return await this.#claimAmongPeers(key, meta, options, error);
      }
      if (performance.now() > end)
        throw new UnavailableError(
          'Redis lost its data, and the previous owners have not all claimed their keys again yet',
        );
      await this.#sync.opened();
    }
  }

  async ownerOf(key: string): Promise<Owner | undefined> {
    await this.#sync.refresh();
    return this.#table.ownerOf(key);
  }

  async list(path: string): Promise<ReadonlyMap<string, Owner>> {
    await this.#sync.refresh();
    return this.#table.list(path);
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#table.watch(path, listener);
  }

  withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#locks.run(key, fn);
  }

  async reportStats(rows: readonly StatsRow[]): Promise<boolean> {
    if (this.state === 'degraded') return false;
    try {
      return await this.#stats.report(rows, this.#sync.epoch);
    } catch (error) {
      this.#onFault(error as Error);
      return false;
    }
  }

  stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>> {
    return this.#stats.sums(keys);
  }

  serve(handler: PeerHandler, streams?: PeerStreamHandler): void {
    this.#peers.serve(handler);
    this.#port.serveStreams(streams);
  }

  async forward(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse> {
    return await this.#port.call(to, request, await this.#meet(to, timeoutMs));
  }

  async lives(node: NodeIdentity): Promise<boolean | undefined> {
    await this.#meet(node, this.#timing.command);
    const life = await this.#peers.ask(node);
    return life === 'lives' || life === 'over' ? life === 'lives' : undefined;
  }

  async connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex> {
    return await this.#port.connect(to, path, await this.#meet(to, timeoutMs));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#deathDetector.close();
    this.#silentNodes.close();
    await this.#heartbeat.close();
    this.#table.close();
    // without Redis all that this node holds ends with its time to live
    await this.#leasing.leases.close().catch(() => undefined);
    await this.#nodes.leave().catch(() => undefined);
    this.#connection.close();
    await this.#port.close();
    await this.config.settled();
    await this.#copy.close();
    await this.#known.close();
  }

  /** Extends the leases without the store as long as no other node can reach it either. */
  async #askPeersNow(): Promise<void> {
    const asked = performance.now();
    const superseded = await this.#peers.allWithoutStore(this.#leasing.leases.held());
    if (superseded !== undefined) this.#leasing.leases.extendAll(asked, superseded);
  }

  async #claimAmongPeers(key: string, meta: Json, options: ClaimOptions, cause: Error): Promise<Claim> {
    if (this.#leasing.leases.holds(key))
      throw new UnavailableError(`this node owns ${key}, and Redis cannot be reached`, { cause });
    // held before any node is asked: of two nodes that claim it at once neither hears that it is free
    const lease = this.#leasing.claims.holdUnconfirmed(key, newToken(), meta, options);
    if (await this.#peers.allDeny(key)) return { lease };
    await lease.release();
    throw new UnavailableError(`Redis cannot be reached, and no node can confirm that ${key} is free`, {
      cause,
    });
  }

  /**
   * Beats if a node is not known yet: its first claims may be known before.
   * @returns the milliseconds that are left
   */
  async #meet({ id }: NodeIdentity, timeoutMs: number): Promise<number> {
    if (this.state !== 'connected' || this.#nodes.addressOf(id) !== undefined) return timeoutMs;
    const since = performance.now();
    await atMost(timeoutMs, this.#heartbeat.beat());
    return Math.max(1, timeoutMs - (performance.now() - since));
  }

  #onDeath(node: NodeIdentity): void {
    if (node.id !== this.self.id && this.#nodes.markDead(node)) {
      this.#onMarkedDead(node);
      this.events.emit('nodes');
    }
    // with it everybody sees what Redis has; one that lives learns that it has to stop
    this.#heartbeat.wake();
  }

  #knowsHolder(key: string): boolean {
    return this.#leasing.leases.holds(key) || (this.state === 'connected' && this.#table.ownerOf(key) !== undefined);
  }

  #onFault(error: Error): void {
    if (error instanceof UnavailableError && this.#outage.takes(error)) return;
    this.#faults.report(error);
  }

  #hear(what: string): void {
    const [kind, token = '', incarnation = ''] = what.split(' ', 3);
    if (kind === 'yielded') this.#leasing.handOver.stopped(token);
    else if (kind === 'buried') this.#onDeath({ id: decodeURIComponent(token), incarnation });
    else if (kind === 'nodes') this.#heartbeat.wake();
    else this.#sync.hear(what);
  }
}
