import type { NodeIdentity, Owner } from '../../types.ts';
import type { ClaimRecord } from '../record.ts';
import { validity, type Timing } from '../timing.ts';
import type { AbandonedClaims } from './abandoned-claims.ts';
import { LeaseExpiry } from './lease-expiry.ts';
import type { RedisLease } from './lease.ts';

export interface LeasesOptions {
  readonly self: NodeIdentity;
  readonly timing: Timing;
  readonly abandoned: AbandonedClaims;
}

/** A key with the fence of its claim. */
export type KeyFence = readonly [key: string, fence: number];

/** Leases that this node holds, and how they end: by a later claim, without renewal in time, or all at once. */
export class Leases implements Iterable<RedisLease> {
  readonly #options: LeasesOptions;
  /** A key that is taken from this very node has two for a moment. */
  readonly #byKey = new Map<string, readonly RedisLease[]>();
  /** Tokens of claims that Redis has not answered yet. */
  readonly #asked = new Set<string>();
  readonly #expiry = new LeaseExpiry(() => this.#onExpiry());
  #highest = 0;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Number of held keys. */
  get size(): number {
    return this.#byKey.size;
  }

  of(key: string): readonly RedisLease[] {
    return this.#byKey.get(key) ?? [];
  }

  *[Symbol.iterator](): IterableIterator<RedisLease> {
    for (const leases of this.#byKey.values()) yield* leases;
  }

  holds(key: string): boolean {
    return this.of(key).some((lease) => !lease.ended);
  }

  /** Claims that Redis has confirmed. */
  held(): KeyFence[] {
    return [...this].filter(({ fence }) => fence > 0).map(({ key, fence }) => [key, fence]);
  }

  /** True when there is a valid lease, which would become invalid at its end. */
  get atStake(): boolean {
    return [...this].some(({ valid }) => valid);
  }

  /** The highest fence that this node has seen: no later one is lower, even of a Redis that has lost its own. */
  get highest(): number {
    return this.#highest;
  }

  /** Redis has had this fence; ids of epochs are fences, too. */
  see(fence: number): void {
    this.#highest = Math.max(this.#highest, fence);
  }

  /** A claim of this node is sent. @returns its end: Redis has answered, or not in time */
  expect(token: string): () => void {
    this.#asked.add(token);
    return () => this.#asked.delete(token);
  }

  add(lease: RedisLease): void {
    this.#byKey.set(lease.key, [...this.of(lease.key), lease]);
    const onLoss = (): void => {
      this.delete(lease);
      // one that has not begun has to wait for the end of the lease before it
      if (!lease.waits) void this.#options.abandoned.end(lease);
    };
    lease.signal.addEventListener('abort', onLoss, { once: true });
    if (lease.options.silence === 'stop') this.#expiry.watch(lease.validUntil);
  }

  delete(lease: RedisLease): void {
    const others = this.of(lease.key).filter((other) => other !== lease);
    if (others.length > 0) this.#byKey.set(lease.key, others);
    else this.#byKey.delete(lease.key);
  }

  /** A key has a new owner, or all owners were read anew. */
  observe(key: string, { token, owner }: ClaimRecord): void {
    this.see(owner.fence);
    const leases = this.of(key);
    for (const lease of leases) {
      if (lease.token !== token && owner.fence > lease.fence) this.lose(lease, owner);
    }
    const { self, abandoned } = this.#options;
    const isKnown = this.#asked.has(token) || abandoned.has(token) || leases.some((lease) => lease.token === token);
    if (owner.incarnation === self.incarnation && !isKnown) {
      // released here, and back with an older state of Redis, or by a command that came after its time
      abandoned.add({ key, token });
      void abandoned.reportSoon();
    }
  }

  /** Redis says that a key is another's: of an earlier claim than the lease it says so only because it is behind. */
  loseTo(lease: RedisLease, owner: Owner | undefined): void {
    if (owner === undefined || owner.fence > lease.fence) this.lose(lease, owner);
  }

  lose(lease: RedisLease, owner: Owner | undefined): void {
    lease.lose(`${lease.key} is held by ${owner?.id ?? 'another node'}`, owner);
  }

  /** Others may have everything that is held here. */
  loseAll(): void {
    for (const lease of [...this]) this.lose(lease, undefined);
  }

  /** Loses what must not outlast its validity. */
  expire(): void {
    for (const lease of this) lease.expire();
  }

  /** Returns the keys held by another node of which this node has a later claim. This node loses its earlier claims. */
  laterClaims(held: readonly KeyFence[], by: NodeIdentity): string[] {
    const fences = new Map(held);
    for (const lease of this) {
      const fence = fences.get(lease.key) ?? 0;
      if (lease.fence > 0 && lease.fence < fence) this.lose(lease, { ...by, fence, meta: null });
    }
    return [...this].filter(({ key, fence }) => fence > (fences.get(key) ?? Infinity)).map(({ key }) => key);
  }

  /**
   * The other nodes have promised not to claim what is held here, for the time to live from `asked` on (monotonic clock).
   * @param superseded keys that others have claimed already
   */
  extendAll(asked: number, superseded: ReadonlySet<string>): void {
    for (const lease of this) {
      if (superseded.has(lease.key)) lease.lose(`${lease.key} was taken`);
      // one that is not valid now may have a successor that is not known here
      else if (lease.valid) lease.extend(asked + validity(this.#options.timing));
    }
  }

  /** Releases everything that is held. @throws UnavailableError */
  async close(): Promise<void> {
    this.#expiry.close();
    const leases = [...this].filter(({ waits }) => !waits);
    this.#byKey.clear();
    await Promise.all(leases.map((lease) => lease.release()));
  }

  /** Signals losses in time, whatever Redis does. */
  #onExpiry(): void {
    this.expire();
    for (const { options, validUntil } of this) if (options.silence === 'stop') this.#expiry.watch(validUntil);
  }
}
