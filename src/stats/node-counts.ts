import type { StatsRow } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Counters } from '../core/counters.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import { added } from './counted.ts';
import { places, streamPlace, type Place } from './places.ts';
import { hasConnections, lastRowOf, rowOf, type Carried } from './row.ts';

const NONE: Carried = { in: 0, out: 0 };
/** Interval between rows of a stream whose viewers and sources stay the same. */
export const STREAM_EVERY_MS = 300_000;

/** Counts of one place on this node: several counters, one after the other or at the same time. */
interface Account {
  readonly live: readonly Counters[];
  readonly carried: Carried;
  readonly row: StatsRow;
  /** Time of the row, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * Rows of everything that this node counts. Their totals never fall, whatever begins and ends under a name. There may be
 * thousands of streams, so a stream keeps its row for minutes, unless its viewers or sources change or its row is requested.
 */
export class NodeCounts {
  readonly #registry: Registry;
  #accounts = new Map<string, Account>();
  /** Keys of streams whose next row is requested. */
  readonly #asked = new Set<string>();
  /** Keys of ended objects whose totals were counted: the next report leaves them out. */
  readonly #over = new Set<string>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Adds a stream, or a relay of one, at once: it may be over before rows are made. */
  begun(application: Application, { name, counters }: InputStream): void {
    const place = streamPlace(application, name);
    const before = this.#accounts.get(place.key);
    const live = [...(before?.live ?? []), counters];
    this.#accounts.set(place.key, account({ key: place.key, live: [...new Set(live)] }, before, Date.now()));
    this.#over.delete(place.key);
  }

  /** Has the next report contain a present row of a stream. @param key of its place */
  ask(key: string): void {
    if (this.#accounts.has(key)) this.#asked.add(key);
  }

  /**
   * Makes the rows to report. Ended objects are included, with their totals, until those were counted. An object that begins
   * again before a report has left it out continues its totals: the cluster adds the growth of a row.
   */
  rows(): StatsRow[] {
    const now = Date.now();
    const accounts = new Map<string, Account>();
    for (const place of places(this.#registry)) {
      const before = this.#accounts.get(place.key);
      const isKept = before !== undefined && place.isStream && !this.#isDue(place, before, now);
      accounts.set(place.key, isKept ? before : account(place, before, now));
    }
    for (const [key, before] of this.#accounts) {
      if (accounts.has(key) || this.#over.has(key)) continue;
      accounts.set(key, before.live.length > 0 ? account({ key, live: [] }, before, now) : before);
    }
    this.#accounts = accounts;
    this.#asked.clear();
    this.#over.clear();
    return Array.from(accounts.values(), ({ row }) => row);
  }

  /** Confirms that a report was counted. */
  counted(rows: readonly StatsRow[]): void {
    const all = new Set(rows);
    for (const [key, { live, row }] of this.#accounts) if (live.length === 0 && all.has(row)) this.#over.add(key);
  }

  /** Present row of one place; undefined when this node has no counts of it. */
  row(place: Place): StatsRow | undefined {
    const before = this.#accounts.get(place.key);
    if (before === undefined && place.live.length === 0) return undefined;
    return account(place, before, Date.now()).row;
  }

  #isDue({ key, live }: Place, before: Account, now: number): boolean {
    return (
      this.#asked.has(key) ||
      Math.abs(now - before.at) >= STREAM_EVERY_MS ||
      !isOf(before, live) ||
      !hasConnections(before.row, live)
    );
  }
}

function account({ key, live }: Pick<Place, 'key' | 'live'>, before: Account | undefined, now: number): Account {
  if (before !== undefined && isUnchanged(live, before, now)) return before;
  const gone = before?.live.filter((counters) => !live.includes(counters)) ?? [];
  const carried = gone.reduce(carry, before?.carried ?? NONE);
  const [first, ...others] = live;
  if (first !== undefined) return { live, carried, row: rowOf(key, added(first, ...others), carried), at: now };
  const [last, ...rest] = gone;
  const row = last === undefined ? (before as Account).row : lastRowOf(key, added(last, ...rest), carried);
  return { live, carried, row, at: now };
}

function isUnchanged(live: readonly Counters[], before: Account, now: number): boolean {
  // the clock may have been set back
  const isPast = before.at <= now;
  return isOf(before, live) && isPast && live.every(({ lastUpdatedTime }) => lastUpdatedTime < before.at);
}

function isOf({ live }: Account, counters: readonly Counters[]): boolean {
  return counters.length === live.length && counters.every((one, at) => one === live[at]);
}

function carry(carried: Carried, counters: Counters): Carried {
  return { in: carried.in + counters.in.totalBytes, out: carried.out + counters.out.totalBytes };
}
