import type { Redis } from 'ioredis';

/** Keys that their origin does not refresh expire after this time. */
const EXPIRY_SECONDS = 10;
const REFRESH_MS = 3000;
/** Keys in one command: others wait for Redis meanwhile. */
const BATCH = 200;

/** For each key: 1 when it has its value, which stays for another while. What is no string is another's. */
const REFRESH = `local results = {}
for at, key in ipairs(KEYS) do
  local own = redis.pcall('GET', key) == ARGV[at + 1]
  results[at] = own and redis.call('EXPIRE', key, ARGV[1]) or 0
end
return results`;

/** Deletes the keys that have their value. */
const WITHDRAW = `for at, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[at] then redis.call('DEL', key) end
end
return 1`;

type Pair = readonly [key: string, value: string];

interface Announced {
  readonly value: string;
  /** Redis had this value when it was last read; otherwise another origin announces the key, or nobody yet. */
  isOwn: boolean;
}

/**
 * The keys that this origin announces in Redis, unless another origin was first. Keys that are in Redis are refreshed now
 * and then; for the others each turn checks whether they are free.
 */
export class AnnouncedKeys {
  readonly #redis: Redis;
  readonly #announced = new Map<string, Announced>();
  /** Keys to be deleted when Redis is reachable, with the time when they have expired anyway. */
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

  /** Withdraws all keys. */
  clear(): void {
    for (const [key, { value }] of [...this.#announced]) this.delete(key, value);
  }

  /** Redis may have lost what it had. */
  doubt(): void {
    this.#refreshedAt = -Infinity;
  }

  /** Writes changes to Redis, and refreshes what is due. @throws Error when that fails */
  async turn(): Promise<void> {
    await this.#withdraw();
    await this.#refresh();
    await this.#candidates();
  }

  /** Deletes withdrawn keys, unless another origin announces them by now. */
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

  /** Keys of other origins are left alone; free ones are written. */
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
