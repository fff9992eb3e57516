import { createHash } from 'node:crypto';
import type { Reply } from './lua.ts';

/** So few entries come in one page that even a small hash takes several: Redis need not heed what it is asked for. */
const SCANNED = 2;

interface Entry {
  readonly value: string | Map<string, string> | Set<string> | Map<string, number>;
  /** In milliseconds, on the clock of the server. */
  expires?: number;
}

type Handler = (data: RedisData, key: string, ...args: string[]) => Reply;

/** The keys of a Redis, for the commands that the scripts of the cluster call. */
export class RedisData {
  readonly #entries: Map<string, Entry>;
  readonly #now: () => number;

  /** @param now the time of the server in milliseconds since 1970 */
  constructor(now: () => number, from?: RedisData) {
    this.#now = now;
    this.#entries =
      from === undefined ? new Map() : new Map([...from.#entries].map(([key, entry]) => [key, copy(entry)]));
  }

  get size(): number {
    return this.#entries.size;
  }

  call([name = '', key = '', ...args]: readonly string[]): Reply {
    const handler = COMMANDS[name];
    if (handler === undefined) throw new Error(`Redis in memory has no command ${name}`);
    return handler(this, key, ...args);
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#entry(key) !== undefined);
  }

  /** All that a key has, as texts. */
  contentOf(key: string): string[] {
    const value = this.#entry(key)?.value ?? [];
    if (typeof value === 'string') return [value];
    return value instanceof Map ? [...value].flatMap(([field, of]) => [field, String(of)]) : [...value];
  }

  delete(key: string): boolean {
    return this.#entry(key) !== undefined && this.#entries.delete(key);
  }

  text(key: string): string | undefined {
    return this.#entry(key)?.value as string | undefined;
  }

  put(key: string, value: string, forMs = Infinity): void {
    this.#entries.set(key, { value, ...(forMs !== Infinity && { expires: this.#now() + forMs }) });
  }

  hash(key: string): Map<string, string> {
    return (this.#entry(key)?.value ?? new Map()) as Map<string, string>;
  }

  set(key: string): Set<string> {
    return (this.#entry(key)?.value ?? new Set()) as Set<string>;
  }

  scores(key: string): Map<string, number> {
    return (this.#entry(key)?.value ?? new Map()) as Map<string, number>;
  }

  /** Keeps what a command has changed: a key without content does not exist. */
  keep<T extends number>(key: string, value: Exclude<Entry['value'], string>, result: T): T {
    if (value.size === 0) this.#entries.delete(key);
    else if (!this.#entries.has(key)) this.#entries.set(key, { value });
    return result;
  }

  /** Milliseconds that a key has left; -1 for one that does not expire, -2 for none. */
  left(key: string): number {
    const entry = this.#entry(key);
    if (entry === undefined) return -2;
    return entry.expires === undefined ? -1 : entry.expires - this.#now();
  }

  expire(key: string, ms: number): number {
    const entry = this.#entry(key);
    if (entry === undefined) return 0;
    entry.expires = this.#now() + ms;
    return 1;
  }

  #entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expires === undefined || entry.expires > this.#now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

function copy({ value, ...rest }: Entry): Entry {
  if (typeof value === 'string') return { value, ...rest };
  return { value: value instanceof Set ? new Set(value) : (new Map<string, never>(value as never) as never), ...rest };
}

function scoreOf(text: string): number {
  if (text.endsWith('inf')) return text.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}

function scoreText(score: number): string {
  return Number.isFinite(score) ? String(score) : score > 0 ? 'inf' : '-inf';
}

function ordered(scores: ReadonlyMap<string, number>): (readonly [string, number])[] {
  return [...scores].sort(([a, x], [b, y]) => (x === y ? (a < b ? -1 : 1) : x - y));
}

/** Whether a value is above a limit as ZRANGEBYSCORE takes it, `(` for one that does not count itself. */
function isWithin(score: number, min: string, max: string): boolean {
  const above = min.startsWith('(') ? score > scoreOf(min.slice(1)) : score >= scoreOf(min);
  return above && (max.startsWith('(') ? score < scoreOf(max.slice(1)) : score <= scoreOf(max));
}

function limited<T>(items: readonly T[], limit: readonly string[]): readonly T[] {
  const [word, from = '0', count = '-1'] = limit;
  if (word !== 'LIMIT') return items;
  return items.slice(Number(from), Number(count) < 0 ? undefined : Number(from) + Number(count));
}

function range<T>(items: readonly T[], from: string, to: string): readonly T[] {
  const at = (text: string): number => (Number(text) < 0 ? Math.max(0, items.length + Number(text)) : Number(text));
  return items.slice(at(from), Number(to) < -items.length ? 0 : at(to) + 1);
}

function pairs(items: readonly string[]): [string, string][] {
  return Array.from({ length: items.length / 2 }, (_, at) => [items[2 * at] as string, items[2 * at + 1] as string]);
}

/** Counts for how many of the items `change` returns true. */
function count<T>(items: readonly T[], change: (item: T) => boolean): number {
  return items.filter(change).length;
}

function listed(items: readonly (readonly [string, number])[], options: readonly string[]): Reply {
  return options.includes('WITHSCORES')
    ? items.flatMap(([member, score]) => [member, scoreText(score)])
    : items.map(([member]) => member);
}

const COMMANDS: Readonly<Record<string, Handler>> = {
  DEL: (data, ...keys) => count(keys, (key) => data.delete(key)),
  EXISTS: (data, ...keys) => count(keys, (key) => data.left(key) !== -2),
  PEXPIRE: (data, key, ms) => data.expire(key, Number(ms)),

  GET: (data, key) => data.text(key) ?? null,
  SET: (data, key, value = '', ...options) => {
    if (options.includes('NX') && data.left(key) !== -2) return null;
    const px = options.indexOf('PX');
    data.put(key, value, px < 0 ? Infinity : Number(options[px + 1]));
    return { ok: 'OK' };
  },
  INCR: (data, key) => {
    const next = Number(data.text(key) ?? 0) + 1;
    data.put(key, String(next));
    return next;
  },

  HGET: (data, key, field = '') => data.hash(key).get(field) ?? null,
  HMGET: (data, key, ...fields) => fields.map((field) => data.hash(key).get(field) ?? null),
  HGETALL: (data, key) => [...data.hash(key)].flat(),
  HKEYS: (data, key) => [...data.hash(key).keys()],
  HVALS: (data, key) => [...data.hash(key).values()],
  HLEN: (data, key) => data.hash(key).size,
  HEXISTS: (data, key, field = '') => Number(data.hash(key).has(field)),
  /** In the order of numbers that fields have by themselves: whatever comes and goes meanwhile, what stays is listed. */
  HSCAN: (data, key, cursor) => {
    const hash = data.hash(key);
    const left = [...hash.keys()]
      .map(
        (field) => [Number.parseInt(createHash('sha1').update(field).digest('hex').slice(0, 12), 16), field] as const,
      )
      .filter(([place]) => place >= Number(cursor))
      .sort(([one], [other]) => one - other);
    const page = left.slice(0, SCANNED);
    const next = left.length > page.length ? String((page.at(-1)?.[0] ?? 0) + 1) : '0';
    return [next, page.flatMap(([, field]) => [field, hash.get(field) as string])];
  },
  HSET: (data, key, ...fields) => {
    const hash = data.hash(key);
    const before = hash.size;
    for (const [field, value] of pairs(fields)) hash.set(field, value);
    return data.keep(key, hash, hash.size - before);
  },
  HSETNX: (data, key, field = '', value = '') => {
    const hash = data.hash(key);
    if (hash.has(field)) return 0;
    return data.keep(key, hash.set(field, value), 1);
  },
  HDEL: (data, key, ...fields) => {
    const hash = data.hash(key);
    const removed = count(fields, (field) => hash.delete(field));
    return data.keep(key, hash, removed);
  },
  HINCRBY: (data, key, field = '', by) => {
    const hash = data.hash(key);
    const next = Number(hash.get(field) ?? 0) + Number(by);
    return data.keep(key, hash.set(field, String(next)), next);
  },

  SADD: (data, key, ...members) => {
    const set = data.set(key);
    const before = set.size;
    for (const member of members) set.add(member);
    return data.keep(key, set, set.size - before);
  },
  SREM: (data, key, ...members) => {
    const set = data.set(key);
    const removed = count(members, (member) => set.delete(member));
    return data.keep(key, set, removed);
  },
  SISMEMBER: (data, key, member = '') => Number(data.set(key).has(member)),
  SMEMBERS: (data, key) => [...data.set(key)],
  /** Redis takes any of them. */
  SPOP: (data, key, most) => {
    const set = data.set(key);
    const taken = [...set].slice(0, Number(most));
    for (const member of taken) set.delete(member);
    data.keep(key, set, 0);
    return taken;
  },
  SUNIONSTORE: (data, key, ...from) => {
    const union = new Set(from.flatMap((other) => [...data.set(other)]));
    data.delete(key);
    return data.keep(key, union, union.size);
  },

  ZADD: (data, key, ...args) => {
    const onlyNew = args[0] === 'NX';
    const scores = data.scores(key);
    const before = scores.size;
    for (const [score, member] of pairs(onlyNew ? args.slice(1) : args)) {
      if (!onlyNew || !scores.has(member)) scores.set(member, scoreOf(score));
    }
    return data.keep(key, scores, scores.size - before);
  },
  ZREM: (data, key, ...members) => {
    const scores = data.scores(key);
    const removed = count(members, (member) => scores.delete(member));
    return data.keep(key, scores, removed);
  },
  ZREMRANGEBYSCORE: (data, key, min = '', max = '') => {
    const scores = data.scores(key);
    const within = [...scores].filter(([, score]) => isWithin(score, min, max));
    for (const [member] of within) scores.delete(member);
    return data.keep(key, scores, within.length);
  },
  ZSCORE: (data, key, member = '') => {
    const score = data.scores(key).get(member);
    return score === undefined ? null : scoreText(score);
  },
  ZCARD: (data, key) => data.scores(key).size,
  ZRANGE: (data, key, from = '', to = '', ...options) => listed(range(ordered(data.scores(key)), from, to), options),
  ZREVRANGE: (data, key, from = '', to = '', ...options) =>
    listed(range(ordered(data.scores(key)).reverse(), from, to), options),
  ZRANGEBYSCORE: (data, key, min = '', max = '', ...limit) => {
    const within = ordered(data.scores(key)).filter(([, score]) => isWithin(score, min, max));
    return listed(limited(within, limit), []);
  },
  ZRANGEBYLEX: (data, key, min = '', max = '', ...limit) => {
    const [from, to] = [min.slice(1), max.slice(1)];
    const above = (text: string): boolean => (min.startsWith('[') ? text >= from : text > from);
    const below = (text: string): boolean => (max.startsWith('[') ? text <= to : text < to);
    const members = ordered(data.scores(key)).map(([member]) => member);
    return limited(
      members.filter((member) => above(member) && below(member)),
      limit,
    );
  },
  ZPOPMIN: (data, key, most = '1') => {
    const scores = data.scores(key);
    const taken = ordered(scores).slice(0, Number(most));
    for (const [member] of taken) scores.delete(member);
    data.keep(key, scores, 0);
    return listed(taken, ['WITHSCORES']);
  },
};
