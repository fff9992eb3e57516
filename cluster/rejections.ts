import type { Rejected } from './types.ts';

/** Names of a kind that are kept and counted. */
const MAX_NAMES = 1000;
/** A name is not reported again within this time, should it come and go. */
const QUIET_MS = 60_000;
/** Names of a kind that are reported within that time: where secrets differ, everything in the store is rejected. */
const MAX_REPORTS = 20;

/** An entry or node that is rejected because it does not come from the node or cluster that it should come from. */
export interface Rejection {
  readonly kind: keyof Rejected;
  /** Key of the entry, or id of the node. */
  readonly name: string;
  readonly reason: string;
}

/** Entries and nodes that this node rejects at present. Each is reported once while it is rejected, with a limited rate. */
export class Rejections {
  readonly #onRejected: (report: Rejection) => void;
  readonly #refused = { entries: new Set<string>(), rows: new Set<string>(), certificates: new Set<string>() };
  /** Time of the last report of a name, on the monotonic clock. */
  readonly #reported = { entries: new Map<string, number>(), rows: new Map(), certificates: new Map() };

  constructor(onRejected: (report: Rejection) => void) {
    this.#onRejected = onRejected;
  }

  get counts(): Rejected {
    const { entries, rows, certificates } = this.#refused;
    return { entries: entries.size, rows: rows.size, certificates: certificates.size };
  }

  refuse(kind: keyof Rejected, name: string, reason: string): void {
    const names = this.#refused[kind];
    if (names.has(name)) return;
    if (names.size < MAX_NAMES) names.add(name);
    const reported = this.#reported[kind];
    const now = performance.now();
    for (const [before, at] of reported) if (now - at >= QUIET_MS) reported.delete(before);
    if (reported.has(name) || reported.size >= MAX_REPORTS) return;
    reported.set(name, now);
    this.#onRejected({ kind, name, reason });
  }

  /** Clears a rejection: the name is trusted again, or has gone. */
  trust(kind: keyof Rejected, name: string): void {
    this.#refused[kind].delete(name);
  }

  /** Clears the rejections of all names of a kind except these. */
  keepOnly(kind: keyof Rejected, names: ReadonlySet<string>): void {
    for (const name of this.#refused[kind]) if (!names.has(name)) this.#refused[kind].delete(name);
  }
}
