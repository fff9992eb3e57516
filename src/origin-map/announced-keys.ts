import type { Redis } from 'ioredis';

/** Redis keeps a key this long after its origin's last refresh. */
const EXPIRY_SECONDS = 10;
const REFRESH_MS = 3000;
/** Keys in one command: others must not wait long for Redis. */
const BATCH = 200;

/** For each key: extends it and returns 1 if it has the given value. Keys of other types belong to others. */
const REFRESH = `local results = {}
for at, key in ipairs(KEYS) do
  local own = redis.pcall('GET', key) == ARGV[at + 1]
  results[at] = own and redis.call('EXPIRE', key, ARGV[1]) or 0
end
return results`;

const WITHDRAW = `for at, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[at] then redis.call('DEL', key) end
end
return 1`;

type Pair = readonly [key: string, value: string];

interface Announced {
  readonly value: string;
  /** Whether Redis had this value at the last read; if not, the key is free or another origin announces it. */
  isOwn: boolean;
}

/**
 * Keys that this origin announces in Redis, unless another origin was first. Own keys are refreshed periodically; each turn
 * checks whether the others are free.
 */
export class AnnouncedKeys {
  readonly #redis: Redis;
  readonly #announced = new Map<string, Announced>();
  /** Keys to delete when Redis is reachable, with the time at which they have expired anyway. */
  readonly #withdrawn = new Map<string, { readonly value: string; readonly until: number }>();
  #refreshedAt = -Infinity;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  set(key: string, value: string): void {
    this.#announced.set(key, { value, isOwn: false });
  }

  /** Withdraws a key, unless it has another value by now. */
  delete(key: string, value: string): void {
    if (this.#announced.get(key)?.value !== value) return;
    this.#announced.delete(key);
    this.#withdrawn.set(key, { value, until: performance.now() + EXPIRY_SECONDS * 1000 });
  }

  clear(): void {
    for (const [key, { value }] of [...this.#announced]) this.delete(key, value);
  }

  /** Checks all keys at the next turn: Redis may have lost them. */
  doubt(): void {
    this.#refreshedAt = -Infinity;
  }

  /** Writes changes to Redis, and refreshes keys that are due. @throws Error when that fails */
  async turn(): Promise<void> {
    await this.#withdraw();
    await this.#refresh();
    await this.#candidates();
  }

  async #withdraw(): Promise<void> {
    const now = performance.now();
    for (const [key, { until }] of this.#withdrawn)
      if (until < now || this.#announced.has(key)) this.#withdrawn.delete(key);
    for (const batch of batches([...this.#withdrawn].map(([key, { value }]): Pair => [key, value]))) {
      await this.#redis.eval(WITHDRAW, batch.length, ...keysOf(batch), ...valuesOf(batch));
      for (const [key] of batch) this.#withdrawn.delete(key);
    }
  }

  async #refresh(): Promise<void> {
    const now = performance.now();
    if (now - this.#refreshedAt < REFRESH_MS) return;
    for (const batch of batches(this.#pairs(true))) {
      const results = (await this.#redis.eval(
        REFRESH,
        batch.length,
        ...keysOf(batch),
        EXPIRY_SECONDS,
        ...valuesOf(batch),
      )) as number[];
      batch.forEach((pair, at) => this.#mark(pair, results[at] === 1));
    }
    this.#refreshedAt = now;
  }

  /** Writes free keys; those of other origins stay. */
  async #candidates(): Promise<void> {
    for (const batch of batches(this.#pairs(false))) {
      const present = await this.#redis.mget(keysOf(batch));
      const free = batch.filter((pair, at) => {
        if (present[at] === pair[1]) this.doubt();
        this.#mark(pair, present[at] === pair[1]);
        return present[at] === null && this.#announced.get(pair[0])?.value === pair[1];
      });
      if (free.length === 0) continue;
      const pipeline = this.#redis.pipeline();
      for (const [key, value] of free) pipeline.set(key, value, 'EX', EXPIRY_SECONDS, 'NX');
      const replies = (await pipeline.exec()) ?? [];
      free.forEach((pair, at) => this.#mark(pair, replies[at]?.[1] === 'OK'));
    }
  }

  #pairs(isOwn: boolean): Pair[] {
    return [...this.#announced]
      .filter(([, announced]) => announced.isOwn === isOwn)
      .map(([key, { value }]) => [key, value]);
  }

  #mark([key, value]: Pair, isOwn: boolean): void {
    const announced = this.#announced.get(key);
    if (announced?.value === value) announced.isOwn = isOwn;
  }
}

function keysOf(pairs: readonly Pair[]): string[] {
  return pairs.map(([key]) => key);
}

function valuesOf(pairs: readonly Pair[]): string[] {
  return pairs.map(([, value]) => value);
}

function* batches(pairs: readonly Pair[]): IterableIterator<readonly Pair[]> {
  for (let at = 0; at < pairs.length; at += BATCH) yield pairs.slice(at, at + BATCH);
}
