import { UnavailableError, type Cluster, type Finish, type Json } from '#cluster';
import Value from 'typebox/value';
import { RecentSet } from '../../lib/recent-set.ts';
import {
  WEBHOOK_SESSION,
  type SessionHolder,
  type WebhookSession,
  type WebhookSessionId,
  type WebhookSessions,
} from '../webhook-session.ts';
import type { Rechecks } from './rechecks.ts';

/** Opened session, as far as it is known. */
export type Opened = WebhookSession | WebhookSessionId;

export interface OpenSessionsOptions {
  readonly cluster: Pick<Cluster, 'self' | 'records'>;
  /** Notifies the control server that a session has ended at `at`: milliseconds since the epoch. */
  readonly notify: (session: Opened, at: number) => void;
  /** The store has failed: when it is back, `restore` is to be called. */
  readonly onAway: () => void;
  readonly onFault: (error: Error) => void;
  /** Asks again about open sessions. */
  readonly rechecks: Pick<Rechecks, 'watch' | 'drop'>;
}

/** How long a session that moves may be with no node, and no survivor of its node. */
export const MOVING_MS = 60_000;
/** Records that one step takes. */
const BATCH = 200;
/** Ids of closed sessions that are known, for a store that comes back as it was before. */
const MAX_CLOSED = 100_000;

/**
 * The sessions of this node that control servers have allowed and that have not ended, each with a record in the store
 * of the cluster. The node that finishes the record notifies the control server: once, whatever other nodes believe. Without the
 * store a node notifies it of the ends of its own sessions.
 */
export class OpenSessions implements WebhookSessions {
  readonly #options: OpenSessionsOptions;
  readonly #open = new Map<string, Opened>();
  /** Sessions whose record the store does not have under this node yet. */
  readonly #unwritten = new Set<string>();
  /** Sessions whose end is not sent yet, and when it was. */
  readonly #ended = new Map<string, { readonly session: Opened; readonly at: number }>();
  /** Sessions that another node is to continue, since when. */
  readonly #released = new Map<string, { readonly session: Opened; readonly at: number }>();
  readonly #closed = new RecentSet<string>(MAX_CLOSED);
  #writing: Promise<void> | undefined;
  #sweep: NodeJS.Timeout | undefined;

  constructor(options: OpenSessionsOptions) {
    this.#options = options;
  }

  /** Number of open sessions. */
  get size(): number {
    return this.#open.size;
  }

  /** Whether the end of a session was sent, as far as this node knows. */
  isClosed(id: string): boolean {
    return this.#closed.has(id);
  }

  /** Makes this node the owner of a session, be it new or another node's so far. */
  adopt(session: Opened): void {
    const { id } = session;
    if (this.#closed.has(id) || this.#ended.has(id)) return;
    this.#open.set(id, session);
    this.#released.delete(id);
    this.#unwritten.add(id);
    this.#write();
  }

  hold(id: string, holder: SessionHolder): void {
    const session = this.#open.get(id);
    if (session !== undefined) this.#options.rechecks.watch(session, holder);
  }

  resume(id: string, vhost: string): void {
    this.adopt(this.#open.get(id) ?? this.#released.get(id)?.session ?? { id, vhost });
  }

  release({ id }: WebhookSessionId): void {
    const session = this.#open.get(id);
    if (session === undefined) return;
    this.#drop(id);
    this.#released.set(id, { session, at: performance.now() });
    this.#sweep ??= setTimeout(() => this.#closeReleased(), MOVING_MS).unref();
  }

  close(session: WebhookSessionId): void {
    const { id } = session;
    if (this.#closed.has(id) || this.#ended.has(id)) return;
    const opened = this.#open.get(id) ?? this.#released.get(id)?.session ?? session;
    this.#ended.set(id, { session: opened, at: Date.now() });
    this.#drop(id);
    this.#released.delete(id);
    this.#write();
  }

  /** Forgets a session whose end another node has sent. */
  forget(id: string): void {
    this.#drop(id);
    this.#closed.add(id);
  }

  /** Puts the records that the store does not have. @param present ids of this node's records there */
  restore(present: ReadonlySet<string>): void {
    for (const id of this.#open.keys()) if (!present.has(id)) this.#unwritten.add(id);
    if (this.#unwritten.size > 0) this.#write();
  }

  /** Resolves when the end of each session that has ended was sent or left to another node. */
  async settled(): Promise<void> {
    clearTimeout(this.#sweep);
    await this.#writing;
  }

  #drop(id: string): void {
    this.#open.delete(id);
    this.#options.rechecks.drop(id);
  }

  #closeReleased(): void {
    this.#sweep = undefined;
    for (const { session, at } of this.#released.values()) {
      const left = at + MOVING_MS - performance.now();
      if (left <= 0) this.close(session);
      else this.#sweep ??= setTimeout(() => this.#closeReleased(), left).unref();
    }
  }

  #write(): void {
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    // changes of the same turn go along
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
    // in the same turn as the last look: a later call begins anew
    this.#writing = undefined;
  }

  async #put(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const records = ids.map((id) => {
      const session = this.#open.get(id) ?? (this.#ended.get(id) ?? this.#released.get(id))?.session;
      this.#unwritten.delete(id);
      return { id, ...(session !== undefined && 'call' in session && { value: session as Json }) };
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
      this.#options.notify(known(ended.session, finish), ended.at);
    }
  }

  /** Sends the ends now; open sessions get their records when the store is back. */
  #withoutStore(error: Error): void {
    const { onFault, onAway, notify } = this.#options;
    if (!(error instanceof UnavailableError)) onFault(error);
    this.#unwritten.clear();
    for (const [id, { session, at }] of this.#ended) {
      this.#closed.add(id);
      notify(session, at);
    }
    this.#ended.clear();
    onAway();
  }
}

/** Session of the record, where this node knows no more than the id. */
function known(session: Opened, finish: NonNullable<Finish>): Opened {
  return !('call' in session) && Value.Check(WEBHOOK_SESSION, finish.value) ? finish.value : session;
}
