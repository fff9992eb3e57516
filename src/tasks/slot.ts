import { UnavailableError, type Cluster, type Json, type Owner } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { claimDelay, STEP_MS } from './claim-delay.ts';
import type { KindCounts } from './counts.ts';
import { taskKey, type TaskDefinition, type TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { Fitness } from './fitness.ts';
import { TaskHandOver } from './hand-over.ts';
import { isStreamKind, TaskEnd, type TaskKind } from './kind.ts';
import { liveOutput } from './live-output.ts';
import { applicationConfigOf, applicationOf } from './own-application.ts';
import { TaskRunner } from './runner.ts';
import { StandIn } from './stand-in.ts';
import type { Limiter } from '../lib/limiter.ts';
import { UnsavedProgress } from './unsaved-progress.ts';

/** Pause after a claim that failed. */
const AGAIN_MS = 1000;
/** The longest pause after claims that were of no use. */
const LONGEST_PAUSE_MS = 30_000;
/** How long the store keeps progress for the next owner. */
const KEPT_MS = 3_600_000;

/**
 * Phase of a slot. It begins idle, and only these transitions exist:
 *
 *     idle -> waiting      the task needs an owner and has none
 *     waiting -> idle      it has one, or needs none any more
 *     waiting -> claiming  this node's turn has come
 *     idle, waiting -> claiming   the task is being created here
 *     claiming -> running  the claim was granted
 *     claiming -> waiting, idle   it was not: the wait goes on from where it began
 *     running -> idle      the task has ended here
 *     running -> claiming  the same, when its creation anew has waited for that
 *     any -> closed        which is final
 *
 * Times are milliseconds of the monotonic clock.
 */
type Phase =
  | { readonly kind: 'idle' }
  /** `since`: when the wait began. Without a timer this node must not claim the task at present. */
  | { readonly kind: 'waiting'; readonly since: number; readonly timer?: NodeJS.Timeout }
  | { readonly kind: 'claiming'; readonly since?: number | undefined }
  | { readonly kind: 'running'; readonly runner: TaskRunner; readonly isAwaited: boolean }
  | { readonly kind: 'closed'; readonly runner?: TaskRunner | undefined };

export interface TaskSlotOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly definitions: TaskDefinitions;
  readonly counts: KindCounts;
  readonly kind: TaskKind;
  readonly calls: PeerCalls;
  /** Limits how many claims a node makes at the same time. */
  readonly turns: Limiter;
  /** Limit how many tasks it hands over at the same time: because it drains, and because it lacks what they need. */
  readonly handOvers: Limiter;
  readonly moves: Limiter;
  readonly log: Logger;
  /** Called after each review with whether a change of nodes or of the store matters, and the stream that the task follows. */
  readonly onLook: (slot: TaskSlot, isOpen: boolean, stream: string | undefined) => void;
  /** As `TaskRunner` calls it. */
  readonly onLast: (report: Json | undefined) => void;
  /** Called when there is nothing left to decide. */
  readonly onEmpty: () => void;
}

/** One task as this node sees it: who owns it, and whether this node should claim or release it. */
export class TaskSlot {
  readonly name: TaskName;
  readonly #options: TaskSlotOptions;
  readonly #key: string;
  readonly #fitness: Fitness;
  readonly #handOver: TaskHandOver;
  /** After a claim that was of no use here, other nodes get a try. */
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  readonly #unsaved: UnsavedProgress;
  #phase: Phase = { kind: 'idle' };
  #owner: Owner | undefined;
  /** The owner before, as long as there is none. It may be gone without having saved the progress. */
  #former: Owner | undefined;
  /** Earliest time of the next claim. */
  #notBefore = 0;
  /** A run that is ready for the time after the present owner. */
  #standIn: StandIn | undefined;

