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
const Report = Type.Object({ ...Progress.properties, state: States });

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
  state: PushReport['state'] = 'connecting';
  #before: PushProgress;
  #now: PushProgress;

  /** @param progress of the run before */
  constructor(progress: Json | undefined) {
    this.#before = readPushProgress(progress);
    this.#now = this.#before;
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
    this.state = 'pushing';
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

  get isPushing(): boolean {
    return this.state === 'pushing';
  }

  get progress(): PushProgress {
    return this.#now;
  }

  get report(): PushReport {
    return { ...this.#now, state: this.state };
  }
}

/** What was kept of a push; zeros where there is nothing. */
export function readPushProgress(json: unknown): PushProgress {
  return Value.Check(Progress, json) ? json : NONE;
}

/** undefined for what a node of another version tells. */
export function readPushReport(json: unknown): PushReport | undefined {
  return Value.Check(Report, json) ? json : undefined;
}
