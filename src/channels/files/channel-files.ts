import { resolve } from 'node:path';
import Type from 'typebox';
import type { Cluster, Json } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError, type KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { OtherNodes } from '../../peers/other-nodes.ts';
import { definePeerCall } from '../../peers/peer-call.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';
import type { TaskName } from '../../tasks/definition.ts';
import { pause } from '../../lib/pause.ts';
import { inStore } from '../../tasks/store-failure.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import { readScheduleSpec, type ScheduleSpec } from '../scheduled/spec.ts';
import { ChannelFolder } from './channel-folder.ts';
import { ChannelDeletions } from './deletions.ts';
import { MULTIPLEX_FILES, SCHEDULE_FILES, type ChannelFileKind } from './kinds.ts';
import { writeSchedule } from './write-schedule.ts';

/** Pause between two scans of the folders. */
const LOOK_MS = 500;
const KINDS: readonly ChannelFileKind[] = [SCHEDULE_FILES, MULTIPLEX_FILES];

const Name = { kind: Type.String(), vhost: Type.String(), app: Type.String(), id: Type.String() };
const { id: _, ...Folder } = Name;
/** Names of the channels that files of the called node define. */
const NAMES = definePeerCall(
  'channel-files/names',
  Type.Object(Folder),
  Type.Object({ names: Type.Array(Type.String()) }),
);
/** The channel that a file of the called node defines. */
const FIND = definePeerCall(
  'channel-files/find',
  Type.Object(Name),
  Type.Object({
    spec: Type.Optional(Type.Unknown()),
    /** Whether the called node runs it. */
    isRunning: Type.Boolean(),
    report: Type.Optional(Type.Unknown()),
  }),
);
/** Deletes the file of a channel. `at`: time of the deletion, in milliseconds since the epoch. */
const REMOVE = definePeerCall(
  'channel-files/remove',
  Type.Object({ ...Name, at: Type.Number() }),
  Type.Object({ found: Type.Boolean() }),
);
/** Rewrites the file of a scheduled channel. */
const REWRITE = definePeerCall(
  'channel-files/rewrite',
  Type.Object({ ...Name, spec: Type.Unknown() }),
  Type.Object({ found: Type.Boolean() }),
);

export interface ChannelFilesOptions {
  readonly cluster: Pick<Cluster, 'config'>;
  readonly registry: Registry;
  readonly tasks: Tasks;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
  /** Base of relative paths. */
  readonly folder: string;
  readonly log: Logger;
}

/** A channel that files define, as seen by the node that runs it. */
export interface FileChannelRow {
  readonly spec: Json;
  readonly isRunning: boolean;
  readonly report: Json | undefined;
}

/**
 * Channels that files define: `.sch` in ScheduleFilesDir and `.mux` in MuxFilesDir of each application. They belong
 * to the nodes that have the file; one of these runs them.
 */
export class ChannelFiles {
  readonly #options: ChannelFilesOptions;
  readonly #log: Logger;
  readonly #folders = new Map<Application, readonly ChannelFolder[]>();
  readonly #deletions: ChannelDeletions;
  readonly #closed = new AbortController();

