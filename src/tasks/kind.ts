import type { Json } from '#cluster';
import type { Application } from '../core/application.ts';
import type { TaskName } from './definition.ts';

/** Why a task stops where it runs. */
export type TaskEndCause =
  /** Its definition was deleted. */
  | 'removed'
  /** Its definition is another. */
  | 'changed'
  /** It goes on elsewhere. */
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

/** One run of a task, as who runs it sees it. */
export interface Task {
  readonly name: TaskName;
  readonly spec: Json;
  readonly persistent: boolean;
  readonly application: Application;
  /** It is being created: what is not there from the beginning is a failure. */
  readonly isNew: boolean;
  /** Aborts when the run must end at once, with a TaskEnd. */
  readonly signal: AbortSignal;
  /** Greater than that of every owner before. */
  readonly fence: number;
  /** To be asked right before every effect on others: true only while nobody else can run the task. */
  readonly valid: boolean;
  /** What the run before kept last, here or on another node. */
  readonly progress: Json | undefined;
  /** Keeps what the next run continues from: small JSON. */
  keep(progress: Json): void;
  /** It works: who creates it is answered. */
  started(): void;
}

/** How tasks of one kind are run. */
export interface TaskKind {
  readonly name: string;
  /** How long progress is kept when nobody runs the task. */
  readonly keepMs: number;
  /** The output stream that a task runs beside, and follows to other nodes; absent for kinds that run anywhere. */
  readonly follows?: (spec: Json) => string;
  /**
   * Runs a task until it is over: then its definition is deleted. A failure is tried again, after a pause.
   * It settles as soon as it can when the signal aborts.
   */
  run(task: Task): Promise<void>;
}
