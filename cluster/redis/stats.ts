import type { NodeIdentity, StatsRow, StatsSum, Values } from '../types.ts';
import { growth } from '../values.ts';
import type { Connection } from './connection.ts';
import { pairs } from './record.ts';
import { SCRIPTS } from './scripts.ts';

/** A report as it was sent; sent again as it is until Redis says that it counted it. */
interface Report {
  readonly sequence: number;
  readonly full: boolean;
  readonly rows: readonly StatsRow[];
  readonly changed: readonly StatsRow[];
}

type Lists = readonly string[];

/** What this node counts, brought to Redis once a second, and the sums of all nodes. */
export class RedisStats {
  readonly #self: NodeIdentity;
  readonly #connection: Connection;
  /** What Redis has of this node. */
  #counted: ReadonlyMap<string, StatsRow> = new Map();
  #pending: Report | undefined;
  #sequence = 0;
  #epoch = 0;
  #full = true;

  constructor(self: NodeIdentity, connection: Connection) {
    this.#self = self;
    this.#connection = connection;
  }

  /** @param epoch of Redis: another one knows nothing of what was reported. @throws UnavailableError */
  async report(rows: readonly StatsRow[], epoch: number): Promise<void> {
    if (epoch !== this.#epoch) {
      this.#epoch = epoch;
      this.#counted = new Map();
      this.#pending = undefined;
      this.#full = true;
    }
    if (this.#pending !== undefined && !(await this.#send(this.#pending))) return;
    this.#pending = this.#next(rows);
    await this.#send(this.#pending);
  }

  /** @throws UnavailableError */
  async sums(keys: readonly string[]): Promise<Map<string, StatsSum>> {
    if (keys.length === 0) return new Map();
    const replies = (await this.#connection.run(SCRIPTS.stats, keys)) as Lists[];
    const sums = keys.map((key, at) => [key, parseSum(replies[at] ?? [])] as const);
    return new Map(sums.filter(([, sum]) => sum !== undefined) as [string, StatsSum][]);
  }

  #next(rows: readonly StatsRow[]): Report {
    const changed = rows.filter((row) => this.#full || JSON.stringify(row) !== JSON.stringify(this.#counted.get(row.key)));
    return { sequence: ++this.#sequence, full: this.#full, rows, changed };
  }

  /** @returns whether Redis has it */
  async #send(report: Report): Promise<boolean> {
    const { sequence, full, rows, changed } = report;
    const present = new Set(rows.map(({ key }) => key));
    const ended = [...this.#counted.keys()].filter((key) => !present.has(key));
    const grown = changed.map((row) => {
      const before = this.#counted.get(row.key);
      const shown = full ? undefined : before;
      // what is new is told though it is nothing yet
      const counters = list(growth(row.counters, before?.counters), (name, value) => value > 0 || before?.counters[name] === undefined);
      return [row.key, counters, list(row.gauges, differs(shown?.gauges)), list(row.latest, differs(shown?.latest))];
    });
    const outcome = await this.#connection.run(SCRIPTS.report, [
      encodeURIComponent(this.#self.id), this.#self.incarnation, this.#epoch, sequence, full ? 1 : 0,
      JSON.stringify(ended), JSON.stringify(grown),
    ]);
    if (outcome === 'counted') {
      this.#pending = undefined;
      this.#counted = new Map(rows.map((row) => [row.key, row]));
      this.#full = false;
      return true;
    }
    // of another epoch, or of a node that Redis does not know yet: after the next beat
    this.#full = true;
    // nothing of it was counted unless it was sent before: the number stays, so that it cannot count twice
    if (outcome === 'full') this.#pending = { ...report, full: true, changed: rows };
    return false;
  }
}

type Filter = (name: string, value: number) => boolean;

/** Names and values in turn; only what has to be told, for each costs Redis time. */
function list(values: Values, told: Filter): string[] {
  return Object.entries(values).flatMap(([name, value]) => (told(name, value) ? [name, String(value)] : []));
}

function differs(from: Values = {}): Filter {
  return (name, value) => from[name] !== value;
}

/** @param hash as lua/prelude.lua describes it. undefined when no node has the row */
function parseSum(hash: Lists): StatsSum | undefined {
  if (hash.length === 0) return undefined;
  const counters: Record<string, number> = {};
  const gauges: Record<string, number> = {};
  const maxima: Record<string, number> = {};
  const latest: Record<string, number> = {};
  for (const [field, text] of pairs(hash)) {
    const value = Number(text);
    const [, kind, name = ''] = /^([clm]):(.*)$/s.exec(field) ?? /^(g):[^:]*:(.*)$/s.exec(field) ?? [];
    if (kind === 'c') counters[name] = value;
    if (kind === 'l') latest[name] = value;
    if (kind === 'm') maxima[name] = value;
    if (kind === 'g') gauges[name] = (gauges[name] ?? 0) + value;
  }
  return { counters, gauges, maxima, latest };
}
