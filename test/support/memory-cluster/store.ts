import { isDeepStrictEqual } from 'node:util';
import {
  NoNodeError,
  type Change,
  type ClaimOptions,
  type Expectation,
  type Json,
  type NodeDescription,
  type NodeIdentity,
  type Owner,
} from '#cluster';
import { EMPTY_CONFIG, written, type ConfigState } from './config-state.ts';
import { MemoryStats } from './stats.ts';
import { RecordTable } from '../../../cluster/record-table.ts';
import { takesFrom } from '../../../cluster/timed-lease.ts';

/** A claim as the store has it. */
export interface Held {
  readonly key: string;
  /** Names this claim and no other. */
  readonly token: string;
  readonly owner: Owner;
  readonly keepMs: number;
}

/** What a node tells of a lease of its own with every beat. */
export interface Renewal {
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly meta: Json;
  readonly keepMs: number;
  readonly kept: Json | undefined;
}

export interface Beat {
  readonly self: NodeIdentity;
  readonly description: NodeDescription;
  readonly retires: boolean;
  readonly leases: readonly Renewal[];
  /** Tokens of claims that it does not hold, whatever the store says. */
  readonly givenUp: readonly string[];
}

/** A node as the store knows it. Times are of the monotonic clock, in milliseconds. */
export interface NodeEntry extends NodeIdentity, NodeDescription {
  readonly since: number;
  readonly seen: number;
  readonly until: number;
  readonly retires: boolean;
  readonly drained: boolean;
  /** It was not heard of for too long. */
  readonly lost: boolean;
}

export interface BeatAnswer {
  /** Another process has this node's id by now. */
  readonly replaced: boolean;
  /** By token: the claim as it is now, made anew or another's. */
  readonly claims: ReadonlyMap<string, Held>;
  readonly view: View;
}

/** What nodes keep a copy of. */
export interface View {
  readonly epoch: number;
  /** Grows with every change of the claims. */
  readonly version: number;
  readonly claims: ReadonlyMap<string, Held>;
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  readonly revision: number;
}

export interface StoreTiming {
  readonly ttl: number;
  readonly grace: number;
}

interface Kept {
  readonly value: Json;
  /** Infinity while somebody has the key. */
  until: number;
}

/** What the nodes of a cluster in memory share: the claims, the configuration, the sums. It answers one call at a time. */
export class MemoryStore {
  readonly #timing: StoreTiming;
  /** Called when what nodes have a copy of has changed. */
  readonly #onChange: () => void;
  #epoch = 1;
  #version = 0;
  /** Since it is empty: until then only previous holders may claim. */
  #opens = 0;
  #fence = Date.now();
  #claims = new Map<string, Held>();
  #kept = new Map<string, Kept>();
  #nodes = new Map<string, NodeEntry>();
  readonly #replaced = new Set<string>();
  #config: ConfigState = EMPTY_CONFIG;
  #stats = new MemoryStats();
  #records = new RecordTable();
  /** What to do when the holder of a claim that was taken has stopped. */
  readonly #yields = new Map<string, () => void>();
  readonly #locks = new Map<string, { readonly token: string; until: number }>();

  constructor(timing: StoreTiming, onChange: () => void) {
    this.#timing = timing;
    this.#onChange = onChange;
  }

  get config(): ConfigState {
    return this.#config;
  }

  get stats(): MemoryStats {
    return this.#stats;
  }

  get records(): RecordTable {
    return this.#records;
  }

