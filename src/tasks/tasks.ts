import { setTimeout as delay } from 'node:timers/promises';
import { ConflictError, type Cluster, type Json } from '#cluster';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/stream.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log.ts';
import type { StreamDirectory } from '../origins/stream-directory.ts';
import { taskKey, taskOfKey, TASKS, type TaskName } from './definition.ts';
import { TaskDefinitions } from './definitions.ts';
import { TaskEnd, type TaskKind } from './kind.ts';
import { Seat } from './seat.ts';

/** Changes of nodes and of streams are looked for so often. */
const TICK_MS = 500;
/** How long the end of a task that was deleted is waited for, and how often it is looked for. */
const ENDS_MS = 5000;
const LOOK_MS = 50;

export interface TasksOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly log: Logger;
}

export interface TaskCreation {
  /** It outlives its application's restarts. */
  readonly persistent: boolean;
  /** How long it may take to start, in milliseconds. */
  readonly withinMs: number;
}

/** There is a task of that name. */
export class TaskExistsError extends Error {
  override readonly name = 'TaskExistsError';
}

/**
 * Tasks of the whole cluster: each is defined once, and one node runs it. A node that dies or is drained loses its tasks
 * to others, without anybody who decides that: all nodes rank each other the same way.
 */
export class Tasks {
  readonly definitions: TaskDefinitions;
  readonly #options: TasksOptions;
  readonly #log: Logger;
  readonly #kinds = new Map<string, TaskKind>();
  readonly #seats = new Map<string, Seat>();
  readonly #undo: (() => void)[] = [];

  constructor(options: TasksOptions) {
    const { cluster, log } = options;
    this.#options = options;
    this.#log = log.child({ module: 'tasks' });
    this.definitions = new TaskDefinitions(cluster.config);
  }

  /** Tasks of a kind that no node knows wait until one does. To be called before `start`. */
  add(kind: TaskKind): void {
    this.#kinds.set(kind.name, kind);
  }

  /** Begins to take tasks: to be called when the applications are there. */
  start(): void {
    const { cluster, registry } = this.#options;
    const all = (): void => this.#considerAll();
    const ofOutput = (_output: OutputStream, application: Application): void => this.#considerAll(application);
    const timer = setInterval(all, TICK_MS).unref();
    cluster.events.on('drain', all).on('state', all);
    registry.on('output', ofOutput);
    this.#undo.push(
      () => clearInterval(timer),
      () => cluster.events.off('drain', all).off('state', all),
      () => registry.off('output', ofOutput),
      cluster.config.listen((keys) => this.#consider(keys)),
      cluster.watch(TASKS, (changes) => {
        for (const { key, owner } of changes) this.#seatOf(key)?.setOwner(owner);
      }),
    );
    for (const name of this.definitions.names()) this.#seat(name);
  }

  /**
   * Begins a task on this node, and defines it when it has started.
   * @throws TaskExistsError, UnavailableError, StorageError, TaskEnd when it was ended or did not start in time, and what it failed for: then there is nothing left of it
   */
  async create(name: TaskName, spec: Json, { persistent, withinMs }: TaskCreation): Promise<void> {
    const { cluster, registry } = this.#options;
    // one that was deleted elsewhere a moment ago may be known yet
    if (this.definitions.get(name) !== undefined) await cluster.config.sync();
    if (this.definitions.get(name) !== undefined) throw exists(name);
    const definition = { spec, persistent, stored: registry.vhosts.get(name.vhost)?.isStatic === false };
    const tenure = await this.#seat(name)?.begin(definition);
    if (tenure === undefined) throw exists(name);
    const late = setTimeout(() => void tenure.stop(new TaskEnd('removed', 'the task did not start in time')), withinMs);
    try {
      await tenure.started;
    } catch (error) {
      await tenure.over;
      throw error;
    } finally {
      clearTimeout(late);
    }
    try {
      await this.definitions.create(name, definition);
    } catch (error) {
      await tenure.stop(new TaskEnd('removed', 'the task could not be defined'));
      if (error instanceof ConflictError) throw exists(name);
      throw error;
    }
    tenure.define(definition);
  }

  /**
   * Deletes a task, wherever it runs: it does not run any more, unless its node does not hear of that within a few seconds.
   * @returns false when there is none
   * @throws UnavailableError, StorageError, ConflictError
   */
  async remove(name: TaskName): Promise<boolean> {
    const key = taskKey(name);
    const was = await this.definitions.remove(name);
    this.#seats.get(key)?.consider();
    await this.#seats.get(key)?.over;
    if (was) await this.#untilEnded(name);
    return was;
  }

  /** Hands over what runs here, and takes nothing any more. Idempotent. */
  async close(): Promise<void> {
    for (const undo of this.#undo.splice(0)) undo();
    const seats = [...this.#seats.values()];
    this.#seats.clear();
    await Promise.all(seats.map((seat) => seat.close()));
  }

  async #untilEnded(name: TaskName): Promise<void> {
    const { cluster } = this.#options;
    const end = performance.now() + ENDS_MS;
    // another may be made anew meanwhile; where the store cannot be reached, what was known last does not end
    while (cluster.state === 'connected' && this.definitions.get(name) === undefined && performance.now() < end) {
      if ((await cluster.ownerOf(taskKey(name))) === undefined) return;
      await delay(LOOK_MS);
    }
  }

  #considerAll(application?: Application): void {
    for (const seat of [...this.#seats.values()]) {
      const { vhost, app } = seat.name;
      if (application === undefined || (vhost === application.vhost.name && app === application.name)) seat.consider();
    }
  }

  #consider(keys: readonly string[]): void {
    for (const key of keys) if (key.startsWith('%23')) this.#seatOf(key)?.consider();
  }

  #seatOf(key: string): Seat | undefined {
    const name = taskOfKey(key);
    return name && this.#seat(name);
  }

  /** undefined for a kind that this node does not know. */
  #seat(name: TaskName): Seat | undefined {
    const key = taskKey(name);
    const kind = this.#kinds.get(name.kind);
    if (kind === undefined) return undefined;
    const present = this.#seats.get(key);
    if (present !== undefined) return present;
    const onEmpty = (): void => void this.#seats.delete(key);
    const seat = new Seat(name, { ...this.#options, definitions: this.definitions, kind, log: this.#log, onEmpty });
    this.#seats.set(key, seat);
    return seat;
  }
}

function exists(name: TaskName): TaskExistsError {
  return new TaskExistsError(`there is a task ${taskKey(name)}`);
}
