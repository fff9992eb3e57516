import { setTimeout as delay } from 'node:timers/promises';
import type { ConfigCopy, ConfigState } from '../config-copy.ts';
import { ConflictError, UnavailableError } from '../errors.ts';
import { ConfigListeners } from '../listeners.ts';
import type { Change, ConfigEntry, ConfigListener, ConfigStore, Expectation, Json } from '../types.ts';
import type { TableChanges } from './changes.ts';
import type { Connection } from './connection.ts';
import { CopySaver } from './copy-saver.ts';
import { SCRIPTS } from './scripts.ts';
import type { Timing } from './timing.ts';

const ASK_AGAIN_MS = 200;

export interface RedisConfigOptions {
  readonly connection: Connection;
  readonly copy: ConfigCopy;
  readonly timing: Timing;
  /** Fetches what has changed and calls apply(). @throws UnavailableError */
  readonly pull: () => Promise<void>;
  readonly isDegraded: () => boolean;
  readonly onFault: (error: Error) => void;
}

/** The configuration of the cluster: in Redis, with a durable copy on this node that follows it. */
export class RedisConfig implements ConfigStore {
  readonly #options: RedisConfigOptions;
  readonly #listeners: ConfigListeners;
  readonly #saver: CopySaver;
  #state: ConfigState;
  /** The last fetch failed, although the loss of the connection was not noticed yet. */
  #missed = false;

  constructor(options: RedisConfigOptions) {
    this.#options = options;
    this.#state = options.copy.initial;
    this.#listeners = new ConfigListeners(options.onFault);
    this.#saver = new CopySaver(options.copy, options.onFault);
  }

  get stale(): boolean {
    return this.#missed || this.#options.isDegraded();
  }

  /** Which epoch and revision this node has. */
  get version(): { readonly epoch: number; readonly revision: number } {
    return this.#state;
  }

  get position(): string {
    return `${this.#state.epoch}.${this.#state.revision}`;
  }

  entries(): ReadonlyMap<string, ConfigEntry> {
    return this.#state.entries;
  }

  async sync(seen?: string): Promise<void> {
    if (seen !== this.position) await this.#pull();
    await this.#listeners.settled();
  }

  async write(changes: readonly Change[], expected: readonly Expectation[] = []): Promise<void> {
    const { connection, timing } = this.#options;
    const compared = [...expected, ...changes];
    const args = [
      ...expected.flatMap(({ key, seen }) => [key, seen, 'expected', '']),
      ...changes.flatMap(({ key, value, seen }) =>
        value === undefined ? [key, seen, 'removed', ''] : [key, seen, 'put', JSON.stringify(value)],
      ),
    ];
    const end = performance.now() + 2 * timing.grace;
    for (;;) {
      const known = [this.#state.epoch, this.#state.revision];
      const [outcome, key, revision] = (await connection.run(SCRIPTS.write, [...known, ...args])) as string[];
      if (outcome === 'conflict') {
        const seen = compared.find((entry) => entry.key === key)?.seen;
        throw new ConflictError(`${key} is at revision ${revision}, not ${seen}`);
      }
      if (outcome === 'written') break;
      if (performance.now() > end) throw new UnavailableError('Redis lost its content, which is being restored');
      await delay(ASK_AGAIN_MS);
    }
    // it is written: if it cannot be read back, this node is stale until the next beat
    await this.#pull();
  }

  listen(listener: ConfigListener): () => void {
    return this.#listeners.add(listener);
  }

  /** Applies what Redis has. An older state than this node's own is ignored: Redis has lost it and will be restored. */
  apply(epoch: number, { revision, full, entries }: TableChanges): void {
    this.#missed = false;
    const present = this.#state;
    if (epoch === present.epoch && (revision < present.revision || (revision === present.revision && !full))) return;
    const next = full ? new Map<string, ConfigEntry>() : new Map(present.entries);
    for (const [key, text] of entries) {
      const before = present.entries.get(key);
      const entry = text === '' ? undefined : (parseEntry(text) ?? before);
      if (text !== '' && entry === before) this.#options.onFault(new Error(`Redis: the entry ${key} is malformed`));
      if (entry === undefined) next.delete(key);
      else next.set(key, entry);
    }
    const changed = full ? differences(present.entries, next) : entries.map(([key]) => key);
    this.#state = { entries: next, revision, epoch };
    if (changed.length > 0 || epoch !== present.epoch) this.#saver.save(this.#state);
    this.#listeners.notify(changed);
  }

  /** Resolves when this disk has what was applied; nothing is applied after. */
  settled(): Promise<void> {
    return this.#saver.settled();
  }

  /** Sends this node's copy to a Redis that has lost its own. */
  async offer(epoch: number): Promise<void> {
    const { entries, epoch: from, revision } = this.#state;
    const list = [...entries].flatMap(([key, entry]) => [key, `${entry.revision} ${JSON.stringify(entry.value)}`]);
    await this.#options.connection.run(SCRIPTS.offer, [epoch, from, revision, ...list]);
  }

  async #pull(): Promise<void> {
    await this.#options.pull().catch(() => (this.#missed = true));
  }
}

/** undefined when it is malformed: then the entry stays as it was here. */
function parseEntry(text: string): ConfigEntry | undefined {
  const [, revision, json = ''] = /^(\d+) (.*)$/s.exec(text) ?? [];
  try {
    return revision === undefined ? undefined : { revision: Number(revision), value: JSON.parse(json) as Json };
  } catch {
    return undefined;
  }
}

function differences(before: ReadonlyMap<string, ConfigEntry>, after: ReadonlyMap<string, ConfigEntry>): string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => JSON.stringify(before.get(key)) !== JSON.stringify(after.get(key)));
}
