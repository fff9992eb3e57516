import type { Json } from '#cluster';
import { outputName } from '../../config/output-name.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import type { ClusterTasks } from '../../tasks/cluster-tasks.ts';
import type { TaskName } from '../../tasks/definition.ts';
import type { TaskDefinitions } from '../../tasks/definitions.ts';
import { TaskExistsError } from '../../tasks/tasks.ts';
import type { ChannelFiles, FileChannelRow } from '../channel-files/channel-files.ts';
import { PULL } from '../pull/kind.ts';
import { readScheduleSpec } from '../scheduled/spec.ts';
import { CHANNEL_KINDS, type ChannelKind } from './channel-kind.ts';
import { findLoop, type ChannelNode, type Loop } from './loops.ts';

export interface ChannelsOptions {
  readonly registry: Registry;
  readonly directory: Pick<StreamDirectory, 'ownerOf'>;
  readonly definitions: TaskDefinitions;
  readonly tasks: Pick<ClusterTasks, 'define' | 'change' | 'find' | 'remove'>;
  readonly files: Pick<ChannelFiles, 'names' | 'find' | 'remove' | 'rewrite'>;
}

/** A channel of the cluster, as it is now. */
export interface Channel<S> {
  readonly name: string;
  readonly spec: S;
  /** What the node that runs it tells of it; undefined while none does. */
  readonly report: Json | undefined;
}

type ChannelRow = Pick<FileChannelRow, 'spec' | 'report'>;

/** The scheduled and multiplex channels of the whole cluster. */
export class Channels {
  readonly #options: ChannelsOptions;

  constructor(options: ChannelsOptions) {
    this.#options = options;
  }

  /** Names of the channels of a kind in an application, in order. */
  async names(kind: ChannelKind<unknown>, application: Application): Promise<string[]> {
    const { definitions, files } = this.#options;
    const known = definitions.in(kind.name, application).map(({ id }) => id);
    const filed = kind.hasFiles(application.config) ? await files.names(kind.name, application) : [];
    return [...new Set([...known, ...filed])].sort();
  }

  /**
   * @throws channelNotFound; callUnknown for one of another version, ownerUnreachable when the node that runs it does
   * not answer
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
   * Creates a channel, which begins on whichever node suits it best.
   * @throws channelExists, channelInvalid (a loop), clusterUnavailable, changeUnknown, storageFailed
   */
  async create<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): Promise<void> {
    if (await this.#isTaken(application, name)) throw kilnError('channelExists', name);
    this.#checkLoops(kind, application, name, spec);
    try {
      await this.#options.tasks.define(taskName(kind, application, name), spec as Json, { persistent: true });
    } catch (error) {
      if (error instanceof TaskExistsError) throw kilnError('channelExists', name);
      throw error;
    }
  }

  /**
   * Changes a channel; the node that runs it goes on with the new definition. What a file defines is written there.
   * @param next makes the new definition of the present one
   * @throws channelNotFound, channelInvalid (a loop), clusterUnavailable, changeUnknown, storageFailed, callUnknown for
   * one of another version; what `next` throws
   */
  async change<S>(kind: ChannelKind<S>, application: Application, name: string, next: (spec: S) => S): Promise<void> {
    const { tasks, files } = this.#options;
    const task = taskName(kind, application, name);
    const change = (json: unknown): S => {
      const spec = kind.read(json);
      if (spec === undefined) throw kilnError('callUnknown');
      const changed = next(spec);
      this.#checkLoops(kind, application, name, changed);
      return changed;
    };
    if (await tasks.change(task, (json) => change(json) as Json)) return;
    const row = await this.#filed(kind, application, task);
    const schedule = row && readScheduleSpec(change(row.spec));
    if (schedule === undefined || !(await files.rewrite(task, schedule))) throw kilnError('channelNotFound');
  }

  /**
   * Ends a channel for good, wherever it runs, and deletes its files.
   * @returns false when there is none
   * @throws clusterUnavailable, changeUnknown, storageFailed, ownerSilent
   */
  async remove(kind: ChannelKind<unknown>, application: Application, name: string): Promise<boolean> {
    const { tasks, files } = this.#options;
    const task = taskName(kind, application, name);
    const isStored = await tasks.remove(task);
    const isFiled = kind.hasFiles(application.config) && (await files.remove(task));
    return isStored || isFiled;
  }

  /** The same of whichever kind it is. */
  async removeAny(application: Application, name: string): Promise<boolean> {
    for (const kind of CHANNEL_KINDS) if (await this.remove(kind, application, name)) return true;
    return false;
  }

  /** Whether a channel of any kind has a name. */
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

  /** How a channel would play itself, directly or through others; undefined when it would not, as far as this node knows. */
  loop<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): Loop | undefined {
    const { vhost, name: app } = application;
    const channel = this.#node(kind, { kind: kind.name, vhost: vhost.name, app, id: name }, spec);
    return findLoop(channel, (ofVhost, ofApp) => this.#nodes(ofVhost, ofApp));
  }

  /** Whether any stream has a name, or is to have it. */
  async #isTaken(application: Application, name: string): Promise<boolean> {
    const { directory } = this.#options;
    if ((await this.has(application, name)) || this.#isDefined(PULL, application, name)) return true;
    if (application.stream(name) !== undefined) return true;
    const { vhost, name: app } = application;
    return (await directory.ownerOf({ vhost: vhost.name, app, stream: name })) !== undefined;
  }

  #isDefined(kind: string, application: Application, id: string): boolean {
    return this.#options.definitions.get(taskName({ name: kind }, application, id)) !== undefined;
  }

  /** @throws channelInvalid */
  #checkLoops<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): void {
    const loop = this.loop(kind, application, name, spec);
    if (loop === undefined) return;
    throw kilnError('channelInvalid', `${loop.element} makes the channel play itself: ${loop.chain.join(' -> ')}`);
  }

  #nodes(vhost: string, app: string): ChannelNode[] {
    const { definitions } = this.#options;
    return CHANNEL_KINDS.flatMap((kind: ChannelKind<unknown>) =>
      definitions.in(kind.name, { vhost: { name: vhost }, name: app }).flatMap((name) => {
        const spec = kind.read(definitions.get(name)?.spec);
        return spec === undefined ? [] : [this.#node(kind, name, spec)];
      }),
    );
  }

  #node<S>(kind: ChannelKind<S>, { vhost, app, id }: TaskName, spec: S): ChannelNode {
    const config = this.#options.registry.vhosts.get(vhost)?.applications.get(app)?.config;
    // what a control server answers for a stream is only known when that is there
    const passesProfiles = !kind.isBypassed(spec) && config?.transcodeWebhook?.enable !== true;
    const profiles = (passesProfiles && config?.outputProfiles.outputProfile) || [];
    const outputs = [id, ...profiles.map((profile) => outputName(profile, id))];
    return { vhost, app, name: id, outputs, sources: kind.sources(spec) };
  }
}

function taskName({ name: kind }: { readonly name: string }, { vhost, name: app }: Application, id: string): TaskName {
  return { kind, vhost: vhost.name, app, id };
}
