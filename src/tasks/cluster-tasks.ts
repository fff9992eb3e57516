import { setImmediate } from 'node:timers/promises';
import Type from 'typebox';
import {
  ConflictError,
  OutcomeUnknownError,
  place,
  StorageError,
  UnavailableError,
  UnreachableError,
  type Cluster,
  type Json,
  type NodeRow,
  type Owner,
  type PeerRequest,
  type PeerResponse,
} from '#cluster';
import type { Application } from '../core/application.ts';
import { KilnError, kilnError, type ErrorCode } from '../errors.ts';
import type { Logger } from '../log.ts';
import { readJson } from '../origins/json.ts';
import type { OtherNodes } from '../origins/other-nodes.ts';
import type { PeerCalls } from '../origins/peer-calls.ts';
import { TASKS, type TaskDefinition, type TaskName } from './definition.ts';
import { isStreamKind, TaskEnd, type PlacedKind, type TaskEndCause } from './kind.ts';
import { TaskExistsError, type TaskCreation, type Tasks } from './tasks.ts';

const CREATE = '/tasks/create';
const REPORTS = '/tasks/reports';
/** Longer than the creation itself may take. */
const CARRIED_MS = 10_000;
const ATTEMPTS = 2;

const Name = Type.Object({ kind: Type.String(), vhost: Type.String(), app: Type.String(), id: Type.String() });
const Order = Type.Object({
  name: Name,
  spec: Type.Unknown(),
  persistent: Type.Boolean(),
  withinMs: Type.Number({ minimum: 0, maximum: 3_600_000 }),
});
const Failure = Type.Union([
  Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String(), status: Type.Number() }) }),
  Type.Object({ end: Type.Object({ reason: Type.String(), message: Type.String() }) }),
  Type.Object({ exists: Type.String() }),
  Type.Object({ failure: Type.Unknown() }),
]);
const ReportsOrder = Type.Object({ kind: Type.String(), vhost: Type.String(), app: Type.String() });
const Reports = Type.Object({ reports: Type.Record(Type.String(), Type.Unknown()) });

const NO_CONTENT = Buffer.alloc(0);

export interface ClusterTasksOptions {
  readonly cluster: Cluster;
  readonly tasks: Tasks;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

/** A task as it is anywhere in the cluster. */
export interface TaskRow {
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  /**
   * `waiting`: nobody runs it, as when its stream is nowhere, or it is about to be tried again. `unknown`: the node that
   * has it does not answer.
   */
  readonly state: 'running' | 'waiting' | 'unknown';
  /** What the task says of itself while it runs. */
  readonly report: Json | undefined;
}

/** Calls about tasks, which any node takes: they come to the node that has the task, or is to have it. */
export class ClusterTasks {
  readonly #options: ClusterTasksOptions;
  readonly #log: Logger;

