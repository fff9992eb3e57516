import type { Distrusted } from './types.ts';

/** Names that are remembered and counted of a kind. */
const MAX_NAMES = 1000;
/** The same name is not reported again within this time, should it come and go. */
const QUIET_MS = 60_000;
/** Names of a kind that are reported within that time: with another secret it is everything that there is. */
const MAX_REPORTS = 20;

/** What is refused because it does not come from the node or the cluster that it should come from. */
export interface DistrustReport {
  readonly kind: keyof Distrusted;
  /** Of the entry or the node. */
  readonly name: string;
  readonly reason: string;
}

/**
 * Keeps what this node refuses at present, and reports each once as long as it is refused, but only
 * some at a time: `counts` tells how many there are.
 */
export class Distrust {
  readonly #onDistrust: (report: DistrustReport) => void;
  readonly #refused = { entries: new Set<string>(), rows: new Set<string>(), certificates: new Set<string>() };
  /** When a name was reported last, on the monotonic clock. */
  readonly #reported = { entries: new Map<string, number>(), rows: new Map(), certificates: new Map() };

  constructor(onDistrust: (report: DistrustReport) => void) {
    this.#onDistrust = onDistrust;
  }

  get counts(): Distrusted {
    const { entries, rows, certificates } = this.#refused;
    return { entries: entries.size, rows: rows.size, certificates: certificates.size };
  }

  refuse(kind: keyof Distrusted, name: string, reason: string): void {
    const names = this.#refused[kind];
    if (names.has(name)) return;
    if (names.size < MAX_NAMES) names.add(name);
    const reported = this.#reported[kind];
    const now = performance.now();
    for (const [before, at] of reported) if (now - at >= QUIET_MS) reported.delete(before);
    if (reported.has(name) || reported.size >= MAX_REPORTS) return;
    reported.set(name, now);
    this.#onDistrust({ kind, name, reason });
  }

  /** What comes under this name is trusted again, or there is nothing any more. */
  trust(kind: keyof Distrusted, name: string): void {
    this.#refused[kind].delete(name);
  }

  /** The same for all names of a kind but these. */
  keepOnly(kind: keyof Distrusted, names: ReadonlySet<string>): void {
    for (const name of this.#refused[kind]) if (!names.has(name)) this.#refused[kind].delete(name);
  }
}
