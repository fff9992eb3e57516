import type { Json } from '#cluster';
import type { Application } from '../core/application.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { StreamNames } from '../directory/stream-names.ts';
import type { ClusterTasks } from '../tasks/cluster-tasks.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { TaskExistsError } from '../tasks/tasks.ts';
import type { ChannelFiles, FileChannelRow } from './files/channel-files.ts';
import { PULL } from '../providers/pull/kind.ts';
import { readScheduleSpec } from './scheduled/spec.ts';
import type { ChannelGraph } from './channel-graph.ts';
import { CHANNEL_KINDS, type ChannelKind } from './channel-kind.ts';
import { taskName } from './channel-name.ts';

export interface ChannelsOptions {
  readonly names: Pick<StreamNames, 'whileFree'>;
  readonly definitions: TaskDefinitions;
  readonly tasks: Pick<ClusterTasks, 'define' | 'change' | 'find' | 'remove'>;
  readonly files: Pick<ChannelFiles, 'names' | 'find' | 'remove' | 'rewrite'>;
  readonly graph: Pick<ChannelGraph, 'loop'>;
}

/** Present state of a channel of the cluster. */
export interface Channel<S> {
  readonly name: string;
  readonly spec: S;
  /** Report of the node that runs it; undefined while none does. */
  readonly report: Json | undefined;
}

type ChannelRow = Pick<FileChannelRow, 'spec' | 'report'>;

/** The scheduled and multiplex channels of the whole cluster. */
export class Channels {
  readonly #options: ChannelsOptions;

  constructor(options: ChannelsOptions) {
    this.#options = options;
  }

  /** Sorted names of the channels of one kind in an application. */
  async names(kind: ChannelKind<unknown>, application: Application): Promise<string[]> {
    const { definitions, files } = this.#options;
    const known = definitions.in(kind.name, application).map(({ id }) => id);
    const filed = kind.hasFiles(application.config) ? await files.names(kind.name, application) : [];
    return [...new Set([...known, ...filed])].sort();
  }

  /**
   * @throws channelNotFound; callUnknown for a channel of another version; ownerUnreachable when the node that runs
   * it does not answer
   */
  async find<S>(kind: ChannelKind<S>, application: Application, name: string): Promise<Channel<S>> {
    const task = taskName(kind, application, name);
    const row = (await this.#stored(task)) ?? (await this.#filed(kind, application, task));
    if (row === undefined) throw kilnError('channelNotFound');
    const spec = kind.read(row.spec);
    if (spec === undefined) throw kilnError('callUnknown');
    return { name, spec, report: row.report };
  }

  /**
   * Creates a channel, which starts on the node that suits it best. Of simultaneous requests for one stream name only
   * one succeeds.
   * @throws channelExists, channelInvalid (a loop), clusterUnavailable, changeUnknown, storageFailed
   */
  async create<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): Promise<void> {
    const { names, tasks } = this.#options;
    if (await this.#isTaken(application, name)) throw kilnError('channelExists', name);
    await this.#checkLoops(kind, application, name, spec);
    const task = taskName(kind, application, name);
    try {
      await names.whileFree(application, name, () => tasks.define(task, spec as Json, { persistent: true }));
    } catch (error) {
      const code = error instanceof KilnError ? error.code : undefined;
      if (error instanceof TaskExistsError || code === 'streamExists') throw kilnError('channelExists', name);
      if (code === 'streamNameUnconfirmed') throw kilnError('clusterUnavailable');
      throw error;
    }
  }

  /**
   * Changes a channel; its run continues with the new definition. For a channel defined by a file, the file is
   * rewritten.
   * @param next makes the new definition from the present one
   * @throws channelNotFound, channelInvalid (a loop), clusterUnavailable, changeUnknown, storageFailed; callUnknown
   * for a channel of another version; what `next` throws
   */
  async change<S>(kind: ChannelKind<S>, application: Application, name: string, next: (spec: S) => S): Promise<void> {
    const { definitions, tasks, files } = this.#options;
    const task = taskName(kind, application, name);
    const change = (json: unknown): S => {
      const spec = kind.read(json);
      if (spec === undefined) throw kilnError('callUnknown');
      return next(spec);
    };
    const present = definitions.stored(task) ?? (await this.#filed(kind, application, task));
    if (present !== undefined) await this.#checkLoops(kind, application, name, change(present.spec));
    if (await tasks.change(task, (json) => change(json) as Json)) return;
    const row = await this.#filed(kind, application, task);
    const schedule = row && readScheduleSpec(change(row.spec));
    if (schedule === undefined || !(await files.rewrite(task, schedule))) throw kilnError('channelNotFound');
  }

  /**
   * Ends a channel for good on any node, and deletes its files. Nodes that are away delete theirs when they return.
   * @returns false when there is none
   * @throws clusterUnavailable, changeUnknown, storageFailed; ownerUnreachable, ownerSilent when nothing is found and
   * a node does not answer
   */
  async remove(kind: ChannelKind<unknown>, application: Application, name: string): Promise<boolean> {
    const { tasks, files } = this.#options;
    const task = taskName(kind, application, name);
    const isStored = await tasks.remove(task);
    const isFiled = kind.hasFiles(application.config) && (await files.remove(task, isStored));
    return isStored || isFiled;
  }

  /** Removes the channel of that name, whatever its kind; returns and throws as `remove`. */
  async removeAny(application: Application, name: string): Promise<boolean> {
    for (const kind of CHANNEL_KINDS) if (await this.remove(kind, application, name)) return true;
    return false;
  }

  /** Whether a channel of any kind has this name. */
  async has(application: Application, name: string): Promise<boolean> {
    for (const kind of CHANNEL_KINDS) {
      if (this.#isDefined(kind.name, application, name)) return true;
      if ((await this.#filed(kind, application, taskName(kind, application, name))) !== undefined) return true;
    }
    return false;
  }

  /** @throws ownerUnreachable */
  async #stored(task: TaskName): Promise<ChannelRow | undefined> {
    const { definitions, tasks } = this.#options;
    if (definitions.stored(task) === undefined) return undefined;
    const row = await tasks.find(task);
    if (row?.state === 'unknown') throw kilnError('ownerUnreachable');
    return row && { spec: row.definition.spec, report: row.report };
  }

  async #filed({ hasFiles }: Pick<ChannelKind<unknown>, 'hasFiles'>, { config }: Application, task: TaskName) {
    return hasFiles(config) ? await this.#options.files.find(task) : undefined;
  }

  /** Whether any stream has this name or has reserved it, as far as this node knows. */
  async #isTaken(application: Application, name: string): Promise<boolean> {
    if ((await this.has(application, name)) || this.#isDefined(PULL, application, name)) return true;
    return application.stream(name) !== undefined;
  }

  #isDefined(kind: string, application: Application, id: string): boolean {
    return this.#options.definitions.get(taskName({ name: kind }, application, id)) !== undefined;
  }

  /** @throws channelInvalid */
  async #checkLoops<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): Promise<void> {
    const loop = await this.#options.graph.loop(kind, application, name, spec);
    if (loop === undefined) return;
    throw kilnError('channelInvalid', `${loop.element} makes the channel play itself: ${loop.chain.join(' -> ')}`);
  }
}
