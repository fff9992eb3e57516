import type { StatsRow, StatsSum } from '../types.ts';
import { combined, growth, sum } from '../values.ts';

/** How long the sums of a row stay that has ended. */
const ORPHAN_MS = 30_000;

interface Kept {
  readonly sum: StatsSum;
  /** As reported last; undefined when it has ended. */
  readonly row: StatsRow | undefined;
  /** When it was reported last, on the monotonic clock. */
  readonly at: number;
}

/** Sums of a node that shares with nobody: what it counts itself. */
export class EmbeddedStats {
  readonly #rows = new Map<string, Kept>();

  report(rows: readonly StatsRow[]): void {
    const now = performance.now();
    for (const row of rows) {
      const kept = this.#rows.get(row.key);
      const counters = combined(kept?.sum.counters ?? {}, growth(row.counters, kept?.row?.counters), sum);
      const maxima = combined(kept?.sum.maxima ?? {}, row.gauges, Math.max);
      const latest = combined(kept?.sum.latest ?? {}, row.latest, Math.max);
      this.#rows.set(row.key, { sum: { counters, gauges: row.gauges, maxima, latest }, row, at: now });
    }
    for (const [key, kept] of this.#rows) {
      if (now - kept.at > ORPHAN_MS) this.#rows.delete(key);
      else if (kept.at !== now && kept.row !== undefined) {
        this.#rows.set(key, { ...kept, sum: { ...kept.sum, gauges: {} }, row: undefined });
      }
    }
  }

  sums(keys: readonly string[]): Map<string, StatsSum> {
    return new Map(keys.flatMap((key) => {
      const kept = this.#rows.get(key);
      return kept === undefined ? [] : [[key, kept.sum] as const];
    }));
  }
}
