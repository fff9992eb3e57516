import { setImmediate } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { isSameIncarnation, place, type Cluster, type Json, type NodeRow, type Owner } from '#cluster';
import type { Application } from '../core/application.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { TaskNameSchema, TASKS, type TaskDefinition, type TaskName } from './definition.ts';
import { isStreamKind, TaskEnd, type PlacedKind, type TaskEndCause } from './kind.ts';
import { inStore } from './store-failure.ts';
import { TaskExistsError, type ReportsOf, type TaskCreation, type Tasks } from './tasks.ts';

/** Longer than the creation itself may take. */
const CARRIED_MS = 10_000;
const ATTEMPTS = 2;

const Order = Type.Object({
  name: TaskNameSchema,
  spec: Type.Unknown(),
  persistent: Type.Boolean(),
  withinMs: Type.Number({ minimum: 0, maximum: 3_600_000 }),
});
/** Result of a creation, besides the errors of the table; null: the task has started. */
const Outcome = Type.Union([
  Type.Null(),
  Type.Object({ end: Type.Object({ reason: Type.String(), message: Type.String() }) }),
  Type.Object({ exists: Type.String() }),
  Type.Object({ failure: Type.Unknown() }),
]);
type Outcome = Static<typeof Outcome>;
/** Begins a task on the node that is called. */
const CREATE = definePeerCall('tasks/create', Order, Outcome);
/** State of the tasks of a kind in an application that the called node runs, by id; all of them unless one is named. */
const REPORTS = definePeerCall(
  'tasks/reports',
  Type.Object({ kind: Type.String(), vhost: Type.String(), app: Type.String(), id: Type.Optional(Type.String()) }),
  Type.Object({ reports: Type.Record(Type.String(), Type.Unknown()) }),
);
/** Last state of a task that the called node ran until it was deleted a moment ago. */
const LAST = definePeerCall('tasks/last', TaskNameSchema, Type.Object({ report: Type.Optional(Type.Unknown()) }));

export interface ClusterTasksOptions {
  readonly cluster: Cluster;
  readonly tasks: Tasks;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

/** A task of the cluster. */
export interface TaskRow {
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  /**
   * `waiting`: no node runs it, because its stream does not exist, or because it is about to be retried. `unknown`: its
   * owner does not answer.
   */
  readonly state: 'running' | 'waiting' | 'unknown';
  /** State that the task reports while it runs. */
  readonly report: Json | undefined;
}

/** Creates, deletes and lists tasks from any node: calls are forwarded to the node that runs the task, or is to run it. */
export class ClusterTasks {
  readonly #options: ClusterTasksOptions;
  readonly #log: Logger;

  constructor(options: ClusterTasksOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'tasks' });
    options.calls.answer(CREATE, (order) => this.#answerCreate(order));
    options.calls.answer(LAST, (name) => ({ report: options.tasks.lastReport(name) }));
    options.calls.answer(REPORTS, (asked) => ({ reports: Object.fromEntries(options.tasks.reports(asked)) }));
  }

  /**
   * Creates a task. One that follows a stream is defined, and begins where that is; others are begun on a node that has
   * little to do, and defined when they have started.
   * @throws TaskExistsError; clusterUnavailable, changeUnknown, storageFailed, ownerUnreachable, ownerSilent,
   * nodeDraining; what `createHere` of the chosen node throws
   */
  async create(name: TaskName, spec: Json, creation: TaskCreation): Promise<void> {
    const { tasks } = this.#options;
    const kind = tasks.kind(name.kind);
    if (kind === undefined) throw new Error(`unknown kind of task: ${name.kind}`);
    if (isStreamKind(kind)) return await this.define(name, spec, creation);
    await this.#place(kind, name, spec, creation);
  }

