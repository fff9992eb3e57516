import { UnavailableError, type Cluster, type Finish, type Json } from '#cluster';
import Value from 'typebox/value';
import { RecentSet } from '../../lib/recent-set.ts';
import { OPENING, type Opening, type OpeningId, type Openings } from '../opening.ts';

/** A session that was opened, as far as it is known. */
export type Opened = Opening | OpeningId;

export interface OpenSessionsOptions {
  readonly cluster: Pick<Cluster, 'self' | 'records'>;
  /** Tells the control server that a session has ended at `at`: milliseconds since the epoch. */
  readonly tell: (opening: Opened, at: number) => void;
  /** The store has failed: when it is back, `restore` is to be called. */
  readonly onAway: () => void;
  readonly onFault: (error: Error) => void;
}

/** How long a session that moves may be with no node, and no survivor of its node. */
export const MOVING_MS = 60_000;
/** Records that one step takes. */
const BATCH = 200;
/** Ids of closed sessions that are known, for a store that comes back as it was before. */
const MAX_CLOSED = 100_000;

/**
 * The sessions of this node that control servers have allowed and that have not ended, each with a record in the store
 * of the cluster. Whoever finishes the record tells the control server, so it hears of each end once, whatever other
 * nodes believe. Without the store the node tells of its own.
 */
export class OpenSessions implements Openings {
  readonly #options: OpenSessionsOptions;
  readonly #open = new Map<string, Opened>();
  /** Those whose record the store does not have under this node yet. */
  readonly #unwritten = new Set<string>();
  /** Those whose end is not told yet, and when it was. */
  readonly #ended = new Map<string, { readonly opening: Opened; readonly at: number }>();
  /** Those that another node is to go on with, since when. */
  readonly #released = new Map<string, { readonly opening: Opened; readonly at: number }>();
  readonly #closed = new RecentSet<string>(MAX_CLOSED);
  #writing: Promise<void> | undefined;
  #sweep: NodeJS.Timeout | undefined;

  constructor(options: OpenSessionsOptions) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size;
  }

  /** Whether the end of a session was told, as far as this node knows. */
  isClosed(id: string): boolean {
    return this.#closed.has(id);
  }

  /** This node has the session from now on, be it new or another node's so far. */
  adopt(opening: Opened): void {
    const { id } = opening;
    if (this.#closed.has(id) || this.#ended.has(id)) return;
    this.#open.set(id, opening);
    this.#released.delete(id);
    this.#unwritten.add(id);
    this.#write();
  }

  resume(id: string, vhost: string): void {
    this.adopt(this.#open.get(id) ?? this.#released.get(id)?.opening ?? { id, vhost });
  }

  release({ id }: OpeningId): void {
    const opening = this.#open.get(id);
    if (opening === undefined) return;
    this.#open.delete(id);
    this.#released.set(id, { opening, at: performance.now() });
    this.#sweep ??= setTimeout(() => this.#closeReleased(), MOVING_MS).unref();
  }

  close(opening: OpeningId): void {
    const { id } = opening;
    if (this.#closed.has(id) || this.#ended.has(id)) return;
    const opened = this.#open.get(id) ?? this.#released.get(id)?.opening ?? opening;
    this.#ended.set(id, { opening: opened, at: Date.now() });
    this.#open.delete(id);
    this.#released.delete(id);
    this.#write();
  }

  /** Another node has told of the end. */
  forget(id: string): void {
    this.#open.delete(id);
    this.#closed.add(id);
  }

  /** Puts the records that the store does not have. @param present ids of this node's records there */
  restore(present: ReadonlySet<string>): void {
    for (const id of this.#open.keys()) if (!present.has(id)) this.#unwritten.add(id);
    if (this.#unwritten.size > 0) this.#write();
  }

  /** Resolves when the end of each session that has ended was told or left to another node. */
  async settled(): Promise<void> {
    clearTimeout(this.#sweep);
    await this.#writing;
  }

  #closeReleased(): void {
    this.#sweep = undefined;
    for (const { opening, at } of this.#released.values()) {
      const left = at + MOVING_MS - performance.now();
      if (left <= 0) this.close(opening);
      else this.#sweep ??= setTimeout(() => this.#closeReleased(), left).unref();
    }
  }

  #write(): void {
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    // what comes in the same turn goes along
    await Promise.resolve();
    while (this.#unwritten.size > 0 || this.#ended.size > 0) {
      const put = [...this.#unwritten].slice(0, BATCH);
      // a record is put before it is finished
      const finish = put.length === BATCH ? [] : [...this.#ended.keys()].slice(0, BATCH);
      try {
        await this.#put(put);
        await this.#finish(finish.filter((id) => !this.#unwritten.has(id)));
      } catch (error) {
        this.#withoutStore(error as Error);
      }
    }
    // in the same turn as the last look: who comes after it begins anew
    this.#writing = undefined;
  }

  async #put(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const records = ids.map((id) => {
      const opening = this.#open.get(id) ?? (this.#ended.get(id) ?? this.#released.get(id))?.opening;
      this.#unwritten.delete(id);
      return { id, ...(opening !== undefined && 'call' in opening && { value: opening as Json }) };
    });
    const taken = await this.#options.cluster.records.put(records);
    for (const [at, id] of ids.entries()) if (taken[at] !== true) this.forget(id);
  }

  async #finish(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const { cluster } = this.#options;
    const { incarnation } = cluster.self;
    const finishes = await cluster.records.finish(ids.map((id) => ({ id, incarnation })));
    for (const [at, id] of ids.entries()) {
      const ended = this.#ended.get(id);
      this.#ended.delete(id);
      const finish = finishes[at];
      if (ended === undefined || finish === undefined) continue;
      this.#closed.add(id);
      this.#options.tell(known(ended.opening, finish), ended.at);
    }
  }

  /** What has ended is told now; what is open gets its record when the store is back. */
  #withoutStore(error: Error): void {
    const { onFault, onAway, tell } = this.#options;
    if (!(error instanceof UnavailableError)) onFault(error);
    this.#unwritten.clear();
    for (const [id, { opening, at }] of this.#ended) {
      this.#closed.add(id);
      tell(opening, at);
    }
    this.#ended.clear();
    onAway();
  }
}

/** What the record says where this node does not know more than the id. */
function known(opening: Opened, finish: NonNullable<Finish>): Opened {
  return !('call' in opening) && Value.Check(OPENING, finish.value) ? finish.value : opening;
}
