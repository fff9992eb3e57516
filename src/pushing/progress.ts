import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';

const Progress = Type.Object({
  /** Connections so far. */
  sequence: Type.Integer(),
  /** Of the last connection. */
  sentBytes: Type.Integer(),
  /** Of the last connection, in milliseconds. */
  sentTime: Type.Integer(),
  /** Of all connections, in the management API's spelling. */
  totalsentBytes: Type.Integer(),
  totalsentTime: Type.Integer(),
  /** When the last connection began and ended, in milliseconds since the epoch; 0 before that. */
  startTime: Type.Integer(),
  finishTime: Type.Integer(),
});

/** What a push has sent, on whichever nodes. */
export type PushProgress = Static<typeof Progress>;

const States = Type.Union([Type.Literal('connecting'), Type.Literal('pushing'), Type.Literal('error')]);
const Report = Type.Object({
  ...Progress.properties,
  state: States,
  /** Which tracks are left out, and why. */
  warnings: Type.Optional(Type.Array(Type.String())),
  /** Of the state `error`. */
  reason: Type.Optional(Type.String()),
});

/** A push as it is on the node that runs it. */
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

/** Counts what is sent over one connection after the other. */
export class PushCounts {
  warnings: readonly string[] = [];
  #state: PushReport['state'] = 'connecting';
  #reason: string | undefined;
  #before: PushProgress;
  #now: PushProgress;

  /** @param progress of the run before */
  constructor(progress: Json | undefined) {
    this.#before = readPushProgress(progress);
    this.#now = this.#before;
  }

  connecting(): void {
    this.#state = 'connecting';
  }

  /** A connection is made. */
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

  /** @param sentBytes of this connection @param sentTime milliseconds since it was made */
  sent(sentBytes: number, sentTime: number): void {
    this.#now = {
      ...this.#now,
      sentBytes,
      sentTime,
      totalsentBytes: this.#before.totalsentBytes + sentBytes,
      totalsentTime: this.#before.totalsentTime + sentTime,
    };
  }

  /** The connection is over. */
  end(): void {
    this.#now = { ...this.#now, finishTime: Date.now() };
  }

  /** There is no connection, or no longer. */
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

/** What was kept of a push; zeros where there is nothing. */
export function readPushProgress(json: unknown): PushProgress {
  return Value.Check(Progress, json) ? json : NONE;
}

/** undefined for the report of a node of another version. */
export function readPushReport(json: unknown): PushReport | undefined {
  return Value.Check(Report, json) ? json : undefined;
}
