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

/** However many URLs there are, a stream that is to be pulled plays within this, or is not pulled. */
const CREATION_MS = 30_000;

export interface PulledStreamsOptions {
  readonly directory: StreamDirectory;
  readonly definitions: TaskDefinitions;
  readonly tasks: ClusterTasks;
  readonly log: Logger;
}

/** The pulled streams of the whole cluster. */
export class PulledStreams {
  readonly #options: PulledStreamsOptions;
  readonly #log: Logger;

  constructor(options: PulledStreamsOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'pull' });
  }

  /**
   * Pulls a stream, on a node that has little to do. Resolves when it plays.
   * @throws streamExists, clusterUnavailable, changeUnknown, storageFailed, ownerUnreachable, ownerSilent, nodeDraining; PullError when no URL has it
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
      const failure = told(error);
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

  /** The same on this node. @throws what `create` does */
  async createHere(application: Application, name: string, order: PullOrder): Promise<void> {
    try {
      await this.#options.tasks.createHere(taskName(application, name), asJson(order.spec), creation(order));
    } catch (error) {
      throw told(error);
    }
  }

  /**
   * Ends a pulled stream for good, wherever it is.
   * @returns false when there is none of that name
   * @throws clusterUnavailable, changeUnknown, storageFailed
   */
  async remove(application: Application, name: string): Promise<boolean> {
    return await this.#options.tasks.remove(taskName(application, name));
  }

  /** Names of those of an application that are listed though nobody may have them now. */
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

/** A failure as clients are told of it, and those that are no failures as they are. */
function told(error: unknown): unknown {
  if (error instanceof TaskExistsError) return kilnError('streamExists');
  return error instanceof TaskEnd ? new PullError(error.message) : error;
}
