import { UnavailableError, type Cluster, type Json, type Lease } from '#cluster';
import type { Application } from '../core/application.ts';
import { BackOff } from '../lib/back-off.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { SyncedLease } from '../directory/synced-lease.ts';
import type { KindCounts } from './counts.ts';
import { isSameButSpec, isSameTask, type TaskDefinition, type TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { isStreamKind, TaskEnd, type StreamTask, type Task, type TaskKind } from './kind.ts';
import { applicationOf } from './own-application.ts';
import { pause } from '../lib/pause.ts';
import { liveOutput, type LiveOutput } from './live-output.ts';
import { isNewer, newest, readProgress, type Progress } from './progress.ts';
import type { StandIn } from './stand-in.ts';

const LONGEST_PAUSE_MS = 5000;
/** After a run of this length the pauses between attempts are short again. */
const LASTING_MS = 10_000;
/** Pause after progress could not be saved. */
const SAVE_AGAIN_MS = 2000;
/** Time between two writes of progress to the claim: a run may keep with every packet. */
const KEEP_MS = 1000;
/** How often a node that runs alone saves progress: there is no other node that could inherit it. */
const ALONE_MS = 5000;

export interface TaskRunnerOptions {
  readonly kind: TaskKind;
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  readonly definitions: TaskDefinitions;
  readonly counts: KindCounts;
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly lease: Lease;
  /** Called with the last state of a run that is over because the task was deleted, and with nothing when one begins. */
  readonly onLast: (report: Json | undefined) => void;
  /** Not defined yet: the definition is written when the task has started. */
  readonly isNew: boolean;
  /** Progress that an earlier run on this node could not save. */
  readonly unsaved: Progress | undefined;
  /** A first run that is ready. */
  readonly standIn: StandIn | undefined;
  readonly log: Logger;
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
  readonly #lease: SyncedLease;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  readonly #start = Promise.withResolvers<void>();
  #definition: TaskDefinition;
  #isNew: boolean;
  #isUseful = false;
  #progress: Progress | undefined;
  #step = 0;
  /** Why it ends. */
  #end: TaskEnd | undefined;
  #run = new AbortController();
  #rest = new AbortController();
  /** Its stream is not here, and its progress is not saved yet. */
  #isLeaving = false;
  #isRunning = false;
  #report: (() => Json) | undefined;
  /** The run goes on with another spec. */
  #changed: ((spec: Json) => void) | undefined;
  /** The run chooses when it is handed over. */
  #handsOver: ((leave: () => void) => void) | undefined;
  /** It is to be handed over, at the end of this run at the latest. */
  #departure: (() => void) | undefined;
  #standIn: StandIn | undefined;
  #checkpoint: NodeJS.Timeout | undefined;

  constructor(options: TaskRunnerOptions) {
    const { lease, definition, isNew, unsaved, standIn, log } = options;
    this.#options = options;
    this.#standIn = standIn;
    this.#definition = definition;
    this.#isNew = isNew;
    const own = unsaved?.uid === this.#uid ? unsaved : undefined;
    this.#progress = newest(readProgress(lease.inherited, this.#uid), definition.progress, own);
    this.#lease = new SyncedLease(lease, { kept: () => (this.#progress ?? null) as Json, keepEveryMs: KEEP_MS }, log);
    this.started = this.#start.promise;
    this.started.catch(() => undefined);
    const onLost = (): void => void this.stop(new TaskEnd('lost', (lease.signal.reason as Error).message));
    if (lease.signal.aborted) onLost();
    lease.signal.addEventListener('abort', onLost, { once: true });
    this.over = this.#hold().catch((error: unknown) =>
      log.error({ ...options.name, err: error }, 'the task ended because of an internal error'),
    );
  }

  /** It has no definition yet. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** False as long as this node could not run the task, for example without room for its application. */
  get isUseful(): boolean {
    return this.#isUseful;
  }

  /**
   * Progress that belongs in the definition and is not there yet: that of a task that follows a stream, and that of any
   * task that is complete.
   */
  get unsaved(): Progress | undefined {
    const { kind, definitions, name } = this.#options;
    const definition = definitions.get(name);
    if (this.#progress === undefined || definition === undefined) return undefined;
    if (!isStreamKind(kind) && !this.#isOver) return undefined;
    const isKnown = (definition.uid ?? '') !== this.#uid || !isNewer(this.#progress, definition.progress);
    return isKnown ? undefined : this.#progress;
  }

  /** It is running at the moment, and neither waiting to be tried again nor about to leave. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Others would miss something if its run ended here before another node is ready to go on. */
  get isInterruptible(): boolean {
    return this.#handsOver !== undefined;
  }

  /** The state that the task reports; undefined when it reports none. */
  get report(): Json | undefined {
    return this.#report?.();
  }

  /** It is defined now, or differently: another spec begins a new run, unless the run listens to changes. */
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
    if (definition.progress?.over === true && !this.#isOver) {
      this.#progress = definition.progress;
      this.#run.abort(new TaskEnd('removed', 'an earlier owner completed the task'));
      this.#rest.abort();
      return;
    }
    if (isSameTask(before, definition)) return;
    if (this.#changed !== undefined && isSameButSpec(before, definition)) return this.#changed(definition.spec);
    this.#run.abort(new TaskEnd('changed', 'the task was changed'));
    this.#rest.abort();
  }

  /** Its stream may be back, or the store. */
  look(): void {
    if (this.#isLeaving) this.#rest.abort();
  }

  /** Ends it here at a moment that the run chooses, unless the signal aborts before. */
  handOver(end: TaskEnd, signal: AbortSignal): void {
    const leave = (): void => {
      if (!signal.aborted) void this.stop(end);
    };
    if (this.#handsOver === undefined) return leave();
    this.#departure = leave;
    this.#handsOver(leave);
  }

  /** Ends it here, at once. Resolves when it has ended. */
  stop(end: TaskEnd): Promise<void> {
    this.#end ??= end;
    this.#run.abort(this.#end);
    this.#rest.abort();
    return this.over;
  }

  async #hold(): Promise<void> {
    // the creator gets this object before it can end
    await Promise.resolve();
    try {
      while (this.#end === undefined) await this.#turn();
    } finally {
      this.#start.reject(this.#end ?? new TaskEnd('removed', 'the task has ended'));
      this.#sign();
      clearTimeout(this.#checkpoint);
      this.#standIn?.close();
      await this.#saveOrTell();
      await this.#lease.release();
    }
  }

  /** One run, and what its end leads to. */
  async #turn(): Promise<void> {
    const since = performance.now();
    try {
      if (!this.#isOver && (await this.#runOnce())) this.#keep(this.#progress?.value ?? null, true);
      if (this.#isOver) await this.#finish();
    } catch (error) {
      if (this.#end !== undefined) return;
      if (this.#isNew) {
        this.#start.reject(error);
        this.#end = new TaskEnd('removed', 'the task could not be started');
        return;
      }
      const { log, name, counts } = this.#options;
      counts.failed++;
      const fields = { event: 'task.failed', ...name, ...reasonOf(error) } as const;
      if (this.#isOver) log.debug(fields, 'the task is complete but its definition could not be deleted: trying again');
      else log.warn(fields, 'the task failed and will be tried again');
      if (performance.now() - since > LASTING_MS) this.#backOff.reset();
      await this.#pauseHere(this.#backOff.next());
    }
  }

  /** @throws UnavailableError and the like, when it is to be tried again */
  async #finish(): Promise<void> {
    const { definitions, name } = this.#options;
    if (this.#end === undefined && !this.#isNew) await definitions.remove(name);
    this.#end ??= new TaskEnd('removed', 'the task is over');
  }

  /** @returns whether the task is over for good */
  async #runOnce(): Promise<boolean> {
    const { kind, name, definitions } = this.#options;
    const definition = this.#definition;
    if (!this.#isNew && definitions.isLeftOver(name, definition)) return true;
    // after a change, the loop begins anew with a signal of its own
    this.#run = new AbortController();
    if (isStreamKind(kind)) {
      const live = this.#live;
      if (live !== undefined) return await this.#runBeside(live, definition, kind.run.bind(kind));
      await this.#leave();
      return false;
    }
    const application = applicationOf(this.#options.registry, name);
    if (application === undefined) {
      this.#end = new TaskEnd('handedOver', 'this node does not have the application');
      return false;
    }
    const ready = this.#standIn?.take(definition, application);
    this.#standIn = undefined;
    return await this.#runIn(application, definition, ready ?? ((task) => kind.run(task)));
  }

  async #runBeside(
    { application, output }: LiveOutput,
    definition: TaskDefinition,
    run: (task: StreamTask) => Promise<void>,
  ): Promise<boolean> {
    const { signal } = this.#run;
    const stop = this.#run;
    const onGone = (): void => stop.abort(endOf(application, definition));
    output.once('close', onGone);
    try {
      return await this.#runIn(application, definition, (task) => run(Object.assign(task, { output })));
    } finally {
      output.off('close', onGone);
      if (signal.aborted && (signal.reason as TaskEnd).reason === 'streamGone') this.#backOff.reset();
    }
  }

  async #runIn(
    application: Application,
    definition: TaskDefinition,
    run: (task: Task) => Promise<void>,
  ): Promise<boolean> {
    this.#begin();
    const { onLast } = this.#options;
    onLast(undefined);
    const stop = this.#run;
    const { signal } = stop;
    const onClose = (): void => stop.abort(endOf(application, definition));
    application.once('close', onClose);
    this.#isRunning = true;
    this.#options.counts.started++;
    try {
      await run(this.#task(definition, application, signal));
      if (!signal.aborted) return true;
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      application.off('close', onClose);
      if (this.#end?.reason === 'removed') onLast(this.report);
      this.#report = undefined;
      this.#changed = undefined;
      this.#handsOver = undefined;
      this.#isRunning = false;
      this.#departure?.();
    }
    const end = signal.reason as TaskEnd;
    return end.reason === 'applicationClosed' && (this.#isNew || !definition.persistent);
  }

  /** Saves the progress in the definition and releases the task until its stream exists again. */
  async #leave(): Promise<void> {
    const { log, name } = this.#options;
    this.#sign();
    try {
      await this.#save();
      this.#isUseful = true;
      if (!this.#isHere) this.#end ??= new TaskEnd('streamGone', 'its stream is not on this node');
    } catch (error) {
      // it continues here if the stream is back before the store
      log.debug({ ...name, ...reasonOf(error) }, 'the progress of the task could not be saved: trying again');
      if (this.#isHere) return;
      this.#isLeaving = true;
      await this.#pause(SAVE_AGAIN_MS);
      this.#isLeaving = false;
    }
  }

  /** By the fence of the saved progress other nodes see that this owner has saved everything. */
  #sign(): void {
    const { lease, kind } = this.#options;
    if (isStreamKind(kind) && this.#progress?.fence !== lease.fence) this.#keep(this.#progress?.value ?? null);
  }

  #begin(): void {
    const { log, name, lease } = this.#options;
    if (!this.#isUseful && !this.#isNew)
      log.info({ event: 'task.started', ...name, fence: lease.fence }, 'this node runs the task');
    this.#isUseful = true;
  }

  #task({ spec, persistent }: TaskDefinition, application: Application, signal: AbortSignal): Task {
    const { name, lease } = this.#options;
    const isNew = this.#isNew;
    return {
      name,
      spec,
      persistent,
      application,
      isNew,
      signal,
      progress: this.#progress?.value ?? undefined,
      get fence() {
        return lease.fence;
      },
      get valid() {
        return lease.valid && !signal.aborted;
      },
      keep: (value) => this.#keep(value),
      started: () => this.#start.resolve(),
      show: (report) => {
        this.#report = report;
      },
      changed: (listener) => {
        this.#changed = listener;
      },
      handsOver: (listener) => {
        this.#handsOver = listener;
      },
    };
  }

  #keep(value: Json, isOver = this.#isOver): void {
    const { lease, kind, cluster } = this.#options;
    this.#progress = { uid: this.#uid, fence: lease.fence, step: ++this.#step, value, ...(isOver && { over: true }) };
    this.#lease.keep();
    if (this.#checkpoint !== undefined || !isStreamKind(kind) || cluster.nodes().length > 1) return;
    // all tasks at the same time: each write is one of the whole file
    const inMs = ALONE_MS - (performance.now() % ALONE_MS);
    this.#checkpoint = setTimeout(() => {
      this.#checkpoint = undefined;
      void this.#saveOrTell();
    }, inMs).unref();
  }

  /** @throws UnavailableError, StorageError, ConflictError */
  async #save(): Promise<void> {
    const { definitions, name } = this.#options;
    const { unsaved } = this;
    if (unsaved !== undefined) await definitions.save(name, unsaved);
  }

  async #saveOrTell(): Promise<void> {
    const { log, name } = this.#options;
    await this.#save().catch((error: unknown) =>
      log.debug({ ...name, ...reasonOf(error) }, 'the progress of the task could not be saved'),
    );
  }

  async #pause(forMs: number): Promise<void> {
    if (this.#end !== undefined) return;
    this.#rest = new AbortController();
    await pause(forMs, this.#rest.signal);
  }

  /** Pauses only as long as its stream is here: another node may have the stream next, and must find the task free. */
  async #pauseHere(forMs: number): Promise<void> {
    const output = this.#live?.output;
    if (output === undefined) {
      if (this.#isOver || !isStreamKind(this.#options.kind)) await this.#pause(forMs);
      return;
    }
    const onGone = (): void => this.#rest.abort();
    output.once('close', onGone);
    await this.#pause(forMs);
    output.off('close', onGone);
  }

  /** There is nothing more to do but to delete the definition. */
  get #isOver(): boolean {
    return this.#progress?.over === true;
  }

  get #uid(): string {
    return this.#definition.uid ?? '';
  }

  /** Whether its stream is on this node. */
  get #isHere(): boolean {
    return this.#live !== undefined;
  }

  /** Its stream, when that is on this node. */
  get #live(): LiveOutput | undefined {
    return liveOutput(this.#options, this.#options.name, this.#definition);
  }
}

/** A stream that ends with its application does not come back as long as that is closed. */
function endOf({ closed }: Application, { origin }: TaskDefinition): TaskEnd {
  if (origin !== undefined) return new TaskEnd('removed', 'its stream has ended');
  return closed
    ? new TaskEnd('applicationClosed', 'the application was closed')
    : new TaskEnd('streamGone', 'its stream has ended');
}

/** Errors that are meant for clients are logged without a stack. */
function reasonOf(error: unknown): object {
  return error instanceof KilnError || error instanceof UnavailableError ? { reason: error.message } : { err: error };
}
