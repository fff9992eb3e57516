import Type from 'typebox';
import { ConflictError, place, StorageError, UnavailableError, type Cluster, type NodeRow } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { definePeerCall, STREAM_FIELDS } from '../../origins/peer-call.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { TaskEnd } from '../../tasks/kind.ts';
import { TaskExistsError, type Tasks } from '../../tasks/tasks.ts';
import { PullError, shownUrl } from './error.ts';
import { PULL } from './kind.ts';
import { pullProvider } from './provider.ts';
import { readSpec, specJson, type PullOrder } from './spec.ts';

/** However many URLs there are, a stream that is to be pulled plays within this, or is not pulled. */
const CREATION_MS = 30_000;
const CARRIED_MS = CREATION_MS + 10_000;
/** Errors of a node that has not begun to pull: another one is called. */
const NOT_TAKEN: readonly string[] = ['ownerUnreachable', 'callUnknown'];

/** Pulls a stream on the node that is called. Answers why no URL has it, or null. */
const CREATE = definePeerCall(
  'pull/create',
  Type.Object({ ...STREAM_FIELDS, spec: Type.Unknown(), persistent: Type.Boolean() }),
  Type.Union([Type.Object({ failure: Type.String() }), Type.Null()]),
);

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
    options.calls.answer(CREATE, async ({ vhost, app, stream, spec, persistent }) => {
      const application = options.registry.vhost(vhost).application(app);
      try {
        await this.createHere(application, stream, { spec: readCarried(spec), persistent });
        return null;
      } catch (error) {
        if (error instanceof PullError) return { failure: error.message };
        throw error;
      }
    });
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
    const { cluster, calls } = this.#options;
    if (node.id === cluster.self.id) {
      await this.createHere(application, name, order);
      return true;
    }
    const { spec, persistent } = order;
    const request = { vhost: application.vhost.name, app: application.name, stream: name, spec, persistent };
    try {
      const answer = await calls.call(node, CREATE, request, CARRIED_MS);
      if (answer !== null) throw new PullError(answer.failure);
      return true;
    } catch (error) {
      if (!(error instanceof KilnError && NOT_TAKEN.includes(error.code))) throw error;
      this.#log.warn(
        { node: node.id, stream: name, reason: (error.cause as Error | undefined)?.message ?? error.message },
        'a node that was to pull a stream cannot be reached',
      );
      return false;
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

/** @throws callMalformed for what a node of another version may send */
function readCarried(value: unknown): PullOrder['spec'] {
  const spec = readSpec(value);
  if (spec === undefined) throw kilnError('callMalformed', CREATE.name);
  return spec;
}