  constructor(options: ChannelFilesOptions) {
    const { calls, cluster, log } = options;
    this.#options = options;
    this.#deletions = new ChannelDeletions(cluster.config);
    this.#log = log.child({ module: 'channels' });
    calls.answer(NAMES, ({ kind, vhost, app }) => ({ names: this.#names(kind, vhost, app) }));
    calls.answer(FIND, (name) => this.#find(name));
    calls.answer(REMOVE, async ({ at, ...name }) => ({ found: await this.#remove(name, at) }));
    calls.answer(REWRITE, async ({ spec, ...name }) => {
      const known = readScheduleSpec(spec);
      if (known === undefined) throw kilnError('callUnknown');
      return { found: await this.#rewrite(name, known) };
    });
  }

  /** Starts to scan the folders. Call it when the tasks have started. */
  start(): void {
    void this.#watch();
  }

  /**
   * Stops scanning. The channels continue on other nodes that have their files. Call it after the tasks are closed.
   * Idempotent.
   */
  close(): void {
    this.#closed.abort();
  }

  /** Sorted names of the channels of a kind that files of any node define. */
  async names(kind: string, { vhost: { name: vhost }, name: app }: Application): Promise<string[]> {
    const replies = await this.#options.others.ask(NAMES, { kind, vhost, app });
    const elsewhere = replies.flatMap(({ answer }) => answer?.names ?? []);
    return [...new Set([...this.#names(kind, vhost, app), ...elsewhere])].sort();
  }

  /** Finds the channel that a file of any node defines; of several, that of the node that runs it. */
  async find(name: TaskName): Promise<FileChannelRow | undefined> {
    return (await this.#findAnywhere(name)).row;
  }

  /**
   * Ends a channel by deleting its file on every node that has it. An unreachable node deletes its file when it
   * returns.
   * @param isKnown whether such a channel existed, by a file or otherwise
   * @returns false when there is none
   * @throws storageFailed, clusterUnavailable, changeUnknown; ownerUnreachable, ownerSilent when no node that answers
   * has such a file, and one does not answer
   */
  async remove(name: TaskName, isKnown: boolean): Promise<boolean> {
    const { row, error: unanswered } = isKnown ? { row: true } : await this.#findAnywhere(name);
    if (row === undefined && unanswered !== undefined) throw unanswered;
    if (row === undefined) return false;
    const at = Date.now();
    await inStore(() => this.#deletions.add(name, at));
    await this.#remove(name, at);
    const replies = await this.#options.others.ask(REMOVE, { ...name, at });
    for (const { error } of replies) if (error?.code === 'storageFailed') throw error;
    return true;
  }

  /**
   * Changes the definition of a scheduled channel by rewriting its file on every node that has it.
   * @returns false when no node has it
   * @throws storageFailed, ownerSilent when a node does not answer
   */
  async rewrite(name: TaskName, spec: ScheduleSpec): Promise<boolean> {
    const here = await this.#rewrite(name, spec);
    const replies = await this.#options.others.ask(REWRITE, { ...name, spec });
    // otherwise some nodes would keep the old definition
    for (const { error } of replies) if (error !== undefined && error.code !== 'callUnknown') throw error;
    return here || replies.some(({ answer }) => answer?.found === true);
  }

  /** @returns also why a node did not answer */
  async #findAnywhere(name: TaskName): Promise<{ row: FileChannelRow | undefined; error: KilnError | undefined }> {
    const replies = await this.#options.others.ask(FIND, { ...name });
    const found = [this.#find(name), ...replies.flatMap(({ answer }) => answer ?? [])];
    const row = found.find(({ isRunning }) => isRunning) ?? found.find(({ spec }) => spec !== undefined);
    const error = replies.find((reply) => reply.error !== undefined && reply.error.code !== 'callUnknown')?.error;
    if (row?.spec === undefined) return { row: undefined, error };
    return { row: { spec: row.spec as Json, isRunning: row.isRunning, report: row.report as Json | undefined }, error };
  }

  #names(kind: string, vhost: string, app: string): string[] {
    return this.#options.tasks.definitions.offered.in(kind, vhost, app).map(({ id }) => id);
  }

  #find(name: TaskName): { spec?: unknown; isRunning: boolean; report?: unknown } {
    const { tasks } = this.#options;
    const offered = tasks.definitions.offered.get(name);
    if (offered === undefined || tasks.definitions.stored(name) !== undefined) return { isRunning: false };
    const report = tasks.reports(name).get(name.id);
    return { spec: offered.spec, isRunning: report !== undefined, report: report ?? undefined };
  }

  async #remove(name: TaskName, at: number): Promise<boolean> {
    return await this.#attempt(name, (folder) => folder.remove(name.id, at));
  }

  async #rewrite(name: TaskName, spec: ScheduleSpec): Promise<boolean> {
    return await this.#attempt(name, (folder) => folder.rewrite(name.id, writeSchedule(name.id, spec)));
  }

  /** @throws storageFailed */
  async #attempt(name: TaskName, step: (folder: ChannelFolder) => Promise<boolean>): Promise<boolean> {
    const folder = this.#folder(name);
    if (folder === undefined) return false;
    try {
      return await step(folder);
    } catch (error) {
      this.#log.error({ ...name, err: error }, 'the file of the channel could not be changed');
      throw kilnError('storageFailed');
    }
  }

  #folder({ kind, vhost, app }: TaskName): ChannelFolder | undefined {
    const application = this.#options.registry.vhosts.get(vhost)?.applications.get(app);
    const folders = application === undefined ? [] : (this.#folders.get(application) ?? []);
    return folders.find((folder) => folder.kind === kind);
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closed;
    // files of channels deleted while this node was away must not start to play
    await this.#deletions.catchUp();
    while (!signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        this.#log.error({ err: error }, 'the folders of channel files could not be looked at');
      }
      await pause(LOOK_MS, signal);
    }
  }

  async #look(): Promise<void> {
    const applications = new Set<Application>();
    for (const vhost of this.#options.registry.vhosts.values())
      for (const application of vhost.applications.values()) applications.add(application);
    for (const [application, folders] of this.#folders) {
      if (applications.has(application)) continue;
      this.#folders.delete(application);
      await Promise.all(folders.map((folder) => folder.close()));
    }
    for (const application of applications) {
      const folders = this.#folders.get(application) ?? this.#open(application);
      for (const folder of folders) if (!this.#closed.signal.aborted) await folder.look();
    }
  }

  #open(application: Application): readonly ChannelFolder[] {
    const { tasks, folder: base } = this.#options;
    const folders = KINDS.flatMap((kind) => {
      const folder = kind.folder(application.config);
      const path = folder === undefined ? undefined : resolve(base, folder);
      return path === undefined
        ? []
        : [new ChannelFolder({ application, kind, path, tasks, deletions: this.#deletions, log: this.#log })];
    });
    this.#folders.set(application, folders);
    return folders;
  }
}
