import type { NodeIdentity, StatsRow, StatsSum, Values } from '#cluster';
import { combined, growth, sum } from '../../../cluster/values.ts';

interface Total {
  readonly counters: Values;
  readonly maxima: Values;
  readonly maximaTimes: Values;
  readonly latest: Values;
}

const EMPTY: Total = { counters: {}, maxima: {}, maximaTimes: {}, latest: {} };

/** Sums of what nodes report: counters stay when a node is gone, gauges go with it. */
export class MemoryStats {
  readonly #totals = new Map<string, Total>();
  /** By incarnation of a node, then by key. */
  readonly #rows = new Map<string, Map<string, StatsRow>>();
  /** Nodes that have reported something, and are not cut off since, by incarnation. */
  readonly #ids = new Map<string, string>();

  report({ id, incarnation }: NodeIdentity, rows: readonly StatsRow[]): void {
    const before = this.#rows.get(incarnation);
    this.#ids.set(incarnation, id);
    this.#rows.set(incarnation, new Map(rows.map((row) => [row.key, row])));
    for (const row of rows) {
      const total = this.#totals.get(row.key) ?? EMPTY;
      const gauges = this.#gauges(row.key);
      const risen = Object.entries(gauges).filter(([name, value]) => value > (total.maxima[name] ?? -Infinity));
      this.#totals.set(row.key, {
        counters: combined(total.counters, growth(row.counters, before?.get(row.key)?.counters), sum),
        maxima: combined(total.maxima, gauges, Math.max),
        maximaTimes: { ...total.maximaTimes, ...Object.fromEntries(risen.map(([name]) => [name, Date.now()])) },
        latest: combined(total.latest, row.latest, Math.max),
      });
    }
  }

  /** A life of a node is over, or cut off: what it has counted stays counted, also when it is back. */
  forget(incarnation: string): void {
    const rows = this.#rows.get(incarnation);
    this.#ids.delete(incarnation);
    if (rows === undefined) return;
    this.#rows.set(incarnation, new Map([...rows].map(([key, row]) => [key, { ...row, gauges: {} }])));
  }

  sums(keys: readonly string[], { id, incarnation }: NodeIdentity): Map<string, StatsSum> {
    const known = keys.filter((key) => this.#totals.has(key));
    return new Map(
      known.map((key) => {
        const { counters = {}, gauges = {} } = this.#rows.get(incarnation)?.get(key) ?? {};
        const others = this.#reporters(key).filter((other) => other !== id);
        const total = this.#totals.get(key) ?? EMPTY;
        return [key, { ...total, gauges: this.#gauges(key), own: { counters, gauges }, others }];
      }),
    );
  }

  /** Nodes that have it. */
  #reporters(key: string): string[] {
    const all = [...this.#rows].flatMap(([incarnation, rows]) =>
      rows.has(key) ? (this.#ids.get(incarnation) ?? []) : [],
    );
    return [...new Set(all)];
  }

  #gauges(key: string): Values {
    const rows = [...this.#rows.values()].flatMap((own) => own.get(key) ?? []);
    return rows.reduce<Values>((all, { gauges }) => combined(all, gauges, sum), {});
  }
}
