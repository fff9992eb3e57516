import { isDeepStrictEqual } from 'node:util';
import { ConflictError, joinKey, type Change, type Cluster, type ConfigEntry, type Json } from '#cluster';
import { TEMPLATE } from '../core/vhost.ts';
import {
  definitionKey,
  definitionsKey,
  readDefinition,
  taskOfKey,
  type TaskDefinition,
  type TaskName,
  type TaskOrigin,
} from './definition.ts';
import { asJson } from '../lib/as-json.ts';
import { OfferedTasks } from './offered.ts';
import { ProgressWriter } from './progress-writer.ts';
import type { TaskProgress } from './progress.ts';

/** Name of an application. */
interface ApplicationName {
  readonly vhost: { readonly name: string };
  readonly name: string;
}

/** Definitions of all tasks: those in the configuration that all nodes share, and those that this node offers. */
export class TaskDefinitions {
  readonly offered = new OfferedTasks();
  readonly #config: Cluster['config'];
  readonly #progress: ProgressWriter;
  /** Names by kind and application, as of `#indexed`: entries are immutable, changed ones are new objects. */
  #index: ReadonlyMap<string, readonly TaskName[]> = new Map();
  /** Names of entries that were read already: of thousands few change at a time. */
  readonly #names = new WeakMap<ConfigEntry, TaskName | undefined>();
  #indexed: ReadonlyMap<string, ConfigEntry> | undefined;

  constructor(config: Cluster['config']) {
    this.#config = config;
    this.#progress = new ProgressWriter(config);
  }

  /** Definition as this node knows it: the stored one, or else the one that this node offers under that name. */
  get(name: TaskName): TaskDefinition | undefined {
    return this.stored(name) ?? this.offered.get(name);
  }