  /**
   * Defines a task, which begins as soon as a node claims it: the one that has its stream, or the best of all.
   * @throws TaskExistsError, clusterUnavailable, changeUnknown, storageFailed
   */
  async define(name: TaskName, spec: Json, creation: Pick<TaskCreation, 'persistent'>): Promise<void> {
    await inStore(() => this.#options.tasks.define(name, spec, creation));
  }

  /**
   * Gives a task another spec, wherever it runs: the run goes on, or begins anew where its kind does not listen to changes.
   * @param next makes the new spec from the present one; may be called several times
   * @returns false when there is none
   * @throws clusterUnavailable, changeUnknown, storageFailed, what `next` throws
   */
  async change(name: TaskName, next: (spec: Json) => Json): Promise<boolean> {
    return await inStore(() => this.#options.tasks.definitions.change(name, next));
  }

  /**
   * Starts a task on this node.
   * @throws TaskExistsError, TaskEnd when it was ended or did not start in time, clusterUnavailable, changeUnknown,
   * storageFailed, what it failed for
   */
  async createHere(name: TaskName, spec: Json, creation: TaskCreation): Promise<void> {
    await inStore(() => this.#options.tasks.createHere(name, spec, creation));
  }

  /**
   * Deletes a task, wherever it runs.
   * @returns false when there is none
   * @throws clusterUnavailable, changeUnknown, storageFailed
   */
  async remove(name: TaskName): Promise<boolean> {
    return await inStore(() => this.#options.tasks.remove(name));
  }

  /**
   * Deletes a task whose last state is of interest.
   * @returns that state, undefined where its node does not report it; undefined when there is no task
   */
  async end(name: TaskName): Promise<{ readonly report: Json | undefined } | undefined> {
    const { cluster, tasks, others } = this.#options;
    const owner = tasks.owner(name);
    if (!(await this.remove(name))) return undefined;
    if (owner === undefined) return { report: undefined };
    if (isSameIncarnation(owner, cluster.self)) return { report: tasks.lastReport(name) };
    const { answer } = await others.askOne(owner, LAST, name);
    return { report: answer?.report as Json | undefined };
  }

  /** Lists the tasks of a kind in an application by id, as they are now: nodes that run some are asked all at once. */
  async list(kind: string, application: Application): Promise<TaskRow[]> {
    await this.#catchUp();
    const names = this.#options.tasks.definitions.in(kind, application);
    const { vhost, name: app } = application;
    const rows = await this.#rows(names, { kind, vhost: vhost.name, app });
    return rows.sort((a, b) => (a.name.id < b.name.id ? -1 : 1));
  }

  /** Finds one task as it is now; its owner is asked. @returns undefined when there is none of that name */
  async find(name: TaskName): Promise<TaskRow | undefined> {
    await this.#catchUp();
    const [row] = await this.#rows([name], name);
    return row;
  }

  /** Brings this node up to date with everything that any node has answered before. */
  async #catchUp(): Promise<void> {
    const { cluster } = this.#options;
    await Promise.all([cluster.config.sync(), cluster.ownerOf(TASKS)]);
    // watchers are called in the turn after the answer
    await setImmediate();
  }

  /** @param asked tasks whose states are requested of the nodes that run some */
  async #rows(names: readonly TaskName[], asked: ReportsOf): Promise<TaskRow[]> {
    const { tasks } = this.#options;
    const found = names.flatMap((name) => {
      const definition = tasks.definitions.get(name);
      return definition === undefined ? [] : [{ name, definition, owner: tasks.owner(name) }];
    });
    const owners = found.flatMap(({ owner }) => owner ?? []);
    const reports = await this.#reports(asked, owners);
    return found.map(({ name, definition, owner }): TaskRow => {
      const known = owner === undefined ? new Map<string, Json>() : reports.get(owner.incarnation);
      const report = known?.get(name.id);
      const state = known === undefined ? 'unknown' : report === undefined ? 'waiting' : 'running';
      return { name, definition, state, report: report ?? undefined };
    });
  }

  /** Reports by incarnation of the node; without nodes that do not answer. */
  async #reports(asked: ReportsOf, owners: readonly Owner[]) {
    const { cluster, tasks, others } = this.#options;
    const nodes = new Map(owners.map((owner) => [owner.incarnation, owner]));
    const answers = new Map([[cluster.self.incarnation, tasks.reports(asked)]]);
    nodes.delete(cluster.self.incarnation);
    await Promise.all(
      [...nodes.values()].map(async (node) => {
        const { answer } = await others.askOne(node, REPORTS, asked);
        if (answer !== undefined)
          answers.set(node.incarnation, new Map(Object.entries(answer.reports as Record<string, Json>)));
      }),
    );
    return answers;
  }

  async #place(kind: PlacedKind, name: TaskName, spec: Json, creation: TaskCreation): Promise<void> {
    const { cluster } = this.#options;
    let nodes = cluster.nodes();
    let isUnreachable = false;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const node = place(nodes);
      if (node === undefined) break;
      const outcome = await this.#createOn(node, kind, name, spec, creation);
      if (outcome === 'created') return;
      nodes = nodes.filter(({ id }) => id !== node.id);
      // a node of another version is no reason to give up earlier
      if (outcome === 'unknown') attempt--;
      else isUnreachable = true;
    }
    throw kilnError(isUnreachable ? 'ownerUnreachable' : 'nodeDraining');
  }

  async #createOn(
    node: NodeRow,
    kind: PlacedKind,
    name: TaskName,
    spec: Json,
    creation: TaskCreation,
  ): Promise<'created' | 'unreachable' | 'unknown'> {
    const { cluster, calls } = this.#options;
    if (node.id === cluster.self.id) {
      await this.createHere(name, spec, creation);
      return 'created';
    }
    const { persistent, withinMs } = creation;
    let outcome: Outcome;
    try {
      outcome = await calls.call(node, CREATE, { name, spec, persistent, withinMs }, withinMs + CARRIED_MS);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      if (error.code === 'callUnknown') return 'unknown';
      if (error.code !== 'ownerUnreachable') throw error;
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      this.#log.warn({ ...name, node: node.id, reason }, 'the node that should run the task cannot be reached');
      return 'unreachable';
    }
    if (outcome !== null) throw failureOf(kind, outcome);
    return 'created';
  }

  async #answerCreate({ name, spec, persistent, withinMs }: Static<typeof Order>): Promise<Outcome> {
    const kind = this.#options.tasks.kind(name.kind);
    // another node may know what this version does not
    if (kind === undefined || isStreamKind(kind)) throw kilnError('callUnknown');
    try {
      // the caller may know an application that this node does not know yet
      await this.#options.cluster.config.sync();
      await this.createHere(name, spec as Json, { persistent, withinMs });
      return null;
    } catch (error) {
      return outcomeOf(kind, error);
    }
  }
}

/** @throws errors of the table, and faults, which are not carried to the calling node */
function outcomeOf(kind: PlacedKind, error: unknown): Outcome {
  if (error instanceof TaskExistsError) return { exists: error.message };
  if (error instanceof TaskEnd) return { end: { reason: error.reason, message: error.message } };
  const failure = error instanceof KilnError ? undefined : kind.writeFailure(error);
  if (failure === undefined) throw error;
  return { failure };
}

function failureOf(kind: PlacedKind, outcome: NonNullable<Outcome>): Error {
  if ('exists' in outcome) return new TaskExistsError(outcome.exists);
  if ('end' in outcome) return new TaskEnd(outcome.end.reason as TaskEndCause, outcome.end.message);
  return kind.readFailure(outcome.failure as Json);
}
