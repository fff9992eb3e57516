import type { StatsRow, StatsSum, Values } from '../types.ts';
import { combined, growth, sum } from '../values.ts';

/** How long the sums of an ended row are kept. */
const ORPHAN_MS = 30_000;

const NOTHING = { counters: {}, gauges: {} };

interface Entry {
  readonly sum: StatsSum;
  /** The last report; undefined when the row has ended. */
  readonly row: StatsRow | undefined;
  /** Time of the last report, on the monotonic clock. */
  readonly at: number;
}

/** Sums of a node that runs alone: its own counts. */
export class EmbeddedStats {
  readonly #rows = new Map<string, Entry>();

  report(rows: readonly StatsRow[]): void {
    const now = performance.now();
    for (const row of rows) this.#rows.set(row.key, { sum: summed(row, this.#rows.get(row.key)), row, at: now });
    for (const [key, kept] of this.#rows) {
      if (now - kept.at > ORPHAN_MS) this.#rows.delete(key);
      else if (kept.at !== now && kept.row !== undefined) {
        this.#rows.set(key, { ...kept, sum: { ...kept.sum, gauges: {}, own: NOTHING }, row: undefined });
      }
    }
  }

  sums(keys: readonly string[]): Map<string, StatsSum> {
    return new Map(
      keys.flatMap((key) => {
        const kept = this.#rows.get(key);
        return kept === undefined ? [] : [[key, kept.sum] as const];
      }),
    );
  }
}

function summed(row: StatsRow, kept: Entry | undefined): StatsSum {
  const { counters, gauges, latest } = row;
  const before = kept?.sum.maxima ?? {};
  const risen = Object.entries(gauges).filter(([name, value]) => value > (before[name] ?? -Infinity));
  const times: Values = Object.fromEntries(risen.map(([name]) => [name, Date.now()]));
  return {
    counters: combined(kept?.sum.counters ?? {}, growth(counters, kept?.row?.counters), sum),
    gauges,
    maxima: combined(before, gauges, Math.max),
    maximaTimes: { ...kept?.sum.maximaTimes, ...times },
    latest: combined(kept?.sum.latest ?? {}, latest, Math.max),
    own: { counters, gauges },
    others: [],
  };
}
