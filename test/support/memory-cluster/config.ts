import {
  UnavailableError,
  type Change,
  type ConfigEntry,
  type ConfigListener,
  type ConfigStore,
  type Expectation,
} from '#cluster';
import { ConfigListeners } from '../../../cluster/listeners.ts';
import { EMPTY_CONFIG, type ConfigState } from './config-state.ts';

/** How a configuration reaches the store. Both throw UnavailableError where it cannot be reached. */
export interface ConfigKeeper {
  pull(): Promise<ConfigState>;
  write(changes: readonly Change[], expected: readonly Expectation[]): Promise<ConfigState>;
}

/** A node's copy of the configuration of a cluster in memory. */
export class MemoryConfig implements ConfigStore {
  readonly #keeper: ConfigKeeper;
  readonly #listeners: ConfigListeners;
  #state: ConfigState = EMPTY_CONFIG;
  #stale = false;

  constructor(keeper: ConfigKeeper, onFault: (error: Error) => void) {
    this.#keeper = keeper;
    this.#listeners = new ConfigListeners(onFault);
  }

  get stale(): boolean {
    return this.#stale;
  }

  get state(): ConfigState {
    return this.#state;
  }

  entries(): ReadonlyMap<string, ConfigEntry> {
    return this.#state.entries;
  }

  get position(): string {
    return String(this.#state.revision);
  }

  async sync(seen?: string): Promise<void> {
    try {
      if (this.#stale || seen !== this.position) this.apply(await this.#keeper.pull());
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.#stale = true;
    }
    await this.#listeners.settled();
  }

  async write(changes: readonly Change[], expected: readonly Expectation[] = []): Promise<void> {
    this.apply(await this.#keeper.write(changes, expected));
  }

  listen(listener: ConfigListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Takes what the store has, unless that is older than what is known. */
  apply(state: ConfigState): void {
    this.#stale = false;
    const { revision } = this.#state;
    if (state.revision <= revision) return;
    this.#state = state;
    const changed = state.log.filter((entry) => entry.revision > revision).flatMap(({ keys }) => keys);
    this.#listeners.notify([...new Set(changed)]);
  }

  unreachable(): void {
    this.#stale = true;
  }
}
