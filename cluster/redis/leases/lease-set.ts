import type { RedisLease } from './lease.ts';

/** Leases, found by their keys: a key that is taken from this very node has two for a moment. */
export class LeaseSet implements Iterable<RedisLease> {
  readonly #byKey = new Map<string, readonly RedisLease[]>();

  get size(): number {
    return this.#byKey.size;
  }

  add(lease: RedisLease): void {
    this.#byKey.set(lease.key, [...this.of(lease.key), lease]);
  }

  delete(lease: RedisLease): void {
    const others = this.of(lease.key).filter((other) => other !== lease);
    if (others.length > 0) this.#byKey.set(lease.key, others);
    else this.#byKey.delete(lease.key);
  }

  clear(): void {
    this.#byKey.clear();
  }

  of(key: string): readonly RedisLease[] {
    return this.#byKey.get(key) ?? [];
  }

  *[Symbol.iterator](): IterableIterator<RedisLease> {
    for (const leases of this.#byKey.values()) yield* leases;
  }
}
