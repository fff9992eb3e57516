import type { Json, Lease } from '#cluster';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { TaskDefinition, TaskName } from './definition.ts';
import { TaskEnd, type Task } from './kind.ts';
import type { OwnedProgress } from './owned-progress.ts';

export interface TaskRunOptions {
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  readonly application: Application;
  /** The stream that the task follows, if it follows one. */
  readonly output?: OutputStream;
  readonly isNew: boolean;
  readonly lease: Lease;
  readonly progress: OwnedProgress;
  readonly onStarted: () => void;
}

/** One run of a task: until it ends by itself, its stream or application closes, or it is stopped. */
export class TaskRun {
  readonly #options: TaskRunOptions;
  readonly #abort = new AbortController();
  #report: (() => Json) | undefined;
  #onChange: ((spec: Json) => void) | undefined;
  #onHandOver: ((leave: () => void) => void) | undefined;
  /** Ends the runner's work: called by the run at a moment of its choice, and at its end at the latest. */
  #leave: (() => void) | undefined;

  constructor(options: TaskRunOptions) {
    this.#options = options;
  }

  /** The state that the run reports; undefined when it reports none. */
  get report(): Json | undefined {
    return this.#report?.();
  }

  /** Whether the run wants to choose when it is handed over. */
  get isInterruptible(): boolean {
    return this.#onHandOver !== undefined;
  }

  /** The first cause counts. */
  stop(cause: TaskEnd): void {
    this.#abort.abort(cause);
  }

  /** Continues with another spec. @returns false when the run does not listen to changes */
  change(spec: Json): boolean {
    this.#onChange?.(spec);
    return this.#onChange !== undefined;
  }

  /** @param leave called at a moment that the run chooses; at once when it does not care */
  handOver(leave: () => void): void {
    if (this.#onHandOver === undefined) return leave();
    this.#leave = leave;
    this.#onHandOver(leave);
  }

  /**
   * @returns why the run was stopped; undefined when the task is complete
   * @throws the failure of the run
   */
  async execute(run: (task: Task) => Promise<void>): Promise<TaskEnd | undefined> {
    const { application, output, definition } = this.#options;
    const { signal } = this.#abort;
    const onClose = (): void => this.stop(closed(application, definition));
    application.once('close', onClose);
    output?.once('close', onClose);
    try {
      await run(this.#task());
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      application.off('close', onClose);
      output?.off('close', onClose);
    }
    return signal.aborted ? (signal.reason as TaskEnd) : undefined;
  }

  /** The run has ended: a hand-over does not wait for it any longer. */
  leave(): void {
    this.#leave?.();
  }

  #task(): Task {
    const { name, definition, application, isNew, lease, progress, onStarted } = this.#options;
    const { signal } = this.#abort;
    return {
      name,
      spec: definition.spec,
      persistent: definition.persistent,
      application,
      isNew,
      signal,
      progress: progress.value ?? undefined,
      get fence() {
        return lease.fence;
      },
      get valid() {
        return lease.valid && !signal.aborted;
      },
      keep: (value) => progress.keep(value),
      started: onStarted,
      show: (report) => {
        this.#report = report;
      },
      changed: (listener) => {
        this.#onChange = listener;
      },
      handsOver: (listener) => {
        this.#onHandOver = listener;
      },
    };
  }
}

/** A stream that ends with its application does not come back as long as that is closed. */
function closed(application: Application, { origin }: TaskDefinition): TaskEnd {
  if (origin !== undefined) return new TaskEnd('removed', 'its stream has ended');
  return application.closed
    ? new TaskEnd('applicationClosed', 'the application was closed')
    : new TaskEnd('streamGone', 'its stream has ended');
}
