import { EventEmitter } from 'node:events';
import { duplexPair, type Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  ConflictError,
  OutcomeUnknownError,
  UnavailableError,
  UnreachableError,
  type Claim,
  type ClaimOptions,
  type Cluster,
  type ClusterEvents,
  type ClusterState,
  type Json,
  type NodeDescription,
  type NodeIdentity,
  type NodeRow,
  type Owner,
  type OwnerChange,
  type PeerHandler,
  type PeerRequest,
  type PeerResponse,
  type PeerStreamHandler,
  type RecordStore,
  type StatsRow,
  type StatsSum,
} from '#cluster';
import { isBelow } from '../../../cluster/keys.ts';
import { Watchers } from '../../../cluster/watchers.ts';
import { MemoryConfig } from './config.ts';
import { copied, MemoryLease, type LeaseKeeper } from './lease.ts';
import { CutError, SilenceError, STORE, type Network } from './network.ts';
import { saysOther, type Held, type MemoryStore, type NodeEntry, type View } from './store.ts';

export interface MemoryTiming {
  /** How long a node's leases outlast its last answered beat. */
  readonly ttl: number;
  readonly beat: number;
  /** The longest that the store is waited for. */
  readonly command: number;
  /** How long a store that was emptied serves previous holders only. */
  readonly grace: number;
}

/** What the nodes of one cluster in memory have in common. */
export interface Surroundings {
  readonly network: Network;
  readonly store: MemoryStore;
  readonly timing: MemoryTiming;
  readonly peers: Map<string, MemoryNode>;
  /** Ids of nodes that do not hear of changes of the configuration. */
  readonly deaf: Set<string>;
  /** Names claims and locks, and lives of nodes. */
  readonly newToken: () => string;
  readonly onFault: (error: Error) => void;
}

/** Whichever incarnation of a node is there. */
const ANY = '';
/** How often one asks again for a lock that another has. */
const LOCK_EVERY_MS = 5;
const LOCK_WAIT_MS = 30_000;

/** A node of a cluster in memory. */
export class MemoryNode implements Cluster {
  readonly self: NodeIdentity;
  readonly events = new EventEmitter<ClusterEvents>();
  readonly config: MemoryConfig;
  readonly records: RecordStore;
  readonly #around: Surroundings;
  readonly #watchers = new Watchers();
  readonly #leases = new Set<MemoryLease>();
  readonly #beating: NodeJS.Timeout;
  #givenUp: string[] = [];
  #view: View = { epoch: 0, version: 0, claims: new Map(), nodes: new Map(), revision: 0 };
  #description: NodeDescription = { load: 0, full: true, info: {} };
  #state: ClusterState = 'connected';
  #retires = false;
  #draining = false;
  #closed = false;
  /** Until when the store takes this node for alive, as far as it knows, on the monotonic clock. */
  #aliveUntil = 0;
  /** Until when it has promised others to claim nothing. */
  #promised = 0;
  #handler: PeerHandler | undefined;
  #streams: PeerStreamHandler | undefined;

  constructor(id: string, around: Surroundings) {
    this.#around = around;
    this.self = { id, incarnation: around.newToken() };
    const { store } = around;
    const { incarnation } = this.self;
    const ask = this.#ask.bind(this);
    this.records = {
      put: (records) => ask(() => store.records.put(incarnation, records)),
      finish: (records) => ask(() => store.records.finish(incarnation, records)),
      pages: async function* () {
        yield await ask(() => store.records.list());
      },
    };
    this.config = new MemoryConfig(
      {
        pull: () => this.#ask(() => store.config),
        write: async (changes, expected) => {
          while (!(await this.#ask(() => store.write(changes, expected)))) await this.#afterBeat();
          return await this.#ask(() => store.config);
        },
      },
      around.onFault,
    );
    this.#beating = setInterval(() => {
      if (!around.network.paused(id)) void this.beat();
    }, around.timing.beat);
  }

  get state(): ClusterState {
    return this.#state;
  }

  get draining(): boolean {
    return this.#draining;
  }

  readonly rejected = { entries: 0, rows: 0, certificates: 0 };
  get held(): number {
    return this.#leases.size;
  }

