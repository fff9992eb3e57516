import type { Json } from '#cluster';
import type { ApplicationConfig } from '../config/model.ts';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { TaskName } from './definition.ts';

/** Why a run of a task stops. */
export type TaskEndCause =
  /** Its definition was deleted. */
  | 'removed'
  /** Its definition is another. */
  | 'changed'
  /** Its stream has ended: it runs again where that appears next. */
  | 'streamGone'
  /** Another node continues it. */
  | 'handedOver'
  /** Its lease was lost: it may run elsewhere already. */
  | 'lost'
  /** Its application was closed. */
  | 'applicationClosed';

export class TaskEnd extends Error {
  override readonly name = 'TaskEnd';
  readonly reason: TaskEndCause;

  constructor(reason: TaskEndCause, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** One run of a task, as its kind sees it. */
export interface Task {
  readonly name: TaskName;
  readonly spec: Json;
  readonly persistent: boolean;
  readonly application: Application;
  /** Whether it is being created: if it cannot start at once, it fails for good. False for a task that follows a stream. */
  readonly isNew: boolean;
  /** Aborts when the run must end at once, with a TaskEnd. */
  readonly signal: AbortSignal;
  /** Number of the lease, greater than that of every owner before. */
  readonly fence: number;
  /** Check it right before every effect on others: true only while no other node can run the task. */
  readonly valid: boolean;
  /** The value that the run before kept last, here or on another node. */
  readonly progress: Json | undefined;
  /**
   * Sets the value that the next run continues from: small JSON. It costs little and may be called at any rate, also after the
   * signal has aborted, until `run` settles: of all values within a second only the last is written. A process that dies
   * loses the values of about the last second; one that runs alone, of a few seconds.
   */
  keep(progress: Json): void;
  /** Reports that the task works: the call that creates it is answered. */
  started(): void;
  /** Sets the state of the run for lists: called now and then until the run ends. */
  show(report: () => Json): void;
  /**
   * Lets the run go on when the spec changes: the listener gets the new one. Without a listener the run ends then, and
   * another one begins.
   */
  changed(listener: (spec: Json) => void): void;
  /**
   * Lets the run choose when it is handed over to a node that stands by: the listener is called once that is ready, and
   * calls `leave` at a good moment, soon, upon which the signal aborts. Without a listener there is nothing to interrupt: the
   * run ends at once.
   */
  handsOver(listener: ((leave: () => void) => void) | undefined): void;
}

/** A run that is ready to begin on this node, while another one still runs the task. */
export interface Standby {
  /** Resolves when it can begin without delay; rejects when it cannot. */
  readonly ready: Promise<void>;
  /** Begins, as PlacedKind.run does; called once at most, and not after `close`. */
  run(task: Task): Promise<void>;
  /** Cancels the run. Idempotent. */
  close(): void;
}

/** A run beside a stream. */
export interface StreamTask extends Task {
  /** Live stream of this node; the signal aborts when it ends. */
  readonly output: OutputStream;
}

interface AnyKind {
  readonly name: string;
}

/** Tasks that can run on any node: a new one begins on a node with little load. */
export interface PlacedKind extends AnyKind {
  /** The id of a task is the name of a stream that it makes: all tasks of such kinds in an application have different ids. */
  readonly makesStream?: boolean;
  /**
   * Whether this node has what a task needs, for example its files. Where it has not, or does not know yet, the node
   * claims the task only when no other does. undefined: all nodes are equal.
   */
  suits?(spec: Json, application: ApplicationConfig): Promise<boolean>;
  /**
   * Runs a task until it is over: then its definition is deleted. A failure is tried again, after a pause.
   * It settles as soon as it can when the signal aborts.
   */
  run(task: Task): Promise<void>;
  /**
   * Makes a run ready that is to begin when the owner hands the task over, without any effect on others before. The owner
   * of such a task goes on while its node drains, until another node stands by. undefined: a drain ends the run at once.
   */
  standBy?(wanted: Pick<Task, 'name' | 'spec' | 'application'>): Standby;
  /** The failure of a new task, as it is carried to the calling node; undefined if the error is a fault. */
  writeFailure(error: unknown): Json | undefined;
  /** The failure of a task on another node. */
  readFailure(failure: Json): Error;
}

/**
 * Tasks that run beside an output stream, on the node that has it, as long as it is there. They outlive it: while the stream
 * is absent they wait without an owner.
 */
export interface StreamKind extends AnyKind {
  /** Name of the output stream; undefined for a spec that this version cannot read. */
  follows(spec: Json): string | undefined;
  /**
   * Runs a task until it is over: then its definition is deleted. When the signal aborts it settles as soon as it can,
   * and is not over: it is called again when the stream is back, here or on another node. A failure is tried again.
   */
  run(task: StreamTask): Promise<void>;
}

export type TaskKind = PlacedKind | StreamKind;

export function isStreamKind(kind: TaskKind): kind is StreamKind {
  return 'follows' in kind;
}

/** Whether the id of a task of this kind is the name of a stream that it makes. */
export function makesStream(kind: TaskKind | undefined): boolean {
  return kind !== undefined && 'makesStream' in kind && kind.makesStream === true;
}