  constructor(name: TaskName, options: TaskSlotOptions) {
    const { definitions, log } = options;
    this.name = name;
    this.#options = options;
    this.#key = taskKey(name);
    this.#fitness = new Fitness(() => this.consider(), log);
    this.#handOver = new TaskHandOver({ ...options, name, suits: (definition) => this.#suits(definition) });
    this.#unsaved = new UnsavedProgress(
      (progress) => definitions.save(name, progress),
      ({ message: reason }) =>
        log.debug({ ...name, reason }, 'the progress of the task could not be saved: trying again'),
    );
  }

  /** Resolves when the run on this node has ended; undefined when there is none. */
  get over(): Promise<void> | undefined {
    return this.runner?.over;
  }

  /** The owner, as far as this node knows. */
  get owner(): Owner | undefined {
    return this.#owner;
  }

  get runner(): TaskRunner | undefined {
    return 'runner' in this.#phase ? this.#phase.runner : undefined;
  }

  /** Sets the owner after a change. */
  setOwner(owner: Owner | undefined): void {
    const { incarnation: own } = this.#options.cluster.self;
    const before = this.#owner;
    this.#owner = owner;
    this.#former = owner === undefined ? (before ?? this.#former) : undefined;
    if (owner !== undefined && owner.incarnation !== own) {
      if (owner.incarnation !== before?.incarnation) this.#standIn?.close();
      this.#unsaved.onOwner(owner.fence);
    }
    this.consider();
  }

  /** Reviews what this node has to do. */
  consider(): void {
    if (this.#phase.kind === 'closed') return;
    const { definitions, kind, onLook, onEmpty } = this.#options;
    const definition = definitions.get(this.name);
    if (definition === undefined || this.#standIn?.isFor(definition) === false) this.#standIn?.close();
    if (this.runner !== undefined) this.#review(this.runner, definition);
    else if (definition !== undefined && this.#owner === undefined && this.#isWanted(definition))
      this.#wait(definition);
    else this.#rest(definition);
    const isIdle = this.#phase.kind === 'idle';
    const stream = definition !== undefined && isStreamKind(kind) ? kind.follows(definition.spec) : undefined;
    onLook(this, !isIdle, stream);
    if (definition === undefined && this.#owner === undefined && isIdle) onEmpty();
  }

  /**
   * Begins a task here that is not defined yet.
   * @returns undefined when it has an owner
   * @throws UnavailableError
   */
  async begin(definition: TaskDefinition): Promise<TaskRunner | undefined> {
    const phase = this.#phase;
    if (phase.kind === 'claiming' || phase.kind === 'closed') return undefined;
    if (phase.kind === 'running') {
      const isDeleted = !phase.runner.isNew && this.#options.definitions.get(this.name) === undefined;
      if (!isDeleted || phase.isAwaited) return undefined;
      this.#enter({ ...phase, isAwaited: true });
      await phase.runner.over;
    } else this.#enter({ kind: 'claiming' });
    try {
      return await this.#claim(definition, true);
    } finally {
      this.#endClaim();
    }
  }

  /**
   * Makes a run ready for the time after the present owner, unless this node lacks what the task needs.
   * @param anyway makes it ready even then
   * @returns whether it is ready
   */
  async standBy(anyway: boolean): Promise<boolean> {
    const { kind, definitions, cluster, registry, log } = this.#options;
    const definition = definitions.get(this.name);
    if (definition === undefined || cluster.draining || isStreamKind(kind)) return false;
    if (!anyway && !(await this.#suits(definition))) return false;
    const application = applicationOf(registry, this.name);
    if (application === undefined || kind.standBy === undefined) return false;
    if (this.#phase.kind === 'closed' || this.#phase.kind === 'running') return false;
    if (this.#standIn?.isFor(definition) !== true) {
      this.#standIn?.close();
      this.#standIn = new StandIn(kind.standBy.bind(kind), { name: this.name, definition, application }, log);
    }
    const { ready } = this.#standIn;
    this.#standIn.keep();
    return await ready;
  }

  /** Ends the run on this node, if there is one. Idempotent. */
  async close(): Promise<void> {
    this.#enter({ kind: 'closed', runner: this.runner });
    this.#standIn?.close();
    this.#unsaved.set(undefined);
    this.#handOver.cancel();
    await this.runner?.stop(new TaskEnd('handedOver', 'the node is stopping'));
  }

  #enter(phase: Phase): void {
    if (this.#phase.kind === 'waiting') clearTimeout(this.#phase.timer);
    this.#phase = phase;
  }

  /** Reviews a task that runs here. */
  #review(runner: TaskRunner, definition: TaskDefinition | undefined): void {
    if (definition !== undefined) runner.define(definition);
    else if (!runner.isNew) void runner.stop(new TaskEnd('removed', 'the task was deleted'));
    if (definition === undefined) return;
    const { cluster, kind } = this.#options;
    if (isStreamKind(kind)) runner.look();
    else if (cluster.draining) this.#handOver.begin(runner, definition);
    else if (kind.suits === undefined) this.#handOver.cancel();
    else this.#handOver.watch(runner, definition);
  }

  /** Claims the task, which needs an owner, when the turn of this node has come. */
  #wait(definition: TaskDefinition): void {
    const now = performance.now();
    const begun = 'since' in this.#phase ? this.#phase.since : undefined;
    if (begun === undefined) this.#fitness.forget();
    const since = begun ?? now;
    if (this.#phase.kind === 'claiming') return this.#enter({ kind: 'claiming', since });
    const delay = this.#delay(definition);
    const inMs = delay === undefined ? undefined : Math.max(since + delay, this.#notBefore) - now;
    if (inMs === undefined) this.#enter({ kind: 'waiting', since });
    else if (inMs > 0) this.#enter({ kind: 'waiting', since, timer: setTimeout(() => this.consider(), inMs).unref() });
    else void this.#take(since);
  }

  /** The task has an owner elsewhere, or needs none. */
  #rest(definition: TaskDefinition | undefined): void {
    this.#enter({ kind: this.#phase.kind === 'claiming' ? 'claiming' : 'idle' });
    if (definition === undefined) this.#unsaved.set(undefined);
  }

  /** Whether the task needs an owner. One whose stream does not exist waits without one. */
  #isWanted(definition: TaskDefinition): boolean {
    const { kind, definitions } = this.#options;
    if (!isStreamKind(kind) || definitions.isLeftOver(this.name, definition) || this.#isStreamHere(definition))
      return true;
    return this.#unsaved.progress !== undefined || this.#isProgressDue(definition);
  }

  /** Whether an owner that died has left progress with its claim, where it does not last. */
  #isProgressDue({ progress }: TaskDefinition): boolean {
    return this.#former !== undefined && (progress?.fence ?? 0) < this.#former.fence;
  }

  #isStreamHere(definition: TaskDefinition): boolean {
    return liveOutput(this.#options, this.name, definition) !== undefined;
  }

  /** Time without an owner before this node claims the task, in milliseconds; undefined if this node must not. */
  #delay(definition: TaskDefinition): number | undefined {
    if (this.#options.cluster.state === 'degraded') return undefined;
    const standsBy = this.#standIn?.isFor(definition) === true;
    if (this.#unsaved.progress !== undefined || standsBy || this.#isStreamHere(definition)) return 0;
    const options = { ...this.#options, fitness: this.#fitness };
    return claimDelay(options, this.name, definition, this.#formerElsewhere);
  }

  /** The owner before, unless that was this process. */
  get #formerElsewhere(): Owner | undefined {
    return this.#former?.incarnation === this.#options.cluster.self.incarnation ? undefined : this.#former;
  }

  /** Claims the task when not too many others are being claimed. */
  async #take(since: number): Promise<void> {
    const { definitions, turns } = this.#options;
    this.#enter({ kind: 'claiming', since });
    try {
      await turns.run(async () => {
        const definition = definitions.get(this.name);
        if (this.#owner !== undefined || definition === undefined || !this.#isWanted(definition)) return;
        await this.#claim(definition, false);
      });
    } catch (error) {
      this.#logFailure(error);
    }
    // the owner may be gone again before this node knows of it
    if (this.runner === undefined) this.#notBefore = Math.max(this.#notBefore, performance.now() + AGAIN_MS);
    this.#endClaim();
  }

  async #claim(definition: TaskDefinition, isNew: boolean): Promise<TaskRunner | undefined> {
    const { cluster, definitions } = this.#options;
    if (this.#phase.kind !== 'claiming') return undefined;
    const claim = await cluster.claim(this.#key, null, { silence: 'stop', keepMs: KEPT_MS });
    if ('owner' in claim) return undefined;
    const { lease } = claim;
    // a deletion looks for claims after it: so one of both notices the other
    if (!isNew) await cluster.config.sync();
    const present = definitions.get(this.name);
    if (this.#isClosed || (present === undefined) !== isNew) {
      void lease.release();
      return undefined;
    }
    const options = { ...this.#options, name: this.name, definition: present ?? definition };
    const unsaved = this.#unsaved.progress;
    const runner = new TaskRunner({ ...options, lease, isNew, unsaved, standIn: this.#standIn });
    this.#enter({ kind: 'running', runner, isAwaited: false });
    this.#standIn = undefined;
    this.#unsaved.set(undefined);
    if (this.#formerElsewhere !== undefined) this.#options.counts.takenOver++;
    this.#former = undefined;
    void runner.over.then(() => this.#onOver(runner));
    return runner;
  }

  get #isClosed(): boolean {
    return this.#phase.kind === 'closed';
  }

  /** A claim that was not granted leads back to where it came from. */
  #endClaim(): void {
    const phase = this.#phase;
    if (phase.kind === 'claiming' && phase.since !== undefined) this.#enter({ kind: 'waiting', since: phase.since });
    else if (phase.kind === 'claiming') this.#enter({ kind: 'idle' });
    this.consider();
  }

  #onOver(runner: TaskRunner): void {
    if (this.#phase.kind !== 'running') return;
    this.#handOver.cancel();
    this.#enter({ kind: this.#phase.isAwaited ? 'claiming' : 'idle' });
    this.#unsaved.set(runner.unsaved);
    if (this.#unsaved.progress !== undefined) this.#notBefore = performance.now() + AGAIN_MS;
    if (runner.isUseful) this.#backOff.reset();
    else this.#notBefore = performance.now() + STEP_MS + this.#backOff.next();
    // the known claims still include this one
    this.consider();
  }

  #logFailure(error: unknown): void {
    const { log } = this.#options;
    if (error instanceof UnavailableError)
      log.debug({ ...this.name, reason: error.message }, 'the task cannot be claimed');
    else log.error({ ...this.name, err: error }, 'the task cannot be claimed');
  }

  /** Whether this node has what the task needs. */
  async #suits({ spec }: TaskDefinition): Promise<boolean> {
    const { kind } = this.#options;
    const application = applicationConfigOf(this.#options.registry, this.name);
    if (application === undefined || isStreamKind(kind)) return false;
    return (await kind.suits?.(spec, application)) ?? true;
  }
}
