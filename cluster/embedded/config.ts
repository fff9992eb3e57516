import type { ConfigCopy, ConfigState } from '../config-copy.ts';
import { ConflictError } from '../errors.ts';
import { isWithin } from '../keys.ts';
import { ConfigListeners } from '../listeners.ts';
import type { Change, ConfigEntry, ConfigListener, ConfigStore, Expectation } from '../types.ts';

/** The configuration of a node that runs alone. */
export class EmbeddedConfig implements ConfigStore {
  readonly stale = false;
  readonly #copy: ConfigCopy;
  readonly #listeners: ConfigListeners;
  #state: ConfigState;
  /** Writes run one after the other, each on the result of the one before. */
  #last: Promise<void> = Promise.resolve();

  constructor(copy: ConfigCopy, onFault: (error: Error) => void) {
    this.#copy = copy;
    this.#state = copy.initial;
    this.#listeners = new ConfigListeners(onFault);
  }

  entries(): ReadonlyMap<string, ConfigEntry> {
    return this.#state.entries;
  }

  get position(): string {
    return String(this.#state.revision);
  }

  sync(): Promise<void> | undefined {
    return this.#listeners.settled();
  }

  write(changes: readonly Change[], expected: readonly Expectation[] = []): Promise<void> {
    const turn = this.#last.then(() => this.#apply(changes, expected));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  listen(listener: ConfigListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Resolves when no write is under way. */
  settled(): Promise<void> {
    return this.#last;
  }

  async #apply(changes: readonly Change[], expected: readonly Expectation[]): Promise<void> {
    for (const { key, seen } of [...expected, ...changes]) {
      const present = this.#state.entries.get(key)?.revision ?? 0;
      if (present !== seen) throw new ConflictError(`${key} is at revision ${present}, not ${seen}`);
    }
    const entries = new Map(this.#state.entries);
    const revision = this.#state.revision + 1;
    const changed = new Set<string>();
    for (const { key, value } of changes) {
      if (value !== undefined) {
        entries.set(key, { value, revision });
        changed.add(key);
        continue;
      }
      changed.add(key);
      for (const other of entries.keys()) {
        if (isWithin(other, key) && entries.delete(other)) changed.add(other);
      }
    }
    const state = { entries, revision, epoch: this.#state.epoch };
    await this.#copy.save(state);
    this.#state = state;
    this.#listeners.notify([...changed]);
  }
}