  /** Stored definition as this node knows it. */
  stored(name: TaskName): TaskDefinition | undefined {
    return readDefinition(this.#config.entries().get(definitionKey(name))?.value);
  }

  /** Names of all stored tasks. */
  *names(): IterableIterator<TaskName> {
    for (const [key, entry] of this.#config.entries()) {
      if (!key.startsWith('%23')) continue;
      if (!this.#names.has(entry)) this.#names.set(entry, taskOfKey(key));
      const name = this.#names.get(entry);
      if (name !== undefined) yield name;
    }
  }

  /** Names of the tasks of one kind in an application. */
  in(kind: string, { vhost, name }: ApplicationName): readonly TaskName[] {
    const entries = this.#config.entries();
    if (entries !== this.#indexed) {
      this.#index = Map.groupBy(this.names(), (task) => joinKey(task.kind, task.vhost, task.app));
      this.#indexed = entries;
    }
    const stored = this.#index.get(joinKey(kind, vhost.name, name)) ?? [];
    const offered = this.offered.in(kind, vhost.name, name).filter((task) => this.stored(task) === undefined);
    return offered.length === 0 ? stored : [...stored, ...offered];
  }

  /**
   * Stores a new definition.
   * @param without tasks that must not be defined at the same time
   * @throws ConflictError when the task, or one of those, is defined, UnavailableError, StorageError
   */
  async create(name: TaskName, definition: TaskDefinition, without: readonly TaskName[] = []): Promise<void> {
    const expected = without.map((other) => ({ key: definitionKey(other), seen: 0 }));
    await this.#config.write([{ key: definitionKey(name), value: asJson(definition), seen: 0 }], expected);
  }

  /**
   * Deletes a definition.
   * @param origin that it must have; one of another is left as it is
   * @returns false when there is none
   * @throws UnavailableError, StorageError; ConflictError when others keep changing it
   */
  async remove(name: TaskName, origin?: TaskOrigin): Promise<boolean> {
    const isOther = (value: Json): boolean =>
      origin !== undefined && !isDeepStrictEqual(readDefinition(value)?.origin, origin);
    return (await this.#change(name, (value) => (isOther(value) ? value : undefined))) === 'written';
  }

  /**
   * Gives a task that the configuration asks for to the node that has its stream now.
   * @returns false when there is none
   * @throws UnavailableError, StorageError; ConflictError when others keep changing it
   */
  async adopt(name: TaskName, origin: TaskOrigin): Promise<boolean> {
    // with what a later version may have put there
    return (await this.#change(name, (value) => ({ ...(value as object), origin: { ...origin } }))) === 'written';
  }

  /**
   * Gives a task another spec and keeps everything else: its owner goes on.
   * @param next makes the new spec from the present one; called again when others have changed that since
   * @returns false when there is none
   * @throws UnavailableError, StorageError; ConflictError when others keep changing it; what `next` throws
   */
  async change(name: TaskName, next: (spec: Json) => Json): Promise<boolean> {
    const outcome = await this.#change(name, (value) => {
      const definition = readDefinition(value);
      if (definition === undefined) return value;
      const spec = next(definition.spec);
      return isDeepStrictEqual(spec, definition.spec) ? value : { ...(value as object), spec };
    });
    return outcome !== 'none';
  }

  /** @param next makes the new value: the same one for no change, undefined to delete it */
  async #change(name: TaskName, next: (value: Json) => Json | undefined): Promise<'none' | 'same' | 'written'> {
    const key = definitionKey(name);
    for (let attempt = 1; ; attempt++) {
      // one that was created elsewhere a moment ago may not be known yet
      if (!this.#config.entries().has(key)) await this.#config.sync();
      const entry = this.#config.entries().get(key);
      if (entry === undefined) return 'none';
      const value = next(entry.value);
      if (value === entry.value) return 'same';
      try {
        await this.#config.write([{ key, seen: entry.revision, ...(value !== undefined && { value }) }]);
        return 'written';
      } catch (error) {
        if (!(error instanceof ConflictError) || attempt === 3) throw error;
        await this.#config.sync();
      }
    }
  }

  /**
   * Writes progress into a definition, where it lasts as long as that does. Resolves when it is there, or newer progress,
   * or when the definition is not there any more.
   * @throws UnavailableError, StorageError, ConflictError
   */
  save(name: TaskName, progress: TaskProgress): Promise<void> {
    return this.#progress.save(name, progress);
  }

  /**
   * True for a task that is complete, one of a virtual host or an application that is not stored any more, and one that was
   * not to outlive a restart of them and has. (What Server.xml has is on every node that was started with it.)
   */
  isLeftOver({ vhost, app }: TaskName, { stored, persistent, generation, progress }: TaskDefinition): boolean {
    if (progress?.over === true) return true;
    if (!stored) return false;
    const entries = this.#config.entries();
    const parent = entries.get(joinKey(vhost));
    const own = entries.get(joinKey(vhost, app));
    if (parent === undefined || (own === undefined && !hasTemplate(parent))) return true;
    const restarted = Math.max(parent.revision, own?.revision ?? 0);
    return !persistent && generation !== undefined && generation < restarted;
  }
}

/**
 * Changes that delete the definitions of all tasks of a virtual host, or of one application of it. Tasks that run may write
 * their progress into them before that: this is no conflict.
 */
export function removals(config: Cluster['config'], vhost: string, app?: string): Change[] {
  const folders = new Set<string>();
  for (const key of config.entries().keys()) {
    const name = key.startsWith('%23') ? taskOfKey(key) : undefined;
    if (name?.vhost !== vhost || (app !== undefined && name.app !== app)) continue;
    folders.add(definitionsKey(name.kind, vhost, app));
  }
  return Array.from(folders, (key) => ({ key, seen: 0 }));
}

function hasTemplate({ value }: ConfigEntry): boolean {
  const { applications = [] } = value as { readonly applications?: readonly { readonly name?: string }[] };
  return applications.some(({ name }) => name === TEMPLATE);
}
