import { ConflictError, type Change, type Cluster } from '#cluster';
import { definitionKey, readDefinition, type TaskName } from './definition.ts';
import { isNewer, type Progress } from './progress.ts';

/** Entries per write: other writers wait during it. */
const BATCH = 200;
/** Attempts at an entry that others keep changing. */
const ATTEMPTS = 5;

interface Waiting {
  readonly key: string;
  readonly progress: Progress;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  attempt: number;
}

/**
 * Saves progress in the definitions of tasks. What comes during a write is collected for the next one:
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
  save(name: TaskName, progress: Progress): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key: definitionKey(name), progress, resolve, reject, attempt: 0 });
      if (!this.#isWriting) void this.#write();
    });
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      this.#waiting = this.#waiting.slice(BATCH);
      await this.#writeBatch(batch).catch((error: unknown) => {
        for (const { reject } of batch) reject(error);
      });
    }
    this.#isWriting = false;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    // the last one of each task counts
    const byKey = new Map<string, Change>();
    for (const { key, progress } of batch) {
      const change = this.#change(key, progress, byKey.get(key));
      if (change !== undefined) byKey.set(key, change);
    }
    try {
      if (byKey.size > 0) await this.#config.write([...byKey.values()]);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (!(error instanceof ConflictError)) for (const { reject } of batch) reject(error);
      else await this.#again(batch, error);
    }
  }

  /** After a conflict: each entry is written by itself, so that one that keeps changing holds up no other. */
  async #again(batch: readonly Waiting[], conflict: ConflictError): Promise<void> {
    await this.#config.sync();
    for (const waiting of batch) {
      if (++waiting.attempt >= ATTEMPTS) waiting.reject(conflict);
      else if (batch.length === 1) this.#waiting.unshift(waiting);
      else await this.#writeBatch([waiting]);
    }
  }

  /** undefined when there is nothing to write. */
  #change(key: string, progress: Progress, pending: Change | undefined): Change | undefined {
    const entry = this.#config.entries().get(key);
    const definition = readDefinition(pending?.value ?? entry?.value);
    if (entry === undefined || definition === undefined || (definition.uid ?? '') !== progress.uid) return undefined;
    if (!isNewer(progress, definition.progress)) return undefined;
    // with what a later version may have put there
    return { key, value: { ...(entry.value as object), progress: { ...progress } }, seen: entry.revision };
  }
}
