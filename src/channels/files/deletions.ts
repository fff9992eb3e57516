import { setTimeout as delay } from 'node:timers/promises';
import Type from 'typebox';
import Value from 'typebox/value';
import { ConflictError, joinKey, StorageError, UnavailableError, type Change, type Cluster, type Json } from '#cluster';
import type { TaskName } from '../../tasks/definition.ts';

/** Key of deletions in the cluster's configuration: no virtual host has a name with `#`. */
const DELETIONS = joinKey('#deleted');
/** Deletions are kept for nodes that are away this long, up to a limit; the oldest are dropped first. */
const KEPT_MS = 30 * 86_400_000;
const MAX_KEPT = 1000;
const ATTEMPTS = 5;
/** Longest pause between two attempts. */
const PAUSE_MS = 100;
/** Errors that a write to the store may end with. */
const EXPECTED = [ConflictError, UnavailableError, StorageError];

const Deletion = Type.Object({ at: Type.Number() });

/**
 * Channels whose files were deleted through the management API, in the shared configuration: a node that was away
 * deletes its own files when it returns.
 */
export class ChannelDeletions {
  readonly #config: Cluster['config'];

  constructor(config: Cluster['config']) {
    this.#config = config;
  }

  /**
   * Time of the last deletion of a channel, in milliseconds since the epoch; undefined when this node knows of none.
   */
  at(name: TaskName): number | undefined {
    return readAt(this.#config.entries().get(keyOf(name))?.value);
  }

  /** Resolves when this node knows every earlier deletion, or the store is unreachable. */
  async catchUp(): Promise<void> {
    await this.#config.sync();
  }

  /**
   * Records a deletion.
   * @param at milliseconds since the epoch
   * @throws UnavailableError, StorageError; ConflictError when other nodes keep changing it
   */
  async add(name: TaskName, at: number): Promise<void> {
    const key = keyOf(name);
    for (let attempt = 1; ; attempt++) {
      const seen = this.#config.entries().get(key)?.revision ?? 0;
      try {
        await this.#config.write([{ key, seen, value: { at } }]);
        break;
      } catch (error) {
        if (!(error instanceof ConflictError) || attempt === ATTEMPTS) throw error;
        await delay(Math.random() * PAUSE_MS);
        await this.#config.sync();
      }
    }
    await this.#prune(key, at);
  }

  async #prune(added: string, now: number): Promise<void> {
    const removals = this.#removals(added, now);
    if (removals.length === 0) return;
    try {
      await this.#config.write(removals);
    } catch (error) {
      // the deletion itself is stored; pruning is left to other nodes and the next deletion
      if (!EXPECTED.some((kind) => error instanceof kind)) throw error;
    }
  }

  /** Changes that prune expired deletions. */
  #removals(added: string, now: number): Change[] {
    const found = [...this.#config.entries()]
      .filter(([key]) => key !== added && key.startsWith(`${DELETIONS}/`))
      .map(([key, { value, revision }]) => ({ key, seen: revision, at: readAt(value) ?? 0 }))
      .sort((one, other) => other.at - one.at);
    return found.flatMap(({ key, seen, at }, index) =>
      index >= MAX_KEPT - 1 || at < now - KEPT_MS ? { key, seen } : [],
    );
  }
}

function keyOf({ kind, vhost, app, id }: TaskName): string {
  return `${DELETIONS}/${joinKey(kind, vhost, app, id)}`;
}

function readAt(value: Json | undefined): number | undefined {
  return Value.Check(Deletion, value) ? value.at : undefined;
}