  view(): View {
    return {
      epoch: this.#epoch,
      version: this.#version,
      claims: new Map(this.#claims),
      nodes: new Map(this.#nodes),
      revision: this.#config.revision,
    };
  }

  /** Everything is gone. */
  empty(): void {
    this.#epoch++;
    this.#opens = performance.now() + this.#timing.grace;
    this.#fence = 0;
    this.#claims.clear();
    this.#kept.clear();
    this.#nodes.clear();
    this.#locks.clear();
    this.#config = EMPTY_CONFIG;
    this.#stats = new MemoryStats();
    this.#records = new RecordTable();
    this.#changed();
  }

  /** It was away for everybody: nobody could beat. */
  prolong(): void {
    const until = performance.now() + this.#timing.ttl;
    for (const [id, node] of this.#nodes) this.#nodes.set(id, { ...node, until: Math.max(node.until, until) });
  }

  beat({ self, description, retires, leases, givenUp }: Beat): BeatAnswer {
    const now = performance.now();
    const before = this.#nodes.get(self.id);
    if (this.#replaced.has(self.incarnation)) return { replaced: true, claims: new Map(), view: this.view() };
    if (before !== undefined && before.incarnation !== self.incarnation) {
      this.#replaced.add(before.incarnation);
      this.#markDead(before);
    }
    const since = before?.incarnation === self.incarnation ? before.since : now;
    const drained = before?.drained ?? false;
    this.#nodes.set(self.id, {
      ...self,
      ...description,
      since,
      seen: now,
      until: now + this.#timing.ttl,
      retires,
      drained,
      lost: false,
    });
    if (saysOther(before, this.#nodes.get(self.id))) this.#changed();
    for (const token of givenUp) this.yielded(token);
    const claims = new Map<string, Held>();
    for (const lease of leases) claims.set(lease.token, this.#renew(self, lease));
    this.expire();
    return { replaced: false, claims, view: this.view() };
  }

  /**
   * @returns the claim, and whether another may still act on it; undefined while only previous holders may claim, and for a
   * node that has to beat first
   */
  claim(
    self: NodeIdentity,
    key: string,
    token: string,
    meta: Json,
    { take, keepMs = 0 }: ClaimOptions,
  ): { held: Held; inherited: Json | undefined; before: Held | undefined } | undefined {
    this.expire();
    const present = this.#claims.get(key);
    if (present !== undefined && !takesFrom(take, present.owner))
      return { held: present, inherited: undefined, before: undefined };
    if (performance.now() < this.#opens || !this.#lives(self)) return undefined;
    const kept = this.#kept.get(key);
    if (kept !== undefined && keepMs > 0) kept.until = Infinity;
    else if (kept?.until === Infinity) kept.until = this.#end(present?.keepMs ?? 0);
    const held = this.#make(self, { key, token, meta, keepMs });
    return { held, inherited: kept?.value, before: present };
  }

  /** Resolves when the holder of a claim that was taken has stopped, or its time is over. */
  async stopped({ token, owner }: Held): Promise<void> {
    const until = this.#nodes.get(owner.id)?.until ?? 0;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, until - performance.now()));
      this.#yields.set(token, () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#yields.delete(token);
  }

  /** Who had a claim does not act on it any more. */
  yielded(token: string): void {
    this.#yields.get(token)?.();
    const held = [...this.#claims.values()].find((claim) => claim.token === token);
    if (held !== undefined) this.#free(held);
  }

  /** @returns false when the claim is not this one's any more */
  update(key: string, token: string, meta: Json): boolean {
    const held = this.#claims.get(key);
    if (held?.token !== token) return false;
    this.#claims.set(key, { ...held, owner: { ...held.owner, meta } });
    this.#changed();
    return true;
  }

  /** @returns false when the claim is not this one's any more */
  keep(key: string, token: string, value: Json): boolean {
    const held = this.#claims.get(key);
    if (held?.token !== token) return false;
    if (held.keepMs > 0) this.#kept.set(key, { value, until: Infinity });
    return true;
  }

  leave(self: NodeIdentity): void {
    const entry = this.#nodes.get(self.id);
    if (entry?.incarnation !== self.incarnation) return;
    this.#markDead(entry);
    this.#nodes.delete(self.id);
    this.#changed();
  }

  /** @throws NoNodeError */
  drain(id: string, drained: boolean): void {
    const entry = this.#nodes.get(id);
    if (entry === undefined) throw new NoNodeError(`there is no node ${id}`);
    this.#nodes.set(id, { ...entry, drained });
    this.#changed();
  }

  /** @returns false while only the nodes may bring back what they know. @throws ConflictError */
  write(changes: readonly Change[], expected: readonly Expectation[]): boolean {
    if (performance.now() < this.#opens) return false;
    this.#config = written(this.#config, changes, expected);
    this.#changed();
    return true;
  }

  /** A node brings what it knows to a store that was emptied. */
  restore(config: ConfigState): void {
    if (config.revision <= this.#config.revision) return;
    this.#config = config;
    this.#changed();
  }

  /** @returns whether the lock is had, or had still */
  lock(key: string, token: string): boolean {
    const now = performance.now();
    const lock = this.#locks.get(key);
    if (lock !== undefined && lock.token !== token && now < lock.until) return false;
    this.#locks.set(key, { token, until: now + this.#timing.ttl });
    return true;
  }

  unlock(key: string, token: string): void {
    if (this.#locks.get(key)?.token === token) this.#locks.delete(key);
  }

  /** Forgets who was not heard of for too long, and what was kept for too long. */
  expire(): void {
    const now = performance.now();
    for (const node of this.#nodes.values()) {
      if (node.until > now || node.lost) continue;
      this.#nodes.set(node.id, { ...node, lost: true });
      this.#markDead(node);
      this.#changed();
    }

    for (const [key, { until }] of this.#kept) if (until <= now) this.#kept.delete(key);
  }

  #renew(self: NodeIdentity, lease: Renewal): Held {
    this.#fence = Math.max(this.#fence, lease.fence);
    const present = this.#claims.get(lease.key);
    if (present !== undefined) return present;
    if (lease.keepMs > 0 && lease.kept !== undefined) {
      this.#kept.set(lease.key, { value: lease.kept, until: Infinity });
    }
    return this.#make(self, lease);
  }

  #make(self: NodeIdentity, { key, token, meta, keepMs }: Omit<Renewal, 'fence' | 'kept'>): Held {
    this.#fence = Math.max(this.#fence + 1, Date.now());
    const held: Held = { key, token, keepMs, owner: { ...self, fence: this.#fence, meta } };
    this.#claims.set(key, held);
    this.#changed();
    return held;
  }

  #free({ key, keepMs }: Held): void {
    this.#claims.delete(key);
    const kept = this.#kept.get(key);
    if (kept?.until === Infinity) kept.until = this.#end(keepMs);
    this.#changed();
  }

  /** Frees the claims of one incarnation of a node. */
  #markDead({ incarnation }: NodeIdentity): void {
    this.#stats.forget(incarnation);
    for (const held of [...this.#claims.values()]) if (held.owner.incarnation === incarnation) this.#free(held);
  }

  #lives({ id, incarnation }: NodeIdentity): boolean {
    const node = this.#nodes.get(id);
    return node?.incarnation === incarnation && performance.now() < node.until;
  }

  #end(keepMs: number): number {
    return performance.now() + keepMs;
  }

  #changed(): void {
    this.#version++;
    this.#onChange();
  }
}

/** True when a node says something else of itself than before, or is another. */
export function saysOther(before: NodeEntry | undefined, now: NodeEntry | undefined): boolean {
  return !isDeepStrictEqual(said(before), said(now));
}

function said(entry: NodeEntry | undefined) {
  return entry && { ...entry, since: 0, seen: 0, until: 0 };
}
