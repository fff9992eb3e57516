/** Lines that are kept. */
const MAX_EVENTS = 500;
/** Longer lines are not kept: they may hold what a stranger sent. */
const MAX_LINE = 8192;

/** A line of the log that tells of a main event (`src/log/events.ts`). */
export interface RecentEvent {
  /** ISO 8601. */
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The newest lines of the log that tell of main events. */
export class RecentEvents {
  /** As JSON: most are never asked for. */
  readonly #lines: string[] = [];

  /** Keeps a line of the log, of JSON, where it tells of one. */
  add(line: string): void {
    if (!line.includes('"event":"') || line.length > MAX_LINE) return;
    this.#lines.push(line);
    if (this.#lines.length > MAX_EVENTS) this.#lines.shift();
  }

  /** The newest ones, the oldest of them first. */
  newest(count: number): RecentEvent[] {
    return this.#lines.slice(-count).map((line) => JSON.parse(line) as RecentEvent);
  }
}