  stores(): readonly [] {
    return [];
  }

  nodes(): readonly NodeRow[] {
    const now = performance.now();
    return [...this.#view.nodes.values()].map((node) => ({
      ...row(node),
      state: node.lost ? 'lost' : node.retires || node.drained ? 'draining' : 'ready',
      uptimeMs: now - node.since,
      silentMs: now - node.seen,
    }));
  }

  describe(description: NodeDescription): void {
    this.#description = description;
  }

  async retire(): Promise<void> {
    this.#retires = true;
    this.#tellDraining();
    await this.beat();
  }

  async drain(id: string): Promise<void> {
    await this.#ask(() => this.#around.store.drain(id, true));
  }

  async undrain(id: string): Promise<void> {
    await this.#ask(() => this.#around.store.drain(id, false));
  }

  async claim(key: string, given: Json, options: ClaimOptions): Promise<Claim> {
    const meta = copied(given);
    for (;;) {
      const token = this.#around.newToken();
      if (this.#closed) throw new UnavailableError('this node has left');
      const promised = this.#promised - performance.now();
      if (promised > 0 && this.#state === 'connected') await delay(promised);
      const answer = await this.#claim(key, token, meta, options);
      if (answer !== undefined) return answer;
      await this.#afterBeat();
    }
  }

  async ownerOf(key: string): Promise<Owner | undefined> {
    return (await this.#claims()).get(key)?.owner;
  }

  async list(path: string): Promise<ReadonlyMap<string, Owner>> {
    return owners(await this.#claims(), path);
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#watchers.add(path, owners(this.#view.claims, path), listener);
  }

  async withLock<T>(key: string, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { store, timing } = this.#around;
    const token = this.#around.newToken();
    const latest = performance.now() + LOCK_WAIT_MS;
    let sent = performance.now();
    while (!(await this.#ask(() => store.lock(key, token)))) {
      if (performance.now() > latest) throw new ConflictError(`${key} is locked for too long`);
      await delay(LOCK_EVERY_MS);
      sent = performance.now();
    }
    const alone = new AbortController();
    let until = sent + timing.ttl;
    const renewal = setInterval(() => {
      const at = performance.now();
      if (at >= until) alone.abort(new ConflictError(`the lock of ${key} was lost`));
      this.#ask(() => store.lock(key, token)).then(
        (had) => (had ? (until = at + timing.ttl) : alone.abort(new ConflictError(`the lock of ${key} was lost`))),
        () => undefined,
      );
    }, timing.beat);
    try {
      return await fn(alone.signal);
    } finally {
      clearInterval(renewal);
      await this.#ask(() => store.unlock(key, token)).catch(() => undefined);
    }
  }

  async reportStats(rows: readonly StatsRow[]): Promise<boolean> {
    return await this.#ask(() => this.#around.store.stats.report(this.self, rows)).then(
      () => true,
      () => false,
    );
  }

  async stats(keys: readonly string[]): Promise<ReadonlyMap<string, StatsSum>> {
    return await this.#ask(() => this.#around.store.stats.sums(keys, this.self));
  }

  serve(handler: PeerHandler, streams?: PeerStreamHandler): void {
    this.#handler = handler;
    this.#streams = streams;
  }

  async forward(to: NodeIdentity, request: PeerRequest, timeoutMs: number): Promise<PeerResponse> {
    return await this.#call(
      to,
      (peer) => {
        if (peer.#handler === undefined) throw new UnreachableError(`${to.id} serves nobody`);
        return peer.#handler(request, this.self);
      },
      timeoutMs,
    );
  }

  async lives(node: NodeIdentity): Promise<boolean | undefined> {
    if (!this.#view.nodes.has(node.id)) return undefined;
    return await this.#call(node, () => true, this.#around.timing.command).catch((error: Error) => {
      if (error instanceof UnreachableError) return error.lives;
      if (error instanceof OutcomeUnknownError) return undefined;
      throw error;
    });
  }

  async connect(to: NodeIdentity, path: string, timeoutMs: number): Promise<Duplex> {
    const stream = await this.#call(
      to,
      (peer) => {
        if (peer.#streams === undefined) throw new UnreachableError(`${to.id} does not accept streams`);
        const [near, far] = duplexPair();
        const undo = this.#around.network.onCut(() => {
          if (this.#around.network.reaches(this.self.id, to.id)) return;
          for (const end of [near, far]) end.destroy();
        });
        near.on('close', undo);
        peer.#streams(far, path, this.self);
        return near;
      },
      timeoutMs,
    ).catch((error: Error) => {
      throw error instanceof OutcomeUnknownError ? new UnreachableError(error.message) : error;
    });
    return stream;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    const leaving = this.#ask(() => this.#around.store.leave(this.self));
    this.#stop();
    for (const lease of this.#leases) lease.end();
    this.#leases.clear();
    await leaving.catch(() => undefined);
  }

  /** It is gone without a word, as by SIGKILL: what it ran hears nothing, and has no valid lease. */
  kill(): void {
    this.#stop();
    for (const lease of this.#leases) lease.end();
  }

  /** Tells the store that it lives, with what it holds. */
  async beat(): Promise<void> {
    if (this.#closed) return;
    const { store, timing } = this.#around;
    const sent = performance.now();
    this.#expire();
    const leases = [...this.#leases].filter(({ ended }) => !ended);
    const givenUp = this.#givenUp;
    const beat = {
      self: this.self,
      description: this.#description,
      retires: this.#retires,
      leases: leases.map((lease) => lease.renewal()),
      givenUp,
    };
    try {
      const { replaced, claims, view } = await this.#ask(() => store.beat(beat), timing.beat * 2);
      if (replaced) return this.#onReplaced();
      this.#givenUp = this.#givenUp.filter((token) => !givenUp.includes(token));
      this.#aliveUntil = Math.max(this.#aliveUntil, sent + timing.ttl);
      for (const lease of leases) {
        const held = claims.get(lease.token);
        if (held?.token !== lease.token || lease.ended) continue;
        lease.confirm(held);
        lease.extend(sent + timing.ttl);
      }
      this.#setState('connected');
      this.see(view);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.#setState('degraded');
      await this.#askPeers();
    }
  }

  /** The store tells what is there by now. */
  see(view: View): void {
    const before = this.#view;
    if (this.#closed || view.epoch < before.epoch || (view.epoch === before.epoch && view.version < before.version))
      return;
    this.#view = view;
    if (before.epoch !== 0 && view.epoch !== before.epoch) this.events.emit('emptied');
    this.#watchers.notify(changes(before.claims, view.claims));
    for (const lease of this.#leases) {
      const held = view.claims.get(lease.key);
      if (held !== undefined && held.token !== lease.token) this.#lose(lease, held);
    }
    this.#tellDraining();
    const ids = new Set([...before.nodes.keys(), ...view.nodes.keys()]);
    if ([...ids].some((id) => saysOther(before.nodes.get(id), view.nodes.get(id)))) this.events.emit('nodes');
    const { state } = this.config;
    const { store, deaf } = this.#around;
    if (view.revision > state.revision) {
      if (!deaf.has(this.self.id)) void this.config.sync();
    } else if (view.epoch !== before.epoch && view.revision < state.revision) {
      this.#ask(() => store.restore(state)).catch(() => undefined);
    }
  }

  /** Another asks whether this one has no store either. If so it claims nothing for as long as a lease lasts. */
  promise(): boolean {
    if (this.#state === 'connected') return false;
    this.#promised = performance.now() + this.#around.timing.ttl;
    return true;
  }

  async #claim(key: string, token: string, meta: Json, options: ClaimOptions): Promise<Claim | undefined> {
    const { store, timing } = this.#around;
    const promised = this.#promised;
    const longest = timing.command + (options.take ? timing.ttl : 0);
    try {
      const answer = await this.#ask(async () => {
        const claim = store.claim(this.self, key, token, meta, options);
        if (claim?.before === undefined) return claim;
        await store.stopped(claim.before);
        const now = store.view().claims.get(key);
        if (now?.token === token) return claim;
        store.yielded(token);
        return now === undefined ? undefined : { ...claim, held: now };
      }, longest);
      if (answer === undefined) return undefined;
      const { held, inherited } = answer;
      if (held.token !== token) return { owner: held.owner };
      if (this.#promised !== promised) {
        // others rely on it that nothing is claimed here
        this.#givenUp.push(token);
        return undefined;
      }
      return this.#hold({
        key,
        token,
        meta,
        inherited,
        fence: held.owner.fence,
        options,
        validUntil: this.#aliveUntil,
      });
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      if (!options.take) this.#givenUp.push(token);
      if (options.silence === 'stop') throw error;
      return await this.#claimWithoutStore(key, meta, options, error);
    }
  }

  /** Of peers that can be reached none has the key. */
  async #claimWithoutStore(key: string, meta: Json, options: ClaimOptions, error: Error): Promise<Claim> {
    const { timing } = this.#around;
    for (const lease of this.#leases) {
      if (lease.key === key && !lease.ended) return { owner: { ...this.self, fence: lease.fence, meta: lease.meta } };
    }
    const sent = performance.now();
    const asked = await Promise.allSettled(
      this.#livePeers().map(({ id }) =>
        this.#call({ id, incarnation: ANY }, (other) => other.#ownerWithoutStore(key), timing.command),
      ),
    );
    const answers = asked.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const owner = answers.find((answer) => answer !== 'connected' && answer !== 'free');
    if (typeof owner === 'object') return { owner };
    if (answers.includes('connected')) throw error;
    const token = this.#around.newToken();
    return this.#hold({ key, token, meta, inherited: undefined, fence: 0, options, validUntil: sent + timing.ttl });
  }

  #ownerWithoutStore(key: string): Owner | 'connected' | 'free' {
    const lease = [...this.#leases].find((own) => own.key === key && !own.ended);
    if (lease !== undefined) return { ...this.self, fence: lease.fence, meta: lease.meta };
    return this.promise() ? 'free' : 'connected';
  }

  #hold(start: ConstructorParameters<typeof MemoryLease>[0]): Claim {
    const { store } = this.#around;
    const keeper: LeaseKeeper = {
      update: (lease) => this.#ask(() => store.update(lease.key, lease.token, lease.meta)),
      keep: (lease, value) => this.#ask(() => store.keep(lease.key, lease.token, value)),
      release: async (lease) => {
        this.#leases.delete(lease);
        this.#givenUp.push(lease.token);
        await this.#ask(() => store.yielded(lease.token)).catch(() => undefined);
      },
    };
    const lease = new MemoryLease(start, keeper);
    this.#leases.add(lease);
    const seen = this.#view.claims.get(lease.key);
    if (seen !== undefined && seen.token !== lease.token && seen.owner.fence > lease.fence) this.#lose(lease, seen);
    return { lease };
  }

  #lose(lease: MemoryLease, held: Held): void {
    this.#leases.delete(lease);
    lease.lose(`${lease.key} is held by ${held.owner.id}`, held.owner);
    this.#ask(() => this.#around.store.yielded(lease.token)).catch(() => this.#givenUp.push(lease.token));
  }

  /** Leases that must not outlast the silence of the store are lost. */
  #expire(): void {
    for (const lease of this.#leases) {
      if (lease.ended) this.#leases.delete(lease);
      else if (lease.options.silence === 'stop' && performance.now() >= lease.validUntil) {
        this.#leases.delete(lease);
        this.#givenUp.push(lease.token);
        lease.lose(`the lease of ${lease.key} could not be renewed in time`);
      }
    }
  }

  /**
   * Without the store leases go on only where no other node has it either. One that was lost need not answer, but what it
   * says counts: it may be back, and have claimed something, before this node has heard of it.
   */
  async #askPeers(): Promise<void> {
    const { timing } = this.#around;
    const sent = performance.now();
    const live = new Set(this.#livePeers());
    const others = [...this.#view.nodes.values()].filter(({ id }) => id !== this.self.id);
    const answers = await Promise.all(
      others.map((peer) =>
        this.#call({ id: peer.id, incarnation: ANY }, (other) => other.promise(), timing.command).catch(
          () => !live.has(peer),
        ),
      ),
    );
    if (!answers.every(Boolean) || this.#state === 'connected') return;
    for (const lease of this.#leases) {
      if (lease.valid) lease.extend(sent + timing.ttl);
    }
  }

  /** Others that lived when the store was heard of last. */
  #livePeers(): NodeEntry[] {
    const heard = this.#aliveUntil - this.#around.timing.ttl;
    return [...this.#view.nodes.values()].filter(
      ({ id, until, lost }) => id !== this.self.id && !lost && until > heard,
    );
  }

  async #claims(): Promise<ReadonlyMap<string, Held>> {
    try {
      const { store } = this.#around;
      const view = await this.#ask(() => {
        store.expire();
        return store.view();
      });
      this.see(view);
      return view.claims;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return this.#view.claims;
    }
  }

  /** @throws UnavailableError */
  async #ask<T>(answer: () => Promise<T> | T, timeoutMs = this.#around.timing.command): Promise<T> {
    if (this.#closed) throw new UnavailableError('this node has left');
    try {
      return await this.#around.network.call(this.self.id, STORE, answer, timeoutMs);
    } catch (error) {
      if (error instanceof CutError) throw new UnavailableError(error.message, { cause: error });
      if (error instanceof SilenceError) throw new UnavailableError(error.message, { cause: error, mayBeDone: true });
      throw error;
    }
  }

  /** @throws UnreachableError, OutcomeUnknownError */
  async #call<T>(to: NodeIdentity, answer: (peer: MemoryNode) => Promise<T> | T, timeoutMs: number): Promise<T> {
    const { network, peers } = this.#around;
    try {
      return await network.call(
        this.self.id,
        to.id,
        () => {
          const peer = peers.get(to.id);
          if (peer === undefined || peer.#closed) throw new UnreachableError(`there is no node ${to.id}`);
          if (![peer.self.incarnation, ANY].includes(to.incarnation))
            throw new UnreachableError(`there is no such life of a node ${to.id}`, { lives: false });
          return answer(peer);
        },
        timeoutMs,
      );
    } catch (error) {
      if (error instanceof CutError) throw new UnreachableError(error.message, { cause: error });
      if (error instanceof SilenceError) throw new OutcomeUnknownError(error.message, { cause: error });
      throw error;
    }
  }

  async #afterBeat(): Promise<void> {
    await delay(this.#around.timing.beat);
  }

  #setState(state: ClusterState): void {
    if (this.#closed || this.#state === state) return;
    this.#state = state;
    if (state === 'degraded') this.config.unreachable();
    else void this.config.sync();
    this.events.emit('state', state);
  }

  #tellDraining(): void {
    const own = this.#view.nodes.get(this.self.id);
    const draining = this.#retires || (own?.incarnation === this.self.incarnation && own.drained);
    if (draining === this.#draining) return;
    this.#draining = draining;
    this.events.emit('drain', draining);
  }

  #onReplaced(): void {
    this.#stop();
    for (const lease of this.#leases) lease.lose('another process took the id of this node');
    this.events.emit('replaced');
  }

  #stop(): void {
    this.#closed = true;
    clearInterval(this.#beating);
    this.#watchers.close();
    if (this.#around.peers.get(this.self.id) === this) this.#around.peers.delete(this.self.id);
  }
}

function row({ id, incarnation, load, full, info }: NodeEntry) {
  return { id, incarnation, load, full, info, address: undefined };
}

function owners(claims: ReadonlyMap<string, Held>, path: string): Map<string, Owner> {
  return new Map([...claims].filter(([key]) => isBelow(key, path)).map(([key, { owner }]) => [key, owner]));
}

function changes(before: ReadonlyMap<string, Held>, now: ReadonlyMap<string, Held>): Map<string, Owner | undefined> {
  const changed = [...now].filter(([key, { owner }]) => before.get(key)?.owner !== owner);
  const gone = [...before.keys()].filter((key) => !now.has(key));
  return new Map([
    ...changed.map(([key, { owner }]) => [key, owner] as const),
    ...gone.map((key) => [key, undefined] as const),
  ]);
}
