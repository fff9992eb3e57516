import { randomUUID } from 'node:crypto';
import { ConflictError, joinKey, type Cluster, type Json, type NodeRow, type Owner } from '#cluster';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { TaskCounts } from './counts.ts';
import { taskKey, taskOfKey, TASKS, type TaskDefinition, type TaskName, type TaskOrigin } from './definition.ts';
import { TaskDefinitions } from './definitions.ts';
import { STAND_BY } from './hand-over.ts';
import { makesStream, TaskEnd, type TaskKind } from './kind.ts';
import { TaskSlot } from './slot.ts';
import { Limiter } from '../lib/limiter.ts';
import { within } from '../lib/within.ts';

/** How long a deletion waits for the end of the task. */
const ENDS_MS = 5000;
/** How long the last state of a task outlives it, for the call that deleted it. */
const LAST_MS = 2 * ENDS_MS;
/** Claims of unowned tasks at the same time: a node that dies may leave thousands of tasks. */
const CLAIMS_AT_ONCE = 32;
/** Tasks that are handed over at the same time: another node opens what each of them needs. */
const HAND_OVERS_AT_ONCE = 4;
/** Tasks that are handed over at the same time because this node lacks what they need; a drain does not wait for them. */
const MOVES_AT_ONCE = 2;

export interface TasksOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

export interface TaskCreation {
  /** Whether it outlives its application's restarts. */
  readonly persistent: boolean;
  /** How long it may take to start, in milliseconds. */
  readonly withinMs: number;
}

/** Selects the tasks whose states are requested: all of a kind in an application, or one of them. */
export interface ReportsOf extends Omit<TaskName, 'id'> {
  readonly id?: string;
}

/** A task of that name exists. */
export class TaskExistsError extends Error {
  override readonly name = 'TaskExistsError';
}

/**
 * Tasks of the whole cluster: each is defined once, and one node runs it. A node that dies or is drained loses its tasks
 * to others without a coordinator: tasks that follow a stream are run by the node that has it, and for the others all
 * nodes rank each other in the same way.
 */
export class Tasks {
  readonly definitions: TaskDefinitions;
  readonly counts = new TaskCounts();
  readonly #options: TasksOptions;
  readonly #log: Logger;
  readonly #kinds = new Map<string, TaskKind>();
  readonly #slots = new Map<string, TaskSlot>();
  /** Slots that have to be reviewed when the nodes or the state of the store change. */
  readonly #open = new Set<TaskSlot>();
  /** Slots that follow an output stream, by its key. */
  readonly #byStream = new Map<string, Set<TaskSlot>>();
  readonly #streams = new Map<TaskSlot, string>();
  readonly #turns = new Limiter(CLAIMS_AT_ONCE);
  readonly #handOvers = new Limiter(HAND_OVERS_AT_ONCE);
  readonly #moves = new Limiter(MOVES_AT_ONCE);
  /** Last states of tasks that were deleted. */
  readonly #last = new Map<string, Json>();
  readonly #undo: (() => void)[] = [];
  #nodes = '';

