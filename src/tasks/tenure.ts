import { isDeepStrictEqual } from 'node:util';
import { UnavailableError, type Json, type Lease } from '#cluster';
import type { Application } from '../core/application.ts';
import { BackOff } from '../core/back-off.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { ToldLease } from '../origins/told-lease.ts';
import type { TaskDefinition, TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { TaskEnd, type Task, type TaskKind } from './kind.ts';
import { pause } from './pause.ts';

const LONGEST_PAUSE_MS = 5000;
/** A run that has lasted so long did not fail for what it began with. */
const LASTING_MS = 10_000;

export interface TenureOptions {
  readonly kind: TaskKind;
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  readonly definitions: TaskDefinitions;
  readonly registry: Registry;
  readonly lease: Lease;
  /** There is no definition yet: it becomes one when the task has started. */
  readonly isNew: boolean;
  readonly log: Logger;
}

/** This node's ownership of a task: runs it, again when it failed, until it is over or somebody else's. */
export class Tenure {
  /** Resolves when the lease is given back. Never rejects. */
  readonly over: Promise<void>;
  /** Resolves when the task works; rejects with what a new one failed for. */
  readonly started: Promise<void>;
  readonly #options: TenureOptions;
  readonly #told: ToldLease;
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  readonly #start = Promise.withResolvers<void>();
  #definition: TaskDefinition;
  #isNew: boolean;
  #hasBegun = false;
  /** There is nothing more to do but to delete the definition. */
  #isOver = false;
  #progress: Json | undefined;
  /** Why it ends. */
  #end: TaskEnd | undefined;
  #run = new AbortController();

  constructor(options: TenureOptions) {
    const { lease, definition, isNew, log } = options;
    this.#options = options;
    this.#definition = definition;
    this.#isNew = isNew;
    this.#progress = lease.inherited;
    this.#told = new ToldLease(lease, { kept: () => this.#progress ?? null }, log);
    this.started = this.#start.promise;
    this.started.catch(() => undefined);
    const onLost = (): void => void this.stop(new TaskEnd('lost', (lease.signal.reason as Error).message));
    if (lease.signal.aborted) onLost();
    lease.signal.addEventListener('abort', onLost, { once: true });
    this.over = this.#hold().catch((error: unknown) =>
      log.error({ ...options.name, err: error }, 'a task ended by a fault'),
    );
  }

  /** It has no definition yet. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** False until this node has its application, as when there is no room for that. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** It is defined now, or differently: another spec begins a new run. */
  define(definition: TaskDefinition): void {
    const before = this.#definition;
    this.#definition = definition;
    this.#isNew = false;
    if (before !== definition && !isDeepStrictEqual(before, definition))
      this.#run.abort(new TaskEnd('changed', 'the task was changed'));
  }

  /** Ends it here, at once. Resolves when it has ended. */
  stop(end: TaskEnd): Promise<void> {
    this.#end ??= end;
    this.#run.abort(this.#end);
    return this.over;
  }

  async #hold(): Promise<void> {
    // who makes this sees it before it can end
    await Promise.resolve();
    try {
      while (this.#end === undefined) await this.#step();
    } finally {
      this.#start.reject(this.#end ?? new TaskEnd('removed', 'the task has ended'));
      await this.#told.release();
    }
  }

  /** One run, and what follows of how it ended. */
  async #step(): Promise<void> {
    const since = performance.now();
    try {
      this.#isOver ||= await this.#runOnce();
      if (this.#isOver) await this.#finish();
    } catch (error) {
      if (this.#end !== undefined) return;
      if (this.#isNew) {
        this.#start.reject(error);
        this.#end = new TaskEnd('removed', 'the task could not be started');
        return;
      }
      const { log, name } = this.#options;
      log.warn({ ...name, ...reasonOf(error) }, 'a task failed: it is tried again');
    }
    if (this.#end !== undefined) return;
    if (performance.now() - since > LASTING_MS) this.#backOff.reset();
    await pause(this.#backOff.next(), this.#run.signal);
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
    // after a change, the loop begins anew with a signal of its own
    if (this.#run.signal.aborted && this.#end === undefined) this.#run = new AbortController();
    const { signal } = this.#run;
    const application = this.#application();
    if (application === undefined) {
      if (definitions.isLeftOver(name, definition)) return true;
      this.#end = new TaskEnd('handedOver', 'this node does not have its application');
      return false;
    }
    this.#begin();
    const onClose = (): void => this.#run.abort(new TaskEnd('applicationClosed', 'the application was closed'));
    application.once('close', onClose);
    try {
      await kind.run(this.#task(definition, application, signal));
      if (!signal.aborted) return true;
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      application.off('close', onClose);
    }
    const end = signal.reason as TaskEnd;
    if (end.reason === 'applicationClosed') return this.#isNew || !definition.persistent;
    return false;
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { log, name, lease } = this.#options;
    if (!this.#isNew) log.info({ ...name, fence: lease.fence }, 'this node runs a task');
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
      progress: this.#progress ?? undefined,
      get fence() {
        return lease.fence;
      },
      get valid() {
        return lease.valid && !signal.aborted;
      },
      keep: (progress) => {
        this.#progress = progress;
        this.#told.keep();
      },
      started: () => this.#start.resolve(),
    };
  }

  #application(): Application | undefined {
    const { registry, name } = this.#options;
    try {
      return registry.vhosts.get(name.vhost)?.demandApplication(name.app);
    } catch (error) {
      if (error instanceof KilnError) return undefined;
      throw error;
    }
  }
}

/** What a client would be told needs no stack. */
function reasonOf(error: unknown): object {
  return error instanceof KilnError || error instanceof UnavailableError ? { reason: error.message } : { err: error };
}
