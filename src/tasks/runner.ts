import type { Cluster, Json } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import { pause } from '../lib/pause.ts';
import type { Registry } from '../core/registry.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { KindCounts } from './counts.ts';
import { isSameButSpec, isSameTask, type TaskDefinition } from './definition.ts';
import { isStreamKind, TaskEnd, type Task } from './kind.ts';
import { applicationOf } from './own-application.ts';
import { liveOutput, type LiveOutput } from './live-output.ts';
import { OwnedProgress, type OwnedProgressOptions } from './owned-progress.ts';
import type { TaskProgress } from './progress.ts';
import { TaskRun, type TaskRunOptions } from './run.ts';
import type { StandIn } from './stand-in.ts';
import { reasonOf } from './store-failure.ts';

const LONGEST_PAUSE_MS = 5000;
/** After a run of this length the pauses between attempts are short again. */
const LASTING_MS = 10_000;
/** Pause after progress could not be saved. */
const SAVE_AGAIN_MS = 2000;

/**
 * Phase of a runner. It begins between runs, and only these transitions exist:
 *
 *     between runs -> running   its application, or the stream that it follows, is on this node
 *     between runs -> pausing   a run or a deletion has failed, or progress could not be saved
 *     running, pausing -> between runs   (`settled`)
 *     any -> ending   (`stopped`), which is final
 */
type Phase =
  /** Chooses the next step, saves progress, or deletes the definition. */
  | { readonly kind: 'between runs' }
  | { readonly kind: 'running'; readonly run: TaskRun }
  | { readonly kind: 'pausing'; readonly after: 'failure' | 'failed save'; readonly wake: AbortController }
  /** `run`: the last one, until it has ended. */
  | { readonly kind: 'ending'; readonly cause: TaskEnd; readonly run?: TaskRun };

/** The phase after the end of a run or a pause. */
function settled(phase: Phase): Phase {
  return phase.kind === 'ending' ? { kind: 'ending', cause: phase.cause } : { kind: 'between runs' };
}

/** The phase after a stop. The first cause counts. */
function stopped(phase: Phase, cause: TaskEnd): Phase {
  if (phase.kind === 'ending') return phase;
  return { kind: 'ending', cause, ...(phase.kind === 'running' && { run: phase.run }) };
}

/** Ends a run or a pause early. */
function interrupt(phase: Phase, cause: TaskEnd): void {
  if (phase.kind === 'running') phase.run.stop(cause);
  else if (phase.kind === 'pausing') phase.wake.abort();
}

export interface TaskRunnerOptions extends OwnedProgressOptions {
  readonly counts: KindCounts;
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  /** Called with the last state of a run that is over because the task was deleted, and with nothing when one begins. */
  readonly onLast: (report: Json | undefined) => void;
  /** Not defined yet: the definition is written when the task has started. */
  readonly isNew: boolean;
  /** A first run that is ready. */
  readonly standIn: StandIn | undefined;
}

/**
 * Runs a task on this node, which has its lease. It runs again after a failure or a change, until it is complete, its
 * stream is no longer here, or the lease is lost.
 */
export class TaskRunner {
  /** Resolves when the lease is released. Never rejects. */
  readonly over: Promise<void>;
  /** Resolves when the task works; rejects with the reason when a new one failed. */
  readonly started: Promise<void>;
  readonly #options: TaskRunnerOptions;
  readonly #progress: OwnedProgress;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  readonly #start = Promise.withResolvers<void>();
  #phase: Phase = { kind: 'between runs' };
  #definition: TaskDefinition;
  #isNew: boolean;
  #isUseful = false;

