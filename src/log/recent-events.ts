const MAX_EVENTS = 500;
/** Longer lines are not kept: they may contain data of clients. */
const MAX_LINE = 8192;

/** A line of the log with a main event (`src/log/events.ts`). */
export interface RecentEvent {
  /** In the form of ISO 8601. */
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class RecentEvents {
  /** As JSON: most are never read. */
  readonly #lines: string[] = [];

  /** Keeps a line of JSON if it has a main event. */
  add(line: string): void {
    if (!line.includes('"event":"') || line.length > MAX_LINE) return;
    this.#lines.push(line);
    if (this.#lines.length > MAX_EVENTS) this.#lines.shift();
  }

  /** Newest events, in the order of time. */
  newest(count: number): RecentEvent[] {
    return this.#lines.slice(-count).map((line) => JSON.parse(line) as RecentEvent);
  }
}
