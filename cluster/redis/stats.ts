import type { NodeIdentity, StatsRow, StatsSum, Values } from '../types.ts';
import { growth, sameValues } from '../values.ts';
import type { Connection } from './connection.ts';
import { parseSum } from './stats-record.ts';
import { SCRIPTS } from './scripts.ts';

/** Rows per step: a thousand streams must not block Redis for everybody else. */
const BATCH = 100;
/** Interval of sent reports without changes: from an answer a node learns that Redis needs everything again. */
const SENT_UNCHANGED = 5;

/** A part of a report; sent again as it is until Redis says that it counted it. */
interface Batch {
  readonly sequence: number;
  readonly rows: ReadonlyMap<string, StatsRow>;
  /** Keys of rows that no longer exist. */
  readonly ended: readonly string[];
  /** A full report begins with it. */
  readonly begins: boolean;
}

type Reply = readonly [sequence: string, ...rows: (readonly string[])[]];

/** Reports what this node counts to Redis once a second, and reads the sums of all nodes. */
export class RedisStats {
  readonly #self: NodeIdentity;
  readonly #node: string;
  readonly #connection: Connection;
  /** Rows of this node that Redis has. */
  #counted = new Map<string, StatsRow>();
  #pending: Batch | undefined;
  #sequence = 0;
  #epoch = 0;
  /** Reports in a row that had nothing new. */
  #unchanged = 0;
  /** Redis may lack the gauges of this node, or the sums of a row: everything is sent. */
  #full = true;
  /** When Redis counted the last batch, and when the last of a report that was complete, by its wall clock. */
  #countedAt = 0;
  #reportedAt = 0;

  constructor(self: NodeIdentity, connection: Connection) {
    this.#self = self;
    this.#node = encodeURIComponent(self.id);
    this.#connection = connection;
  }

  /**
   * One call at a time.
   * @param epoch of Redis: another one may lack some of what was reported
   * @returns whether Redis has all of it
   * @throws UnavailableError
   */
  async report(rows: readonly StatsRow[], epoch: number): Promise<boolean> {
    if (epoch !== this.#epoch) {
      this.#epoch = epoch;
      // what the rows that are still there have is known, and nothing else of them is added
      this.#full = true;
    }
    if (this.#pending !== undefined && !(await this.#send(this.#pending))) return false;
    for (const batch of this.#batches(rows)) {
      const isNew = this.#full || batch.rows.size > 0 || batch.ended.length > 0;
      this.#unchanged = isNew ? 0 : this.#unchanged + 1;
      if (this.#unchanged % SENT_UNCHANGED !== 0) return true;
      this.#pending = { ...batch, sequence: ++this.#sequence };
      if (!(await this.#send(this.#pending))) return false;
    }
    this.#full = false;
    this.#reportedAt = this.#countedAt;
    return true;
  }

  /** @throws UnavailableError */
  async sums(keys: readonly string[]): Promise<Map<string, StatsSum>> {
    if (keys.length === 0) return new Map();
    const pending = this.#pending;
    const before = keys.map((key) => this.#counted.get(key));
    const [sequence, ...rows] = (await this.#connection.run(SCRIPTS.stats, [this.#node, ...keys])) as unknown as Reply;
    const after = pending !== undefined && Number(sequence) >= pending.sequence ? pending : undefined;
    const sums = new Map<string, StatsSum>();
    for (const [at, key] of keys.entries()) {
      const reported = after?.ended.includes(key) ? undefined : (after?.rows.get(key) ?? before[at]);
      const sum = parseSum(rows[at] ?? [], this.#node, this.#self.incarnation, reported);
      if (sum !== undefined) sums.set(key, sum);
    }
    return sums;
  }

  /** Splits the changed rows of a report into batches. */
  *#batches(rows: readonly StatsRow[]): IterableIterator<Omit<Batch, 'sequence'>> {
    const present = new Set(rows.map(({ key }) => key));
    const ended = [...this.#counted.keys()].filter((key) => !present.has(key));
    const changed = this.#full ? rows : rows.filter((row) => !sameRow(row, this.#counted.get(row.key)));
    for (let at = 0; at < Math.max(changed.length, ended.length, 1); at += BATCH) {
      const part = changed.slice(at, at + BATCH);
      const begins = this.#full && at === 0;
      yield { rows: new Map(part.map((row) => [row.key, row])), ended: ended.slice(at, at + BATCH), begins };
    }
  }

  /** @returns whether Redis has it */
  async #send({ sequence, rows, ended, begins }: Batch): Promise<boolean> {
    const encoded = [...rows.values()].map((row) => this.#encoded(row));
    const outcome = await this.#connection.run(SCRIPTS.report, [
      this.#node,
      this.#self.incarnation,
      this.#epoch,
      sequence,
      this.#full ? 1 : 0,
      JSON.stringify(ended),
      JSON.stringify(encoded),
      this.#reportedAt,
      begins ? 1 : 0,
    ]);
    const [, countedAt] = /^counted (\d+)$/.exec(String(outcome)) ?? [];
    if (countedAt !== undefined) {
      this.#countedAt = Number(countedAt);
      this.#pending = undefined;
      for (const [key, row] of rows) this.#counted.set(key, row);
      for (const key of ended) this.#counted.delete(key);
      return true;
    }
    // of another epoch, or of a node that Redis does not know yet: after the next beat. Nothing of it was counted
    // unless it was sent before: the number stays, so that it cannot count twice
    this.#full = true;
    return false;
  }

  /** A row as lua/report.lua takes it. */
  #encoded(row: StatsRow) {
    const before = this.#counted.get(row.key);
    const full = this.#full || before === undefined;
    const grown = list(
      growth(row.counters, before?.counters),
      (name, value) => value > 0 || before?.counters[name] === undefined,
    );
    // zeros are not sent, unless Redis may have another value
    const gauges = list(row.gauges, (name, value) => value !== (before?.gauges[name] ?? 0) || (full && value !== 0));
    const gone = Object.entries(before?.gauges ?? {}).flatMap(([name, value]) =>
      value !== 0 && row.gauges[name] === undefined ? [name, '0'] : [],
    );
    const latest = list(row.latest, (name, value) => full || value !== before?.latest[name]);
    return [row.key, grown, [...gauges, ...gone], latest, full ? list(row.counters, () => true) : []];
  }
}

function sameRow(row: StatsRow, before: StatsRow | undefined): boolean {
  if (row === before) return true;
  return (
    before !== undefined &&
    sameValues(row.counters, before.counters) &&
    sameValues(row.gauges, before.gauges) &&
    sameValues(row.latest, before.latest)
  );
}

/** Names and values in turn; only those that have to be sent, since each costs Redis time. */
function list(values: Values, isNeeded: (name: string, value: number) => boolean): string[] {
  return Object.entries(values).flatMap(([name, value]) => (isNeeded(name, value) ? [name, String(value)] : []));
}
