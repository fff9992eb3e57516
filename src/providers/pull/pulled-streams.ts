import Type from 'typebox';
import {
  ConflictError,
  joinKey,
  OutcomeUnknownError,
  place,
  splitKey,
  StorageError,
  UnavailableError,
  UnreachableError,
  type Cluster,
  type NodeRow,
  type PeerRequest,
  type PeerResponse,
} from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError, type ErrorCode } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import { readJson } from '../../origins/json.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { TaskEnd } from '../../tasks/kind.ts';
import { TaskExistsError, type Tasks } from '../../tasks/tasks.ts';
import { PullError, shownUrl } from './error.ts';
import { PULL } from './kind.ts';
import { pullProvider } from './provider.ts';
import { readSpec, specJson, type PullOrder } from './spec.ts';

const PREFIX = '/pull/';
/** However many URLs there are, a stream that is to be pulled plays within this, or is not pulled. */
const CREATION_MS = 30_000;
const CARRIED_MS = CREATION_MS + 10_000;

const CarriedOrder = Type.Object({ spec: Type.Unknown(), persistent: Type.Boolean() });
/** Of a failure on another node. */
const Failure = Type.Object({ code: Type.String(), message: Type.String(), status: Type.Number() });

export interface PulledStreamsOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly tasks: Tasks;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

/** The pulled streams of the whole cluster. */
export class PulledStreams {
  readonly #options: PulledStreamsOptions;
  readonly #log: Logger;

  constructor(options: PulledStreamsOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'pull' });
    options.calls.add(PREFIX, (request) => this.#answer(request));
  }

  /**
   * Pulls a stream, on the node that has the least to do. Resolves when it plays.
   * @throws streamExists, clusterUnavailable, changeUnknown, storageFailed, ownerUnreachable, ownerSilent, nodeDraining; PullError when no URL has it
   */
  async create(application: Application, name: string, order: PullOrder): Promise<void> {
    const { cluster, directory } = this.#options;
    const { vhost, name: app } = application;
    if (this.#definition(application, name) !== undefined) throw kilnError('streamExists');
    if (!pullProvider(application.config, order.spec.urls).replaces) {
      const owner = application.stream(name) ?? (await directory.ownerOf({ vhost: vhost.name, app, stream: name }));
      if (owner !== undefined) throw kilnError('streamExists');
    }
    let others = cluster.nodes();
    for (let attempt = 1; attempt <= 2; attempt++) {
      const node = place(others);
      if (node === undefined) break;
      if (await this.#tryOn(node, application, name, order)) return;
      others = others.filter(({ id }) => id !== node.id);
    }
    throw kilnError(others.length < cluster.nodes().length ? 'ownerUnreachable' : 'nodeDraining');
  }

  /** The same on this node. @throws what `create` does */
  async createHere({ vhost, name: app }: Application, id: string, { spec, persistent }: PullOrder): Promise<void> {
    const { tasks } = this.#options;
    try {
      const task = { kind: PULL, vhost: vhost.name, app, id };
      await tasks.create(task, specJson(spec), { persistent, withinMs: CREATION_MS });
    } catch (error) {
      throw told(error);
    }
  }

  /**
   * Ends a pulled stream for good, wherever it is.
   * @returns false when there is none of that name
   * @throws clusterUnavailable, changeUnknown, storageFailed
   */
  async remove({ vhost, name: app }: Application, id: string): Promise<boolean> {
    try {
      return await this.#options.tasks.remove({ kind: PULL, vhost: vhost.name, app, id });
    } catch (error) {
      throw told(error);
    }
  }

  /** Names of those of an application that are listed though nobody may have them now. */
  persistent(application: Application): string[] {
    const { definitions } = this.#options.tasks;
    return definitions
      .in(PULL, application)
      .filter((name) => definitions.get(name)?.persistent)
      .map(({ id }) => id);
  }

  #definition({ vhost, name: app }: Application, id: string) {
    return this.#options.tasks.definitions.get({ kind: PULL, vhost: vhost.name, app, id });
  }

  async #tryOn(node: NodeRow, application: Application, name: string, order: PullOrder): Promise<boolean> {
    try {
      return await this.#createOn(node, application, name, order);
    } catch (error) {
      if (!(error instanceof PullError)) throw error;
      const urls = order.spec.urls.map(shownUrl);
      this.#log.warn({ node: node.id, stream: name, urls, reason: error.message }, 'a stream could not be pulled');
      throw error;
    }
  }

  /** @returns false when the node was not reached */
  async #createOn(node: NodeRow, application: Application, name: string, order: PullOrder): Promise<boolean> {
    const { cluster } = this.#options;
    if (node.id === cluster.self.id) {
      await this.createHere(application, name, order);
      return true;
    }
    const path = `${PREFIX}${joinKey(application.vhost.name, application.name, name)}`;
    const request = { method: 'POST', path, headers: {}, body: Buffer.from(JSON.stringify(order)) };
    try {
      const { status, body } = await cluster.forward(node, request, CARRIED_MS);
      if (status !== 201) throw failureOf(body);
      return true;
    } catch (error) {
      if (error instanceof OutcomeUnknownError) throw kilnError('ownerSilent');
      if (!(error instanceof UnreachableError)) throw error;
      this.#log.warn(
        { node: node.id, stream: name, reason: error.message },
        'a node that was to pull a stream cannot be reached',
      );
      return false;
    }
  }

  async #answer({ path, body }: PeerRequest): Promise<PeerResponse> {
    const [vhost = '', app = '', name = ''] = splitKey(path.slice(PREFIX.length));
    const order = readJson(CarriedOrder, body);
    const spec = order && readSpec(order.spec);
    try {
      if (order === undefined || spec === undefined) throw new PullError('the order is of another version');
      await this.createHere(this.#options.registry.vhost(vhost).application(app), name, {
        spec,
        persistent: order.persistent,
      });
      return { status: 201, headers: {}, body: Buffer.alloc(0) };
    } catch (error) {
      return failure(error);
    }
  }
}

/** A failure as clients are told of it, and those that are no failures as they are. */
function told(error: unknown): unknown {
  if (error instanceof TaskExistsError) return kilnError('streamExists');
  if (error instanceof UnavailableError && error.mayBeDone) return kilnError('changeUnknown');
  if (error instanceof UnavailableError || error instanceof ConflictError) return kilnError('clusterUnavailable');
  if (error instanceof StorageError) return kilnError('storageFailed');
  return error instanceof TaskEnd ? new PullError(error.message) : error;
}

/** @throws what is no failure that a client is told of */
function failure(error: unknown): PeerResponse {
  if (!(error instanceof KilnError || error instanceof PullError)) throw error;
  const { code, status } = error instanceof KilnError ? error : { code: '', status: 502 };
  return { status, headers: {}, body: Buffer.from(JSON.stringify({ code, status, message: error.message })) };
}

function failureOf(body: Buffer): Error {
  const failure = readJson(Failure, body);
  if (failure === undefined) return new PullError('the node that was to pull it is of another version');
  const { code, status, message } = failure;
  return code === '' ? new PullError(message) : new KilnError(code as ErrorCode, status, message);
}
