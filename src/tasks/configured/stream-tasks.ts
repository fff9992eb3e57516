import { isDeepStrictEqual } from 'node:util';
import { isSameIncarnation, ConflictError, StorageError, UnavailableError, type Cluster } from '#cluster';
import type { Application } from '../../core/application.ts';
import { BackOff } from '../../lib/back-off.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { streamKey } from '../../directory/stream-key.ts';
import { taskKey, type TaskName, type TaskOrigin } from '../definition.ts';
import { numberOf } from '../live-output.ts';
import { pause } from '../../lib/pause.ts';
import { TaskExistsError, type Tasks } from '../tasks.ts';
import type { ConfiguredEntry, ConfiguredKind } from './kind.ts';

const LONGEST_PAUSE_MS = 10_000;
/** Attempts at an id that is free: random ones rarely need a second. */
const ATTEMPTS = 3;

export interface StreamTasksOptions {
  readonly cluster: Pick<Cluster, 'self' | 'config' | 'nodes' | 'ownerOf'>;
  readonly tasks: Tasks;
  readonly kind: ConfiguredKind;
  readonly application: Application;
  readonly output: OutputStream;
  readonly log: Logger;
}

/**
 * The tasks of one kind that the configuration asks for beside an output stream of this node: defined when an entry names
 * the stream, deleted with the entry or the stream. One that is stopped through the API is not defined again.
 */
export class StreamTasks {
  readonly #options: StreamTasksOptions;
  readonly #log: Logger;
  /** By key of the entry; undefined where it does not name the stream, or no valid task came of it. */
  readonly #made = new Map<string, TaskName | undefined>();
  readonly #closed = new AbortController();
  readonly #onEmpty: () => void;
  /** Entries for which nothing is left to do. */
  #settled: readonly ConfiguredEntry[] | undefined;
  #isOver = false;
  #isDue = false;
  #isRunning = false;
  /** There may be tasks for a stream of this name that are not in `made`: of others, or of an attempt whose outcome is unknown. */
  #hasStrays: boolean;
  /** The store was unreachable, and others may have counted this node as lost. */
  #mustCheck = false;

  /** @param onEmpty called when the stream has ended and nothing is left of its tasks */
  constructor(options: StreamTasksOptions, onEmpty: () => void) {
    const { application, output, log, kind } = options;
    this.#options = options;
    this.#onEmpty = onEmpty;
    this.#hasStrays = this.#strays().length > 0;
    this.#log = log.child({ kind: kind.name, stream: `${application.internalName}/${output.name}` });
    output.once('close', () => {
      this.#isOver = true;
      this.look();
    });
    this.look();
  }

