import { setTimeout as delay } from 'node:timers/promises';
import { ConflictError, type Change, type Cluster } from '#cluster';
import { BackOff } from '../lib/back-off.ts';
import { definitionKey, readDefinition, type TaskName } from './definition.ts';
import { isNewer, type TaskProgress } from './progress.ts';

/** Entries per write: other writers wait during it. */
const BATCH = 200;
/** Attempts at an entry that others keep changing. */
const ATTEMPTS = 5;
const LONGEST_PAUSE_MS = 1000;

interface Waiting {
  readonly key: string;
  readonly progress: TaskProgress;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  attempt: number;
}

/**
 * Saves progress in the definitions of tasks. Progress that arrives during a write is collected for the next one:
 * thousands of tasks end at once when a node stops.
 */
export class ProgressWriter {
  readonly #config: Cluster['config'];
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(config: Cluster['config']) {
    this.#config = config;
  }

  /**
   * Resolves when the definition has this progress or newer, or no longer exists.
   * @throws UnavailableError, StorageError; ConflictError when others keep changing it
   */
  save(name: TaskName, progress: TaskProgress): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key: definitionKey(name), progress, resolve, reject, attempt: 0 });
      if (!this.#isWriting) void this.#write();
    });
  }

  async #write(): Promise<void> {
    const backOff = new BackOff(LONGEST_PAUSE_MS);
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH);
      const isDone = await this.#writeBatch(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
        return true;
      });
      if (isDone) backOff.reset();
      else await delay(backOff.next());
    }
    this.#isWriting = false;
  }

  /** @returns false after a conflict, with the entries to be tried again in `#waiting` */
  async #writeBatch(batch: readonly Waiting[]): Promise<boolean> {
    // only the newest of each task is written
    const byKey = new Map<string, Change>();
    for (const { key, progress } of batch) {
      const change = this.#change(key, progress, byKey.get(key));
      if (change !== undefined) byKey.set(key, change);
    }
    try {
      if (byKey.size > 0) await this.#config.write([...byKey.values()]);
      for (const { resolve } of batch) resolve();
      return true;
    } catch (error) {
      if (!(error instanceof ConflictError)) for (const { reject } of batch) reject(error);
      else await this.#retry(batch, byKey, error);
      return !(error instanceof ConflictError);
    }
  }

  /** Queues a batch again after a conflict: entries without a change come first and do not count an attempt. */
  async #retry(
    batch: readonly Waiting[],
    written: ReadonlyMap<string, Change>,
    conflict: ConflictError,
  ): Promise<void> {
    await this.#config.sync();
    const entries = this.#config.entries();
    const isChanged = ({ key }: Waiting): boolean =>
      written.has(key) && entries.get(key)?.revision !== written.get(key)?.seen;
    const { changed = [], unchanged = [] } = Object.groupBy(batch, (one) => (isChanged(one) ? 'changed' : 'unchanged'));
    // a store that does not say what has changed must not be asked for ever
    const counted = changed.length === 0 ? unchanged : changed;
    for (const waiting of counted) waiting.attempt += 1;
    const isLast = ({ attempt }: Waiting): boolean => attempt >= ATTEMPTS;
    for (const { reject } of counted.filter(isLast)) reject(conflict);
    this.#waiting.unshift(...unchanged.filter((one) => !isLast(one)));
    this.#waiting.push(...changed.filter((one) => !isLast(one)));
  }

  /** @returns undefined when there is nothing to write */
  #change(key: string, progress: TaskProgress, pending: Change | undefined): Change | undefined {
    const entry = this.#config.entries().get(key);
    const definition = readDefinition(pending?.value ?? entry?.value);
    if (entry === undefined || definition === undefined || (definition.uid ?? '') !== progress.uid) return undefined;
    if (!isNewer(progress, definition.progress)) return undefined;
    // with what a later version may have put there
    return { key, value: { ...(entry.value as object), progress: { ...progress } }, seen: entry.revision };
  }
}