  constructor(options: TaskRunnerOptions) {
    const { lease, definition, isNew, log } = options;
    this.#options = options;
    this.#definition = definition;
    this.#isNew = isNew;
    this.#progress = new OwnedProgress(options);
    this.started = this.#start.promise;
    this.started.catch(() => undefined);
    const onLost = (): void => void this.stop(new TaskEnd('lost', (lease.signal.reason as Error).message));
    if (lease.signal.aborted) onLost();
    lease.signal.addEventListener('abort', onLost, { once: true });
    this.over = this.#hold().catch((error: unknown) =>
      log.error({ ...options.name, err: error }, 'the task ended because of an internal error'),
    );
  }

  /** Whether the task has no definition yet. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** False as long as this node could not run the task, for example without room for its application. */
  get isUseful(): boolean {
    return this.#isUseful;
  }

  /** Progress that belongs in the definition and is not there yet. */
  get unsaved(): TaskProgress | undefined {
    return this.#progress.unsaved;
  }

  /** True during a run, until it has ended. */
  get isRunning(): boolean {
    return this.#run !== undefined;
  }

  /** Whether others would miss something if the run ended here before another node is ready to go on. */
  get isInterruptible(): boolean {
    return this.#run?.isInterruptible === true;
  }

  /** The state that the run reports; undefined when it reports none. */
  get report(): Json | undefined {
    return this.#run?.report;
  }

  /** Sets the first or a changed definition: another spec begins a new run, unless the run listens to changes. */
  define(definition: TaskDefinition): void {
    const before = this.#definition;
    // another task under the same id has nothing to do with this one
    if ((before.uid ?? '') !== (definition.uid ?? '')) {
      void this.stop(new TaskEnd('removed', 'the task was created again'));
      return;
    }
    this.#definition = definition;
    this.#isNew = false;
    if (before.origin?.node !== definition.origin?.node)
      void this.stop(new TaskEnd('handedOver', 'another node has its stream'));
    if (definition.progress?.over === true && !this.#progress.isOver) {
      this.#progress.adopt(definition.progress);
      return interrupt(this.#phase, new TaskEnd('removed', 'an earlier owner completed the task'));
    }
    if (isSameTask(before, definition)) return;
    if (isSameButSpec(before, definition) && this.#run?.change(definition.spec) === true) return;
    interrupt(this.#phase, new TaskEnd('changed', 'the task was changed'));
  }

  /** Its stream may be back, or the store: progress that could not be saved is saved again, or continued. */
  look(): void {
    if (this.#phase.kind === 'pausing' && this.#phase.after === 'failed save') this.#phase.wake.abort();
  }

  /** Ends the task here at a moment that the run chooses, unless the signal aborts before. */
  handOver(cause: TaskEnd, signal: AbortSignal): void {
    const leave = (): void => {
      if (!signal.aborted) void this.stop(cause);
    };
    if (this.#run === undefined) leave();
    else this.#run.handOver(leave);
  }

  /** Ends the task here, at once. Resolves when it has ended. */
  stop(cause: TaskEnd): Promise<void> {
    const before = this.#phase;
    this.#phase = stopped(before, cause);
    interrupt(before, cause);
    return this.over;
  }

  get #run(): TaskRun | undefined {
    return 'run' in this.#phase ? this.#phase.run : undefined;
  }

  /** Why the runner ends; undefined while it does not. */
  get #cause(): TaskEnd | undefined {
    return this.#phase.kind === 'ending' ? this.#phase.cause : undefined;
  }

  /** Its stream, when that is on this node. */
  get #live(): LiveOutput | undefined {
    return liveOutput(this.#options, this.#options.name, this.#definition);
  }

  async #hold(): Promise<void> {
    // the creator gets this object before it can end
    await Promise.resolve();
    try {
      while (this.#cause === undefined) await this.#step();
    } finally {
      this.#start.reject(this.#cause ?? new TaskEnd('removed', 'the task has ended'));
      this.#options.standIn?.close();
      await this.#progress.release();
    }
  }

  /** One run, and the consequences of its end. */
  async #step(): Promise<void> {
    const since = performance.now();
    try {
      if (!this.#progress.isOver && (await this.#attempt())) this.#progress.complete();
      if (this.#progress.isOver) await this.#finish();
    } catch (error) {
      await this.#onFailure(error, performance.now() - since);
    }
  }

  /** Runs the task where that is possible. @returns whether it is over for good */
  async #attempt(): Promise<boolean> {
    const { kind, name, definitions, registry, standIn } = this.#options;
    const definition = this.#definition;
    if (!this.#isNew && definitions.isLeftOver(name, definition)) return true;
    if (isStreamKind(kind)) {
      const live = this.#live;
      if (live !== undefined)
        return await this.#runIn(live, (task) => kind.run(Object.assign(task, { output: live.output })));
      await this.#saveAndEnd();
      return false;
    }
    const application = applicationOf(registry, name);
    if (application === undefined) {
      void this.stop(new TaskEnd('handedOver', 'this node does not have the application'));
      return false;
    }
    const ready = standIn?.take(definition, application);
    return await this.#runIn({ application }, ready ?? ((task) => kind.run(task)));
  }

  /** @returns whether the task is over for good */
  async #runIn(
    place: Pick<TaskRunOptions, 'application' | 'output'>,
    start: (task: Task) => Promise<void>,
  ): Promise<boolean> {
    const { name, lease, counts, onLast } = this.#options;
    const definition = this.#definition;
    const onStarted = (): void => this.#start.resolve();
    const state = { definition, isNew: this.#isNew, progress: this.#progress };
    const run = new TaskRun({ ...place, ...state, name, lease, onStarted });
    this.#logFirst();
    onLast(undefined);
    this.#phase = { kind: 'running', run };
    counts.started++;
    let stop: TaskEnd | undefined;
    try {
      stop = await run.execute(start);
    } finally {
      if (this.#cause?.reason === 'removed') onLast(run.report);
      this.#phase = settled(this.#phase);
      run.leave();
    }
    if (stop?.reason === 'streamGone') this.#backOff.reset();
    const hasGone = stop?.reason === 'applicationClosed' && (this.#isNew || !definition.persistent);
    return stop === undefined || hasGone;
  }

  /** Deletes the definition of a task that is complete. @throws UnavailableError and the like, when it is to be tried again */
  async #finish(): Promise<void> {
    const { definitions, name } = this.#options;
    if (this.#cause === undefined && !this.#isNew) await definitions.remove(name);
    void this.stop(new TaskEnd('removed', 'the task is over'));
  }

  async #onFailure(error: unknown, afterMs: number): Promise<void> {
    if (this.#cause !== undefined) return;
    if (this.#isNew) {
      this.#start.reject(error);
      void this.stop(new TaskEnd('removed', 'the task could not be started'));
      return;
    }
    const { log, name, counts } = this.#options;
    const { isOver } = this.#progress;
    counts.failed++;
    const fields = { event: 'task.failed', ...name, ...reasonOf(error) } as const;
    if (isOver) log.debug(fields, 'the task is complete but its definition could not be deleted: trying again');
    else log.warn(fields, 'the task failed and will be tried again');
    if (afterMs > LASTING_MS) this.#backOff.reset();
    await this.#pauseHere(this.#backOff.next());
  }

  /** Saves the progress in the definition and releases the task until its stream exists again. */
  async #saveAndEnd(): Promise<void> {
    const { log, name } = this.#options;
    this.#progress.sign();
    try {
      await this.#progress.save();
      this.#isUseful = true;
      if (this.#live === undefined) void this.stop(new TaskEnd('streamGone', 'its stream is not on this node'));
    } catch (error) {
      // it continues here if the stream is back before the store
      log.debug({ ...name, ...reasonOf(error) }, 'the progress of the task could not be saved: trying again');
      if (this.#live === undefined) await this.#pause('failed save', SAVE_AGAIN_MS);
    }
  }

  #logFirst(): void {
    const { log, name, lease } = this.#options;
    if (!this.#isUseful && !this.#isNew)
      log.info({ event: 'task.started', ...name, fence: lease.fence }, 'this node runs the task');
    this.#isUseful = true;
  }

  /** Pauses only as long as its stream is here: another node may have the stream next, and must find the task free. */
  async #pauseHere(forMs: number): Promise<void> {
    const output = this.#live?.output;
    if (output !== undefined || this.#progress.isOver || !isStreamKind(this.#options.kind))
      await this.#pause('failure', forMs, output);
  }

  /** @param output whose end ends the pause */
  async #pause(after: 'failure' | 'failed save', forMs: number, output?: OutputStream): Promise<void> {
    if (this.#cause !== undefined) return;
    const wake = new AbortController();
    const onGone = (): void => wake.abort();
    output?.once('close', onGone);
    this.#phase = { kind: 'pausing', after, wake };
    await pause(forMs, wake.signal);
    this.#phase = settled(this.#phase);
    output?.off('close', onGone);
  }
}
