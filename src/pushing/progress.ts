import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';

const Progress = Type.Object({
  /** Number of connections so far. */
  sequence: Type.Integer(),
  /** Bytes of the last connection. */
  sentBytes: Type.Integer(),
  /** Milliseconds of the last connection. */
  sentTime: Type.Integer(),
  /** Total of all connections, in the management API's spelling. */
  totalsentBytes: Type.Integer(),
  totalsentTime: Type.Integer(),
  /** Begin and end of the last connection, in milliseconds since the epoch; 0 before that. */
  startTime: Type.Integer(),
  finishTime: Type.Integer(),
});

/** Amounts that a push has sent, on all nodes. */
export type PushProgress = Static<typeof Progress>;

const States = Type.Union([Type.Literal('connecting'), Type.Literal('pushing'), Type.Literal('error')]);
const Report = Type.Object({
  ...Progress.properties,
  state: States,
  /** Dropped tracks, with the reasons. */
  warnings: Type.Optional(Type.Array(Type.String())),
  /** Reason of the state `error`. */
  reason: Type.Optional(Type.String()),
});

/** State of a push on the node that runs it. */
export type PushReport = Static<typeof Report>;

const NONE: PushProgress = {
  sequence: 0,
  sentBytes: 0,
  sentTime: 0,
  totalsentBytes: 0,
  totalsentTime: 0,
  startTime: 0,
  finishTime: 0,
};

/** Counts bytes and time over successive connections. */
export class PushCounts {
  warnings: readonly string[] = [];
  #state: PushReport['state'] = 'connecting';
  #reason: string | undefined;
  #before: PushProgress;
  #now: PushProgress;

  /** @param progress progress of the previous run */
  constructor(progress: Json | undefined) {
    this.#before = readPushProgress(progress);
    this.#now = this.#before;
  }

  connecting(): void {
    this.#state = 'connecting';
  }

  /** Begins a connection. */
  begin(): void {
    this.#before = this.#now;
    this.#now = {
      ...this.#before,
      sequence: this.#before.sequence + 1,
      sentBytes: 0,
      sentTime: 0,
      startTime: Date.now(),
      finishTime: 0,
    };
    this.#state = 'pushing';
  }

  /** @param sentBytes bytes of this connection @param sentTime milliseconds since it was made */
  sent(sentBytes: number, sentTime: number): void {
    this.#now = {
      ...this.#now,
      sentBytes,
      sentTime,
      totalsentBytes: this.#before.totalsentBytes + sentBytes,
      totalsentTime: this.#before.totalsentTime + sentTime,
    };
  }

  /** Ends the connection. */
  end(): void {
    this.#now = { ...this.#now, finishTime: Date.now() };
  }

  /** Records that there is no connection, or no longer one. */
  failed(reason: string): void {
    this.#state = 'error';
    this.#reason = reason;
  }

  get isPushing(): boolean {
    return this.#state === 'pushing';
  }

  get progress(): PushProgress {
    return this.#now;
  }

  get report(): PushReport {
    const reason = this.#state === 'error' ? this.#reason : undefined;
    return {
      ...this.#now,
      state: this.#state,
      ...(this.warnings.length > 0 && { warnings: [...this.warnings] }),
      ...(reason !== undefined && { reason }),
    };
  }
}

/** Progress kept of a push; zeros where there is none. */
export function readPushProgress(json: unknown): PushProgress {
  return Value.Check(Progress, json) ? json : NONE;
}

/** undefined for a report of another version. */
export function readPushReport(json: unknown): PushReport | undefined {
  return Value.Check(Report, json) ? json : undefined;
}
