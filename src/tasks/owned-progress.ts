import type { Cluster, Json, Lease } from '#cluster';
import { SyncedLease } from '../directory/synced-lease.ts';
import type { Logger } from '../log/log.ts';
import type { TaskDefinition, TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import { isStreamKind, type TaskKind } from './kind.ts';
import { isNewer, newest, readProgress, type TaskProgress } from './progress.ts';
import { reasonOf } from './store-failure.ts';

/** Shortest time between two writes of progress to the claim: a run may keep with every packet. */
const KEEP_MS = 1000;
/** How often a node that runs alone saves progress: there is no other node that could inherit it. */
const ALONE_MS = 5000;

export interface OwnedProgressOptions {
  readonly kind: TaskKind;
  readonly name: TaskName;
  readonly definition: TaskDefinition;
  readonly definitions: TaskDefinitions;
  readonly cluster: Pick<Cluster, 'nodes'>;
  readonly lease: Lease;
  /** Progress that an earlier run on this node could not save. */
  readonly unsaved: TaskProgress | undefined;
  readonly log: Logger;
}

/** Progress of a task that this node owns: kept with the claim all the time, and saved in the definition where it has to last. */
export class OwnedProgress {
  readonly #options: OwnedProgressOptions;
  readonly #lease: SyncedLease;
  readonly #uid: string;
  #latest: TaskProgress | undefined;
  #step = 0;
  #checkpoint: NodeJS.Timeout | undefined;

  /** Begins with the newest of what the claim, the definition and this node have. */
  constructor(options: OwnedProgressOptions) {
    const { lease, definition, unsaved, log } = options;
    this.#options = options;
    this.#uid = definition.uid ?? '';
    const own = unsaved?.uid === this.#uid ? unsaved : undefined;
    this.#latest = newest(readProgress(lease.inherited, this.#uid), definition.progress, own);
    this.#lease = new SyncedLease(lease, { kept: () => (this.#latest ?? null) as Json, keepEveryMs: KEEP_MS }, log);
  }

  get value(): Json | undefined {
    return this.#latest?.value;
  }

  /** Whether the task is complete: nothing is left to do but to delete its definition. */
  get isOver(): boolean {
    return this.#latest?.over === true;
  }

  /**
   * Progress that belongs in the definition and is not there yet: that of a task that follows a stream, and that of any
   * task that is complete.
   */
  get unsaved(): TaskProgress | undefined {
    const { kind, definitions, name } = this.#options;
    const definition = definitions.get(name);
    if (this.#latest === undefined || definition === undefined) return undefined;
    if (!isStreamKind(kind) && !this.isOver) return undefined;
    const isKnown = (definition.uid ?? '') !== this.#uid || !isNewer(this.#latest, definition.progress);
    return isKnown ? undefined : this.#latest;
  }

  keep(value: Json, isOver = this.isOver): void {
    const { lease, kind, cluster } = this.#options;
    this.#latest = { uid: this.#uid, fence: lease.fence, step: ++this.#step, value, ...(isOver && { over: true }) };
    this.#lease.keep();
    if (this.#checkpoint !== undefined || !isStreamKind(kind) || cluster.nodes().length > 1) return;
    // all tasks at the same time: each write is one of the whole file
    const inMs = ALONE_MS - (performance.now() % ALONE_MS);
    this.#checkpoint = setTimeout(() => {
      this.#checkpoint = undefined;
      void this.#saveOrLog();
    }, inMs).unref();
  }

  /** Marks the task as complete. */
  complete(): void {
    this.keep(this.value ?? null, true);
  }

  /** Continues with progress of another owner. */
  adopt(progress: TaskProgress): void {
    this.#latest = progress;
  }

  /** Writes the fence of this owner into the progress: by it, once saved, other nodes see that nothing is left to be saved. */
  sign(): void {
    const { lease, kind } = this.#options;
    if (isStreamKind(kind) && this.#latest?.fence !== lease.fence) this.keep(this.value ?? null);
  }

  /** @throws UnavailableError, StorageError, ConflictError */
  async save(): Promise<void> {
    const { definitions, name } = this.#options;
    const { unsaved } = this;
    if (unsaved !== undefined) await definitions.save(name, unsaved);
  }

  /** Saves the last progress if the store allows it, and releases the lease. */
  async release(): Promise<void> {
    this.sign();
    clearTimeout(this.#checkpoint);
    await this.#saveOrLog();
    await this.#lease.release();
  }

  async #saveOrLog(): Promise<void> {
    const { log, name } = this.#options;
    await this.save().catch((error: unknown) =>
      log.debug({ ...name, ...reasonOf(error) }, 'the progress of the task could not be saved'),
    );
  }
}