  /** Looks whether the entries are others. */
  look(): void {
    this.#isDue = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Defines again, with the store back, what other nodes have deleted because this one seemed lost. */
  check(): void {
    this.#mustCheck = true;
    this.look();
  }

  /** Leaves the tasks to the next node that has the stream. */
  close(): void {
    this.#closed.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    const backOff = new BackOff(LONGEST_PAUSE_MS);
    this.#isRunning = true;
    while (this.#isDue && !signal.aborted) {
      this.#isDue = false;
      try {
        await this.#step();
        backOff.reset();
      } catch (error) {
        this.#fault(error as Error);
        this.#isDue = true;
        await pause(backOff.next(), signal);
      }
    }
    this.#isRunning = false;
    if (this.#isOver && !signal.aborted) this.#onEmpty();
  }

  /** @throws UnavailableError, StorageError, ConflictError: it is tried again */
  async #step(): Promise<void> {
    const { cluster, kind, application, tasks } = this.#options;
    const entries = this.#isOver ? [] : await kind.entries(application);
    if (entries === this.#settled && !this.#mustCheck) return;
    if (this.#mustCheck) await this.#forgetDeleted();
    const keys = new Set(entries.map(({ key }) => key));
    for (const [key, name] of this.#made) {
      if (keys.has(key)) continue;
      if (name !== undefined) await tasks.definitions.remove(name, this.#origin(key));
      this.#made.delete(key);
    }
    const missing = entries.filter((entry) => !this.#made.has(entry.key) && this.#taskOf(entry) !== undefined);
    if (missing.length === 0 && !this.#hasStrays) return void (this.#settled = entries);
    // a stream that was taken over is about to end here
    if (!this.#isOver && (await this.#isElsewhere())) return;
    await cluster.config.sync();
    for (const [name, origin] of this.#strays()) await this.#settle(name, origin, missing);
    this.#hasStrays = false;
    for (const entry of missing) if (!this.#made.has(entry.key) && !this.#isOver) await this.#define(entry);
    this.#settled = entries;
  }

  /** Tasks of the configuration for a stream of this name that are none of these. */
  #strays(): (readonly [TaskName, TaskOrigin])[] {
    const { tasks, kind, application, output } = this.#options;
    const own = new Set([...this.#made.values()].flatMap((name) => name?.id ?? []));
    return tasks.definitions.in(kind.name, application).flatMap((name) => {
      const origin = tasks.definitions.get(name)?.origin;
      return origin?.output === output.name && !own.has(name.id) ? [[name, origin] as const] : [];
    });
  }

  /** A task that another node, or a stream before, has left goes on beside this stream, or is deleted. */
  async #settle(name: TaskName, origin: TaskOrigin, missing: readonly ConfiguredEntry[]): Promise<void> {
    const { definitions } = this.#options.tasks;
    const own = this.#origin(origin.entry);
    const isOwn = isDeepStrictEqual(origin, own);
    // when this stream has ended, another one may have it
    if (this.#isOver && !isOwn) return;
    const isWanted = missing.some(({ key }) => key === own.entry) && !this.#made.has(own.entry) && !this.#isOver;
    if (isWanted && (isOwn || ((await this.#isLeft(name, origin)) && (await definitions.adopt(name, own)))))
      this.#made.set(own.entry, name);
    else await definitions.remove(name, origin);
  }

  /** Whether another node owns the stream by now. */
  async #isElsewhere(): Promise<boolean> {
    const { cluster, application, output } = this.#options;
    const stream = output.input.name;
    const owner = await cluster.ownerOf(streamKey({ vhost: application.vhost.name, app: application.name, stream }));
    return owner !== undefined && !isSameIncarnation(owner, cluster.self);
  }

  /** Whether the node that had the stream does not run the task any more. */
  async #isLeft(name: TaskName, { node }: TaskOrigin): Promise<boolean> {
    const { cluster } = this.#options;
    if (node === cluster.self.incarnation) return false;
    const owner = await cluster.ownerOf(taskKey(name));
    return owner?.incarnation !== node || !isAlive(cluster, node);
  }

  /** @throws UnavailableError, StorageError */
  async #define(entry: ConfiguredEntry): Promise<void> {
    const { tasks, kind, application } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const task = this.#taskOf(entry);
      if (task === undefined) return;
      const name = { kind: kind.name, vhost: application.vhost.name, app: application.name, id: task.id };
      try {
        this.#hasStrays = true;
        await tasks.defineConfigured(name, task.spec, this.#origin(entry.key));
        this.#made.set(entry.key, name);
        this.#hasStrays = false;
        return;
      } catch (error) {
        if (!(error instanceof TaskExistsError)) throw error;
        if (attempt < ATTEMPTS) continue;
        this.#refuse(entry, `the id ${task.id} is in use`);
        return;
      }
    }
  }

  /** undefined when the entry does not name the stream, or makes no valid task for it. */
  #taskOf(entry: ConfiguredEntry) {
    const { output, application } = this.#options;
    try {
      const task = entry.task(output, application);
      if (task === undefined) this.#made.set(entry.key, undefined);
      return task;
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      this.#refuse(entry, error.message);
      return undefined;
    }
  }

  #refuse({ key, place }: ConfiguredEntry, reason: string): void {
    this.#made.set(key, undefined);
    this.#log.warn({ entry: place, reason }, 'the configuration asks for a task that is not possible for this stream');
  }

  /** @throws UnavailableError */
  async #forgetDeleted(): Promise<void> {
    const { cluster, tasks } = this.#options;
    await cluster.config.sync();
    if (cluster.config.stale) return;
    this.#mustCheck = false;
    for (const [key, name] of this.#made) {
      if (name !== undefined && tasks.definitions.get(name) === undefined) this.#made.delete(key);
    }
  }

  #origin(entry: string): TaskOrigin {
    const { cluster, output } = this.#options;
    return { entry, node: cluster.self.incarnation, output: output.name, number: numberOf(output) };
  }

  #fault(error: Error): void {
    if (isStoreFailure(error))
      this.#log.debug({ reason: error.message }, 'tasks of the configuration cannot be written yet: trying again');
    else this.#log.error({ err: error }, 'tasks of the configuration cannot be defined: trying again');
  }
}

/** Whether a write failed as it may, and is to be tried again. */
export function isStoreFailure(error: unknown): error is Error {
  return error instanceof UnavailableError || error instanceof StorageError || error instanceof ConflictError;
}

/** Whether a life of a node goes on, as far as this node knows. */
export function isAlive(cluster: Pick<Cluster, 'nodes'>, incarnation: string): boolean {
  return cluster.nodes().some((node) => node.incarnation === incarnation && node.state !== 'lost');
}
