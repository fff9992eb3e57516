import type { Application } from '../../core/application.ts';
import { kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import type { ClusterTasks } from '../../tasks/cluster-tasks.ts';
import type { TaskName } from '../../tasks/definition.ts';
import type { TaskDefinitions } from '../../tasks/definitions.ts';
import { asJson } from '../../lib/as-json.ts';
import { TaskEnd } from '../../tasks/kind.ts';
import { TaskExistsError, type TaskCreation } from '../../tasks/tasks.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import { PULL } from './kind.ts';
import { pullProvider } from './provider.ts';
import type { PullOrder } from './spec.ts';

/** Time within which a stream must play, with any number of URLs. */
const CREATION_MS = 30_000;

export interface PulledStreamsOptions {
  readonly directory: StreamDirectory;
  readonly definitions: TaskDefinitions;
  readonly tasks: ClusterTasks;
  readonly log: Logger;
}

/** Pulled streams of the whole cluster. */
export class PulledStreams {
  readonly #options: PulledStreamsOptions;
  readonly #log: Logger;

  constructor(options: PulledStreamsOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'pull' });
  }

  /**
   * Pulls a stream on a node with little load. Resolves when it plays.
   * @throws streamExists, clusterUnavailable, changeUnknown, storageFailed, ownerUnreachable, ownerSilent, nodeDraining;
   * PullError when no URL has it
   */
  async create(application: Application, name: string, order: PullOrder): Promise<void> {
    const { definitions, directory, tasks } = this.#options;
    const { vhost, name: app } = application;
    if (definitions.get(taskName(application, name)) !== undefined) throw kilnError('streamExists');
    if (!pullProvider(application.config, order.spec.urls).replaces) {
      const owner = application.stream(name) ?? (await directory.ownerOf({ vhost: vhost.name, app, stream: name }));
      if (owner !== undefined) throw kilnError('streamExists');
    }
    try {
      await tasks.create(taskName(application, name), asJson(order.spec), creation(order));
    } catch (error) {
      const failure = shownError(error);
      if (failure instanceof PullError) {
        const urls = order.spec.urls.map(shownUrl);
        this.#log.warn(
          { event: 'pull.failed', stream: name, urls, reason: failure.message },
          'the stream could not be pulled',
        );
      }
      throw failure;
    }
  }

  /** Pulls a stream on this node. Resolves when it plays. @throws the errors of `create` */
  async createHere(application: Application, name: string, order: PullOrder): Promise<void> {
    try {
      await this.#options.tasks.createHere(taskName(application, name), asJson(order.spec), creation(order));
    } catch (error) {
      throw shownError(error);
    }
  }

  /**
   * Ends a pulled stream on any node.
   * @returns false when there is none of that name
   * @throws clusterUnavailable, changeUnknown, storageFailed
   */
  async remove(application: Application, name: string): Promise<boolean> {
    return await this.#options.tasks.remove(taskName(application, name));
  }

  /** Names of an application's persistent pulled streams, which are listed even when no node has them. */
  persistent(application: Application): string[] {
    const { definitions } = this.#options;
    return definitions
      .in(PULL, application)
      .filter((name) => definitions.get(name)?.persistent)
      .map(({ id }) => id);
  }
}

function taskName({ vhost, name: app }: Application, id: string): TaskName {
  return { kind: PULL, vhost: vhost.name, app, id };
}

function creation({ persistent }: PullOrder): TaskCreation {
  return { persistent, withinMs: CREATION_MS };
}

/** Converts the failure of a task to the error that clients see; others stay as they are. */
function shownError(error: unknown): unknown {
  if (error instanceof TaskExistsError) return kilnError('streamExists');
  return error instanceof TaskEnd ? new PullError(error.message) : error;
}