  constructor(options: TasksOptions) {
    const { cluster, calls, log } = options;
    this.#options = options;
    this.#log = log.child({ module: 'tasks' });
    this.definitions = new TaskDefinitions(cluster.config);
    calls.answer(STAND_BY, async ({ name, anyway }) => ({ ready: await this.#standBy(name, anyway) }));
  }

  /** Adds a kind of tasks. Tasks of a kind that no node knows wait until one does. Call it before `start`. */
  add(kind: TaskKind): void {
    this.counts.of(kind.name);
    this.#kinds.set(kind.name, kind);
  }

  kind(name: string): TaskKind | undefined {
    return this.#kinds.get(name);
  }

  /** Begins to claim tasks. Call it when the applications exist. */
  start(): void {
    const { cluster, registry } = this.#options;
    const considerOpen = (): void => this.#considerOpen();
    const onNodes = (): void => this.#onNodes(cluster.nodes());
    const onOutput = (output: OutputStream, application: Application): void => this.#onOutput(output, application);
    cluster.events.on('drain', considerOpen).on('state', considerOpen).on('nodes', onNodes);
    registry.on('output', onOutput);
    let isFirst = true;
    this.#undo.push(
      () => cluster.events.off('drain', considerOpen).off('state', considerOpen).off('nodes', onNodes),
      () => registry.off('output', onOutput),
      cluster.config.listen((keys) => this.#onConfig(keys)),
      cluster.watch(TASKS, (changes) => {
        for (const { key, owner } of changes) this.#slotOfKey(key)?.setOwner(owner);
        if (isFirst) for (const slot of [...this.#slots.values()]) slot.consider();
        isFirst = false;
      }),
    );
    for (const name of this.definitions.names()) this.#slot(name);
  }

  /**
   * Defines a task. One that follows a stream begins as soon as the node that has the stream knows the definition; if there
   * is no such stream, it waits. Others begin where they are claimed first.
   * @throws TaskExistsError, UnavailableError, StorageError
   */
  async define(name: TaskName, spec: Json, { persistent }: Pick<TaskCreation, 'persistent'>): Promise<void> {
    await this.#checkFree(name);
    await this.#define(name, this.#definition(name, spec, persistent));
  }

  /**
   * Defines a task that the configuration asks for, for a stream of this node.
   * @throws TaskExistsError, UnavailableError, StorageError
   */
  async defineConfigured(name: TaskName, spec: Json, origin: TaskOrigin): Promise<void> {
    await this.#checkFree(name);
    await this.#define(name, { ...this.#definition(name, spec, false), origin });
  }

  /**
   * Offers to run a task that only this node and others with the same offer know. One of them runs it. A stored task of
   * that name comes before it.
   * @param version another version is another task, as if the one before had been deleted; with the same one the task is changed
   */
  offer(name: TaskName, spec: Json, version: string): void {
    this.definitions.offered.set(name, spec, version);
    this.#slot(name)?.consider();
  }

  /** Withdraws an offer. Resolves when the task has ended here. */
  async withdraw(name: TaskName): Promise<void> {
    this.definitions.offered.delete(name);
    const slot = this.#slots.get(taskKey(name));
    slot?.consider();
    if (slot?.over !== undefined && this.definitions.get(name) === undefined) await within(ENDS_MS, slot.over);
  }

  /**
   * Begins a task on this node, and defines it when it has started.
   * @throws TaskExistsError, UnavailableError, StorageError, TaskEnd when it was ended or did not start in time, or the error
   * of its first run: then nothing is left of it
   */
  async createHere(name: TaskName, spec: Json, { persistent, withinMs }: TaskCreation): Promise<void> {
    await this.#checkFree(name);
    const definition = this.#definition(name, spec, persistent);
    const slot = this.#slot(name);
    const runner = await slot?.begin(definition);
    if (runner === undefined) throw exists(name);
    const late = setTimeout(() => void runner.stop(new TaskEnd('removed', 'the task did not start in time')), withinMs);
    try {
      await runner.started;
    } catch (error) {
      await runner.over;
      throw error;
    } finally {
      clearTimeout(late);
    }
    try {
      await this.#define(name, definition);
    } catch (error) {
      await runner.stop(new TaskEnd('removed', 'the task could not be defined'));
      throw error;
    }
    runner.define(definition);
    // it may have been deleted again since
    slot?.consider();
  }

  /**
   * Deletes a task, wherever it runs, and waits for its end, a few seconds at most.
   * @returns false when there is none
   * @throws UnavailableError, StorageError, ConflictError
   */
  async remove(name: TaskName): Promise<boolean> {
    const key = taskKey(name);
    const was = await this.definitions.remove(name);
    const slot = this.#slots.get(key);
    slot?.consider();
    if (was) await within(ENDS_MS, Promise.all([slot?.over, this.#untilEnded(name)]));
    return was;
  }

  /** The owner of a task, as far as this node knows it; undefined for a kind that it does not know. */
  owner(name: TaskName): Owner | undefined {
    return this.#slots.get(taskKey(name))?.owner;
  }

  /** States of tasks that run on this node, by id. */
  reports({ kind, vhost, app, id }: ReportsOf): Map<string, Json> {
    const here = new Map<string, Json>();
    for (const slot of this.#open) {
      const { name, runner } = slot;
      if (runner === undefined || name.kind !== kind || name.vhost !== vhost || name.app !== app) continue;
      if (id !== undefined && name.id !== id) continue;
      if (runner.isRunning) here.set(name.id, runner.report ?? null);
    }
    return here;
  }

  /** The last state of a task that ran on this node until it was deleted a moment ago. */
  lastReport(name: TaskName): Json | undefined {
    return this.#last.get(taskKey(name));
  }

  /** The tasks that run on this node, with their states. */
  *running(): Iterable<{ readonly name: TaskName; readonly report: Json | undefined }> {
    for (const { name, runner } of this.#open) if (runner?.isRunning === true) yield { name, report: runner.report };
  }

  /** Hands over the tasks that run here, and claims no more. Idempotent. */
  async close(): Promise<void> {
    for (const undo of this.#undo.splice(0)) undo();
    const slots = [...this.#slots.values()];
    this.#slots.clear();
    this.#open.clear();
    this.#byStream.clear();
    this.#streams.clear();
    await Promise.all(slots.map((slot) => slot.close()));
  }

  /** Makes a run of another node's task ready. @returns whether it is ready */
  async #standBy(name: TaskName, anyway: boolean): Promise<boolean> {
    const { cluster } = this.#options;
    if (cluster.state === 'degraded') return false;
    // the owner may know a definition that this node does not know yet
    await cluster.config.sync();
    return (await this.#slots.get(taskKey(name))?.standBy(anyway)) ?? false;
  }

  /** @throws TaskExistsError */
  async #checkFree(name: TaskName): Promise<void> {
    const isTaken = (): boolean => [name, ...this.#rivals(name)].some((one) => this.definitions.get(one) !== undefined);
    // one that was deleted elsewhere a moment ago may still be known
    if (isTaken()) await this.#options.cluster.config.sync();
    if (isTaken()) throw exists(name);
  }

  /** Names of the tasks of other kinds that would make the same stream. */
  #rivals(name: TaskName): TaskName[] {
    if (!makesStream(this.#kinds.get(name.kind))) return [];
    const others = [...this.#kinds.values()].filter((kind) => kind.name !== name.kind && makesStream(kind));
    return others.map((kind) => ({ ...name, kind: kind.name }));
  }

  #definition({ vhost, app }: TaskName, spec: Json, persistent: boolean): TaskDefinition {
    const parent = this.#options.registry.vhosts.get(vhost);
    const generation = parent?.applications.get(app)?.generation;
    const known = generation === undefined ? {} : { generation };
    return { spec, persistent, stored: parent?.isStatic === false, uid: randomUUID(), ...known };
  }

  /** @throws TaskExistsError, UnavailableError, StorageError */
  async #define(name: TaskName, definition: TaskDefinition): Promise<void> {
    try {
      await this.definitions.create(name, definition, this.#rivals(name));
    } catch (error) {
      if (error instanceof ConflictError) throw exists(name);
      throw error;
    }
  }

  /** Resolves when a deleted task has no owner, or was created again, or when the store cannot be reached. */
  async #untilEnded(name: TaskName): Promise<void> {
    const { cluster } = this.#options;
    const key = taskKey(name);
    await cluster.ownerOf(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    const undo = cluster.watch(key, (changes) => {
      const last = changes.at(-1);
      const isCreatedAgain = this.definitions.get(name) !== undefined;
      // if the store is unreachable, the last known owner never goes
      if (last?.owner === undefined || isCreatedAgain || cluster.state === 'degraded') resolve();
    });
    await within(ENDS_MS, promise);
    undo();
  }

  #considerOpen(): void {
    for (const slot of [...this.#open]) slot.consider();
  }

  /** Reviews tasks when the nodes that can run them change: the load is read when a task is claimed. */
  #onNodes(nodes: readonly NodeRow[]): void {
    const present = JSON.stringify(
      nodes.map(({ id, incarnation, state, full, info }) => [
        id,
        incarnation,
        state,
        full,
        info.configHash,
        info.formerConfigHash,
      ]),
    );
    if (present === this.#nodes) return;
    this.#nodes = present;
    this.#considerOpen();
  }

  #onOutput(output: OutputStream, { vhost, name }: Application): void {
    const consider = (): void => {
      for (const slot of this.#byStream.get(joinKey(vhost.name, name, output.name)) ?? []) slot.consider();
    };
    if (output.tracks.length === 0) output.once('tracks', consider);
    consider();
  }

  /** Reviews the tasks whose definition, virtual host or application has changed. */
  #onConfig(keys: readonly string[]): void {
    const parents = new Set<string>();
    for (const key of keys) {
      if (key.startsWith('%23')) this.#slotOfKey(key)?.consider();
      else parents.add(key);
    }
    if (parents.size === 0) return;
    for (const slot of [...this.#slots.values()]) {
      const { vhost, app } = slot.name;
      if (parents.has(joinKey(vhost)) || parents.has(joinKey(vhost, app))) slot.consider();
    }
  }

  #slotOfKey(key: string): TaskSlot | undefined {
    const name = taskOfKey(key);
    return name && this.#slot(name);
  }

  /** undefined for a kind that this node does not know. */
  #slot(name: TaskName): TaskSlot | undefined {
    const key = taskKey(name);
    const kind = this.#kinds.get(name.kind);
    if (kind === undefined) return undefined;
    const present = this.#slots.get(key);
    if (present !== undefined) return present;
    const slot: TaskSlot = new TaskSlot(name, {
      ...this.#options,
      definitions: this.definitions,
      counts: this.counts.of(name.kind),
      kind,
      turns: this.#turns,
      handOvers: this.#handOvers,
      moves: this.#moves,
      log: this.#log,
      onLook: (looked, isOpen, stream) => this.#file(looked, isOpen, stream),
      onLast: (report) => this.#keepLast(key, report),
      onEmpty: () => {
        this.#file(slot, false, undefined);
        this.#slots.delete(key);
      },
    });
    this.#slots.set(key, slot);
    return slot;
  }

  #keepLast(key: string, report: Json | undefined): void {
    if (report === undefined) return void this.#last.delete(key);
    this.#last.set(key, report);
    setTimeout(() => {
      if (this.#last.get(key) === report) this.#last.delete(key);
    }, LAST_MS).unref();
  }

  #file(slot: TaskSlot, isOpen: boolean, stream: string | undefined): void {
    if (isOpen) this.#open.add(slot);
    else this.#open.delete(slot);
    const { vhost, app } = slot.name;
    const before = this.#streams.get(slot);
    const now = stream === undefined ? undefined : joinKey(vhost, app, stream);
    if (before === now) return;
    const present = before === undefined ? undefined : this.#byStream.get(before);
    present?.delete(slot);
    if (before !== undefined && present?.size === 0) this.#byStream.delete(before);
    if (now === undefined) {
      this.#streams.delete(slot);
      return;
    }
    this.#streams.set(slot, now);
    const others = this.#byStream.get(now) ?? new Set();
    this.#byStream.set(now, others.add(slot));
  }
}

function exists(name: TaskName): TaskExistsError {
  return new TaskExistsError(`the task ${taskKey(name)} already exists`);
}