  constructor(options: ClusterTasksOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'tasks' });
    options.calls.add(CREATE, (request) => this.#answerCreate(request));
    options.calls.add(REPORTS, async (request) => this.#answerReports(request));
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
    if (kind === undefined) throw new Error(`there is no kind of tasks ${name.kind}`);
    if (isStreamKind(kind)) return await this.#attempt(() => tasks.define(name, spec, creation));
    await this.#place(kind, name, spec, creation);
  }

  /**
   * Begins a task on this node.
   * @throws TaskExistsError, TaskEnd when it was ended or did not start in time, clusterUnavailable, changeUnknown,
   * storageFailed, what it failed for
   */
  async createHere(name: TaskName, spec: Json, creation: TaskCreation): Promise<void> {
    await this.#attempt(() => this.#options.tasks.createHere(name, spec, creation));
  }

  /**
   * Deletes a task, wherever it runs.
   * @returns false when there is none
   * @throws clusterUnavailable, changeUnknown, storageFailed
   */
  async remove(name: TaskName): Promise<boolean> {
    return await this.#attempt(() => this.#options.tasks.remove(name));
  }

  /** The tasks of a kind in an application, by id, as they are now: nodes that run some are asked all at once. */
  async list(kind: string, application: Application): Promise<TaskRow[]> {
    const { cluster, tasks } = this.#options;
    await Promise.all([cluster.config.sync(), cluster.ownerOf(TASKS)]);
    // who watches is told in the turn after this node has heard
    await setImmediate();
    const found = tasks.definitions.in(kind, application).flatMap((name) => {
      const definition = tasks.definitions.get(name);
      return definition === undefined ? [] : [{ name, definition, owner: tasks.owner(name) }];
    });
    const owners = found.flatMap(({ owner }) => owner ?? []);
    const reports = await this.#reports(kind, application, owners);
    const rows = found.map(({ name, definition, owner }): TaskRow => {
      const told = owner === undefined ? new Map<string, Json>() : reports.get(owner.incarnation);
      const report = told?.get(name.id);
      const state = told === undefined ? 'unknown' : report === undefined ? 'waiting' : 'running';
      return { name, definition, state, report: report ?? undefined };
    });
    return rows.sort((a, b) => (a.name.id < b.name.id ? -1 : 1));
  }

  /** By incarnation of the node; without those that do not answer. */
  async #reports(kind: string, { vhost: { name: vhost }, name: app }: Application, owners: readonly Owner[]) {
    const { cluster, tasks, others } = this.#options;
    const nodes = new Map(owners.map((owner) => [owner.incarnation, owner]));
    const answers = new Map([[cluster.self.incarnation, tasks.reports(kind, vhost, app)]]);
    nodes.delete(cluster.self.incarnation);
    const body = Buffer.from(JSON.stringify({ kind, vhost, app }));
    await Promise.all(
      [...nodes.values()].map(async (node) => {
        const answer = await others.askOne(node, { method: 'POST', path: REPORTS, headers: {}, body });
        const told = answer?.status === 200 ? readJson(Reports, answer.body) : undefined;
        if (told !== undefined)
          answers.set(node.incarnation, new Map(Object.entries(told.reports as Record<string, Json>)));
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
    const { cluster } = this.#options;
    if (node.id === cluster.self.id) {
      await this.createHere(name, spec, creation);
      return 'created';
    }
    const { persistent, withinMs } = creation;
    const body = Buffer.from(JSON.stringify({ name, spec, persistent, withinMs }));
    try {
      const request = { method: 'POST', path: CREATE, headers: {}, body };
      const answer = await cluster.forward(node, request, withinMs + CARRIED_MS);
      if (answer.status === 404 && answer.body.length === 0) return 'unknown';
      if (answer.status !== 201) throw failureOf(kind, answer.body);
      return 'created';
    } catch (error) {
      if (error instanceof OutcomeUnknownError) throw kilnError('ownerSilent');
      if (!(error instanceof UnreachableError)) throw error;
      this.#log.warn(
        { ...name, node: node.id, reason: error.message },
        'the node that should run the task cannot be reached',
      );
      return 'unreachable';
    }
  }

  async #answerCreate({ body }: PeerRequest): Promise<PeerResponse> {
    const order = readJson(Order, body);
    const kind = order && this.#options.tasks.kind(order.name.kind);
    // what this version does not know, another node may
    if (order === undefined || kind === undefined || isStreamKind(kind)) return response(404);
    const { name, spec, persistent, withinMs } = order;
    try {
      // who orders it may know an application that this node is yet to hear of
      await this.#options.cluster.config.sync();
      await this.createHere(name, spec as Json, { persistent, withinMs });
      return response(201);
    } catch (error) {
      return response(409, failureJson(kind, error));
    }
  }

  #answerReports({ body }: PeerRequest): PeerResponse {
    const order = readJson(ReportsOrder, body);
    if (order === undefined) return response(404);
    return response(200, {
      reports: Object.fromEntries(this.#options.tasks.reports(order.kind, order.vhost, order.app)),
    });
  }

  /** @throws what a client is told where the store does not answer as it should */
  async #attempt<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (error) {
      if (error instanceof UnavailableError) throw kilnError(error.mayBeDone ? 'changeUnknown' : 'clusterUnavailable');
      if (error instanceof ConflictError) throw kilnError('clusterUnavailable');
      if (error instanceof StorageError) throw kilnError('storageFailed');
      throw error;
    }
  }
}

function response(status: number, json?: Json): PeerResponse {
  return { status, headers: {}, body: json === undefined ? NO_CONTENT : Buffer.from(JSON.stringify(json)) };
}

/** @throws what is a fault, and no failure that others are told of */
function failureJson(kind: PlacedKind, error: unknown): Json {
  if (error instanceof TaskExistsError) return { exists: error.message };
  if (error instanceof TaskEnd) return { end: { reason: error.reason, message: error.message } };
  if (error instanceof KilnError) return { error: { code: error.code, message: error.message, status: error.status } };
  const failure = kind.writeFailure(error);
  if (failure === undefined) throw error;
  return { failure };
}

function failureOf(kind: PlacedKind, body: Buffer): Error {
  const told = readJson(Failure, body);
  if (told === undefined) return kilnError('ownerSilent');
  if ('exists' in told) return new TaskExistsError(told.exists);
  if ('end' in told) return new TaskEnd(told.end.reason as TaskEndCause, told.end.message);
  if ('failure' in told) return kind.readFailure(told.failure as Json);
  const { code, status, message } = told.error;
  return new KilnError(code as ErrorCode, status, message);
}
