import { setTimeout as delay } from 'node:timers/promises';
import { ranked, UnavailableError, type Cluster, type Json, type Owner } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { KindCounts } from './counts.ts';
import { taskKey, type TaskDefinition, type TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { Fitness } from './fitness.ts';
import { HandOver } from './hand-over.ts';
import { isStreamKind, TaskEnd, type TaskKind } from './kind.ts';
import { liveOutput } from './live-output.ts';
import { applicationConfigOf, applicationOf } from './own-application.ts';
import type { TaskProgress } from './progress.ts';
import { TaskRunner } from './runner.ts';
import { StandIn } from './stand-in.ts';
import type { Limiter } from '../lib/limiter.ts';

/** How much later than the one before it each node of the ranking claims a task without an owner. */
const STEP_MS = 300;
/** How much later than the last of them a node claims it that lacks what the task needs. */
const UNSUITED_MS = 900;
/** Pause after a claim that failed. */
const AGAIN_MS = 1000;
/** The longest pause after claims that were of no use. */
const LONGEST_PAUSE_MS = 30_000;
/** An owner that was only cut off from the store has newer progress, and this time to come back with it. */
const RESCUE_MS = 5000;
/** How long the store keeps progress for the next owner. */
const KEPT_MS = 3_600_000;

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
  #owner: Owner | undefined;
  /** The owner before, as long as there is none. */
  #former: Owner | undefined;
  #runner: TaskRunner | undefined;
  #claiming = false;
  /** Since when it has no owner, and when it may be claimed at the earliest; milliseconds of the monotonic clock. */
  #vacantSince: number | undefined;
  #notBefore = 0;
  readonly #fitness: Fitness;
  /** After a claim that was of no use here, other nodes get a try. */
  readonly #backOff = new BackOff(LONGEST_PAUSE_MS);
  /** Fence of an owner that is gone, perhaps without saving the task's progress. */
  #lastFence: number | undefined;
  /** Progress that this node could not save when it stopped the task. */
  #unsaved: TaskProgress | undefined;
  #isSaving = false;
  readonly #handOver: HandOver;
  /** A run that is ready for the time after the present owner. */
  #standIn: StandIn | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(name: TaskName, options: TaskSlotOptions) {
    this.name = name;
    this.#options = options;
    this.#key = taskKey(name);
    this.#fitness = new Fitness(() => this.consider(), options.log);
    this.#handOver = new HandOver({ ...options, name, suits: (definition) => this.#suits(definition) });
  }

  /** Ends when what this node runs of it has ended. */
  get over(): Promise<void> | undefined {
    return this.#runner?.over;
  }

  /** The owner, as far as this node knows. */
  get owner(): Owner | undefined {
    return this.#owner;
  }

  get runner(): TaskRunner | undefined {
    return this.#runner;
  }

  /** The owner has changed. */
  setOwner(owner: Owner | undefined): void {
    const before = this.#owner;
    this.#owner = owner;
    this.#former = owner === undefined ? (before ?? this.#former) : undefined;
    // another node has come first
    const known = [before?.incarnation, this.#options.cluster.self.incarnation];
    if (owner !== undefined && !known.includes(owner.incarnation)) this.#standIn?.close();
    if (owner !== undefined) this.#onOwner(owner);
    else if (before !== undefined) this.#lastFence = before.fence;
    this.consider();
  }

  /** Reviews what to do. */
  consider(): void {
    if (this.#closed) return;
    const { definitions, kind } = this.#options;
    const definition = definitions.get(this.name);
    if (definition === undefined || this.#standIn?.isFor(definition) === false) this.#standIn?.close();
    if (this.#runner !== undefined) this.#review(this.#runner, definition);
    else if (definition !== undefined && this.#owner === undefined) this.#claimWhenDue(definition);
    else this.#cancelClaim(definition);
    const isIdle = this.#vacantSince === undefined && this.#runner === undefined;
    const stream = definition !== undefined && isStreamKind(kind) ? kind.follows(definition.spec) : undefined;
    this.#options.onLook(this, !isIdle, stream);
    if (definition === undefined && this.#owner === undefined && this.#runner === undefined && !this.#claiming)
      this.#options.onEmpty();
  }

  /**
   * Begins a task here that is not defined yet.
   * @returns undefined when it has an owner
   * @throws UnavailableError
   */
  async begin(definition: TaskDefinition): Promise<TaskRunner | undefined> {
    if (this.#claiming) return undefined;
    this.#claiming = true;
    try {
      // what was deleted is about to end
      const isDeleted = this.#options.definitions.get(this.name) === undefined;
      if (this.#runner?.isNew === false && isDeleted) await this.#runner.over;
      return this.#runner === undefined ? await this.#claim(definition, true) : undefined;
    } finally {
      this.#claiming = false;
      this.consider();
    }
  }

  /**
   * Earlier progress of this node is obsolete when another node owns the task. If this node has completed the task, the
   * owner has to know.
   */
  #onOwner({ incarnation, fence }: Owner): void {
    this.#lastFence = undefined;
    if (incarnation === this.#options.cluster.self.incarnation || this.#unsaved === undefined) return;
    if (this.#unsaved.over === true) void this.#saveOver(this.#unsaved);
    else if (this.#unsaved.fence < fence) this.#unsaved = undefined;
  }

  /** Saves that the task is complete: its present owner ends it and deletes the definition. */
  async #saveOver(progress: TaskProgress): Promise<void> {
    const { definitions, log } = this.#options;
    if (this.#isSaving) return;
    this.#isSaving = true;
    const backOff = new BackOff(LONGEST_PAUSE_MS);
    while (!this.#closed && this.#unsaved === progress) {
      try {
        await definitions.save(this.name, progress);
        this.#unsaved = undefined;
      } catch (error) {
        const { message: reason } = error as Error;
        log.debug({ ...this.name, reason }, 'the progress of the task could not be saved: trying again');
        await delay(backOff.next(), undefined, { ref: false });
      }
    }
    this.#isSaving = false;
  }

  /**
   * Makes a run ready for the time after the present owner, unless this node lacks what the task needs.
   * @param anyway makes it ready also then
   * @returns whether it is ready
   */
  async standBy(anyway: boolean): Promise<boolean> {
    const { kind, definitions, cluster, registry, log } = this.#options;
    const definition = definitions.get(this.name);
    if (definition === undefined || cluster.draining || isStreamKind(kind)) return false;
    if (!anyway && !(await this.#suits(definition))) return false;
    const application = applicationOf(registry, this.name);
    if (application === undefined || kind.standBy === undefined || this.#closed || this.#runner !== undefined)
      return false;
    if (this.#standIn?.isFor(definition) !== true) {
      this.#standIn?.close();
      this.#standIn = new StandIn(kind.standBy.bind(kind), { name: this.name, definition, application }, log);
    }
    const { ready } = this.#standIn;
    this.#standIn.keep();
    return await ready;
  }

  /** Ends the run on this node, if there is one. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#standIn?.close();
    this.#handOver.cancel();
    await this.#runner?.stop(new TaskEnd('handedOver', 'the node is stopping'));
  }

  /** What becomes of a task that runs here. */
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

  /** It has no owner: this node claims it when its turn has come. */
  #claimWhenDue(definition: TaskDefinition): void {
    clearTimeout(this.#timer);
    if (!this.#isWanted(definition)) return this.#cancelClaim(definition);
    const now = performance.now();
    if (this.#vacantSince === undefined) this.#fitness.forget();
    this.#vacantSince ??= now;
    const delay = this.#delay(definition);
    if (delay === undefined || this.#claiming) return;
    const due = Math.max(this.#vacantSince + delay, this.#notBefore);
    if (due > now) this.#again(due - now);
    else void this.#take();
  }

  #cancelClaim(definition: TaskDefinition | undefined): void {
    clearTimeout(this.#timer);
    this.#vacantSince = undefined;
    if (definition === undefined) this.#unsaved = undefined;
  }

  #again(inMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.consider(), inMs).unref();
  }

  /** Whether the task needs an owner. One whose stream does not exist waits without one. */
  #isWanted(definition: TaskDefinition): boolean {
    const { kind, definitions } = this.#options;
    if (!isStreamKind(kind) || definitions.isLeftOver(this.name, definition) || this.#isStreamHere(definition))
      return true;
    return this.#unsaved !== undefined || this.#isProgressDue(definition);
  }

  /** An owner that died has left progress with its claim, where it does not last. */
  #isProgressDue({ progress }: TaskDefinition): boolean {
    return this.#lastFence !== undefined && (progress?.fence ?? 0) < this.#lastFence;
  }

  #isStreamHere(definition: TaskDefinition): boolean {
    return liveOutput(this.#options, this.name, definition) !== undefined;
  }

  /** How long it may be without an owner before this node claims it, in milliseconds; undefined if this node must not. */
  #delay(definition: TaskDefinition): number | undefined {
    const { cluster, kind, definitions } = this.#options;
    if (cluster.state === 'degraded') return undefined;
    const standsBy = this.#standIn?.isFor(definition) === true;
    if (this.#unsaved !== undefined || standsBy || this.#isStreamHere(definition)) return 0;
    const isLeftOver = definitions.isLeftOver(this.name, definition);
    const order = ranked(this.#key, cluster.nodes(), this.#formerElsewhere);
    const rank = order.indexOf(cluster.self.id);
    if (rank < 0) return undefined;
    if (isLeftOver) return rank * STEP_MS;
    if (isStreamKind(kind)) return rank * STEP_MS + RESCUE_MS;
    const application = applicationConfigOf(this.#options.registry, this.name);
    if (application === undefined) return undefined;
    const isSuited = this.#fitness.of(kind, definition.spec, application);
    return rank * STEP_MS + (isSuited ? 0 : (order.length - 1) * STEP_MS + UNSUITED_MS);
  }

  /** The owner before, where that was not this run of this node. */
  get #formerElsewhere(): Owner | undefined {
    return this.#former?.incarnation === this.#options.cluster.self.incarnation ? undefined : this.#former;
  }

  /** Claims it when not too many others are being claimed. */
  async #take(): Promise<void> {
    const { definitions, turns } = this.#options;
    this.#claiming = true;
    try {
      await turns.run(async () => {
        const definition = definitions.get(this.name);
        const isFree = !this.#closed && this.#owner === undefined;
        if (isFree && definition !== undefined && this.#isWanted(definition)) await this.#claim(definition, false);
      });
    } catch (error) {
      this.#fault(error);
    } finally {
      this.#claiming = false;
    }
    // the owner may be gone again before this node knows of it
    if (this.#runner === undefined) this.#notBefore = Math.max(this.#notBefore, performance.now() + AGAIN_MS);
    this.consider();
  }

  async #claim(definition: TaskDefinition, isNew: boolean): Promise<TaskRunner | undefined> {
    const { cluster, definitions } = this.#options;
    const claim = await cluster.claim(this.#key, null, { silence: 'stop', keepMs: KEPT_MS });
    if ('owner' in claim) return undefined;
    const { lease } = claim;
    // a deletion looks for claims after it: so one of both notices the other
    if (!isNew) await cluster.config.sync();
    const present = definitions.get(this.name);
    if (this.#closed || (present === undefined) !== isNew) {
      void lease.release();
      return undefined;
    }
    const options = { ...this.#options, name: this.name, definition: present ?? definition };
    const runner = new TaskRunner({ ...options, lease, isNew, unsaved: this.#unsaved, standIn: this.#standIn });
    this.#runner = runner;
    this.#standIn = undefined;
    if (this.#formerElsewhere !== undefined) this.#options.counts.takenOver++;
    this.#unsaved = undefined;
    this.#lastFence = undefined;
    void runner.over.then(() => this.#left(runner));
    return runner;
  }

  #left(runner: TaskRunner): void {
    this.#handOver.cancel();
    this.#runner = undefined;
    this.#vacantSince = undefined;
    this.#unsaved = runner.unsaved;
    if (this.#unsaved !== undefined) this.#notBefore = performance.now() + AGAIN_MS;
    if (runner.isUseful) this.#backOff.reset();
    else this.#notBefore = performance.now() + STEP_MS + this.#backOff.next();
    // the known claims still include this one
    this.consider();
  }

  #fault(error: unknown): void {
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
