import { LostError } from '../errors.ts';
import { isBelow } from '../keys.ts';
import { takesFrom } from '../timed-lease.ts';
import type { Claim, ClaimOptions, Json, Lease, NodeIdentity, Owner, OwnerChange } from '../types.ts';
import { Watchers } from '../watchers.ts';

/** The value that the next holder of a key inherits. */
interface Inheritance {
  readonly value: Json;
  /** On the monotonic clock, in milliseconds; Infinity while a lease has it. */
  until: number;
}

/** Claims of a node that runs alone: a lease ends only when it is released or taken. */
export class EmbeddedClaims {
  readonly #self: NodeIdentity;
  readonly #leases = new Map<string, EmbeddedLease>();
  readonly #kept = new Map<string, Inheritance>();
  readonly #watchers = new Watchers();
  /** Fences grow across restarts, as they do with a store. */
  #fence = Date.now();

  constructor(self: NodeIdentity) {
    this.#self = self;
  }

  claim(key: string, meta: Json, { take, keepMs = 0 }: ClaimOptions): Claim {
    const present = this.#leases.get(key);
    if (present !== undefined && !takesFrom(take, present)) return { owner: this.#ownerOf(present) };
    const kept = this.#keptOf(key);
    if (kept !== undefined && keepMs > 0) kept.until = Infinity;
    else if (kept?.until === Infinity) kept.until = performance.now() + (present?.keepMs ?? 0);
    const lease = new EmbeddedLease({
      key,
      meta,
      inherited: kept?.value,
      keepMs,
      fence: ++this.#fence,
      onUpdate: () => this.#notify(key, lease),
      onKeep: (value) => keepMs > 0 && this.#kept.set(key, { value, until: Infinity }),
      onRelease: () => this.#release(lease),
    });
    this.#leases.set(key, lease);
    present?.lose(new LostError(`${key} was claimed by another owner`, this.#ownerOf(lease)));
    this.#notify(key, lease);
    return { lease };
  }

  get held(): number {
    return this.#leases.size;
  }

  ownerOf(key: string): Owner | undefined {
    const lease = this.#leases.get(key);
    return lease && this.#ownerOf(lease);
  }

  list(path: string): Map<string, Owner> {
    const leases = [...this.#leases].filter(([key]) => isBelow(key, path));
    return new Map(leases.map(([key, lease]) => [key, this.#ownerOf(lease)]));
  }

  watch(path: string, listener: (changes: readonly OwnerChange[]) => void): () => void {
    return this.#watchers.add(path, this.list(path), listener);
  }

  close(): void {
    this.#watchers.close();
    for (const lease of this.#leases.values()) lease.end();
    this.#leases.clear();
  }

  #release(lease: EmbeddedLease): void {
    if (this.#leases.get(lease.key) !== lease) return;
    this.#leases.delete(lease.key);
    const now = performance.now();
    for (const [key, { until }] of this.#kept) if (until <= now) this.#kept.delete(key);
    const kept = this.#kept.get(lease.key);
    if (kept !== undefined && lease.keepMs > 0) kept.until = now + lease.keepMs;
    this.#notify(lease.key, undefined);
  }

  #keptOf(key: string): Inheritance | undefined {
    const kept = this.#kept.get(key);
    return kept !== undefined && performance.now() < kept.until ? kept : undefined;
  }

  #ownerOf({ fence, meta }: Lease): Owner {
    return { ...this.#self, fence, meta };
  }

  #notify(key: string, lease: Lease | undefined): void {
    this.#watchers.notify(new Map([[key, lease && this.#ownerOf(lease)]]));
  }
}

interface LeaseOptions {
  readonly key: string;
  readonly fence: number;
  readonly inherited: Json | undefined;
  readonly meta: Json;
  readonly keepMs: number;
  readonly onUpdate: () => void;
  readonly onKeep: (value: Json) => void;
  readonly onRelease: () => void;
}

class EmbeddedLease implements Lease {
  readonly key: string;
  readonly fence: number;
  readonly inherited: Json | undefined;
  readonly keepMs: number;
  readonly #options: LeaseOptions;
  readonly #loss = new AbortController();
  #meta: Json;
  #ended = false;

  constructor(options: LeaseOptions) {
    this.key = options.key;
    this.fence = options.fence;
    this.inherited = options.inherited;
    this.keepMs = options.keepMs;
    this.#options = options;
    this.#meta = options.meta;
  }

  get meta(): Json {
    return this.#meta;
  }

  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  get valid(): boolean {
    return !this.#ended;
  }

  async update(meta: Json): Promise<void> {
    this.#check();
    this.#meta = meta;
    this.#options.onUpdate();
  }

  async keep(value: Json): Promise<void> {
    this.#check();
    this.#options.onKeep(value);
  }

  async release(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.onRelease();
  }

  lose(reason: LostError): void {
    this.#ended = true;
    this.#loss.abort(reason);
  }

  end(): void {
    this.#ended = true;
  }

  #check(): void {
    if (this.#ended) throw new LostError(`${this.key} is no longer held`);
  }
}
