import { UnavailableError, type Cluster, type NodeRecord } from '#cluster';
import Value from 'typebox/value';
import { WEBHOOK_SESSION, type WebhookSession } from '../webhook-session.ts';
import { MOVING_MS, type OpenSessions } from './open-sessions.ts';
import { canMove } from './payload.ts';

export interface LeftSessionsOptions {
  readonly cluster: Pick<Cluster, 'self' | 'nodes' | 'lives' | 'records' | 'events'>;
  readonly own: Pick<OpenSessions, 'size' | 'isClosed' | 'restore'>;
  /** Notifies the control server of the end of a session, known at `at`: milliseconds since the epoch. */
  readonly notify: (session: WebhookSession, at: number) => void;
  /** Whether sessions are opened at all, here or elsewhere. */
  readonly isUsed: () => boolean;
  readonly onFault: (error: Error) => void;
}

/** How long a node has to be away until others close its sessions: the store may have come back before the node has. */
const AWAY_MS = 5000;
const AGAIN_MS = 2000;
/** Sessions that a survivor closes in one step: the others get their share. */
const SHARE = 32;

/**
 * Closes the sessions of nodes that have died, and brings back records that the store has lost. A session that may go on
 * at another node is given a minute for it. A node that is away from the store and answers calls has its sessions yet.
 */
export class LeftSessions {
  readonly #options: LeftSessionsOptions;
  /** Lives of nodes that are away, and since when, on the monotonic clock. */
  readonly #away = new Map<string, number>();
  #alive: ReadonlySet<string>;
  #looking: Promise<void> | undefined;
  #looksAgain = false;
  #timer: NodeJS.Timeout | undefined;
  #due = Infinity;
  #closed = false;

  constructor(options: LeftSessionsOptions) {
    this.#options = options;
    this.#alive = this.#nodes();
    options.cluster.events.on('nodes', this.#onNodes).on('state', this.#look).on('emptied', this.#look);
    // what was open when the whole cluster ended
    this.lookIn(AWAY_MS);
  }

  /** Looks at all records, at the latest in so many milliseconds. */
  lookIn(ms = AGAIN_MS): void {
    const due = performance.now() + ms;
    if (this.#closed || due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(this.#look, ms).unref();
  }

  /** Idempotent. Resolves when what is under way is over. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#options.cluster.events.off('nodes', this.#onNodes).off('state', this.#look).off('emptied', this.#look);
    await this.#looking;
  }

  #nodes(): ReadonlySet<string> {
    const { cluster } = this.#options;
    const alive = cluster.nodes().flatMap(({ state, incarnation }) => (state === 'lost' ? [] : incarnation));
    return new Set([cluster.self.incarnation, ...alive]);
  }

  readonly #onNodes = (): void => {
    const before = this.#alive;
    this.#alive = this.#nodes();
    if ([...before].some((incarnation) => !this.#alive.has(incarnation))) this.#look();
  };

  readonly #look = (): void => {
    clearTimeout(this.#timer);
    this.#due = Infinity;
    const { isUsed, own, onFault } = this.#options;
    this.#looksAgain = this.#looking !== undefined;
    if (this.#looksAgain || this.#closed || !(own.size > 0 || isUsed())) return;
    this.#looking = this.#lookAtAll()
      .catch((error: Error) => {
        if (!(error instanceof UnavailableError)) onFault(error);
        this.lookIn();
      })
      .finally(() => {
        this.#looking = undefined;
        if (this.#looksAgain) this.#look();
      });
  };

  async #lookAtAll(): Promise<void> {
    const { cluster, own } = this.#options;
    const present = new Set<string>();
    const left = new Set<string>();
    const answering = new Map<string, boolean>();
    for await (const page of cluster.records.pages()) {
      const due: NodeRecord[] = [];
      for (const record of page) {
        const { id, incarnation } = record;
        if (incarnation === cluster.self.incarnation) present.add(id);
        else if (!this.#alive.has(incarnation)) left.add(incarnation);
        // a store may come back as it was before
        if (own.isClosed(id) || (this.#isLeft(record) && !(await this.#answers(incarnation, answering))))
          due.push(record);
      }
      for (let at = 0; at < due.length && !this.#closed; at += SHARE) await this.#finish(due.slice(at, at + SHARE));
      if (this.#closed) return;
    }
    for (const incarnation of this.#away.keys()) if (!left.has(incarnation)) this.#away.delete(incarnation);
    own.restore(present);
  }

  /** Whether no node owns the session of a record any more. One of a node that is not away for long is looked at again. */
  #isLeft({ incarnation, value }: NodeRecord): boolean {
    if (this.#alive.has(incarnation)) return false;
    const now = performance.now();
    const since = this.#away.get(incarnation) ?? now;
    this.#away.set(incarnation, since);
    const isMoving = Value.Check(WEBHOOK_SESSION, value) && value.call !== undefined && canMove(value.call);
    const wait = since + (isMoving ? MOVING_MS : AWAY_MS) - now;
    if (wait > 0) this.lookIn(wait);
    return wait <= 0;
  }

  /** Whether a node lives that is away: then it is given as much time again. @param asked in the same look */
  async #answers(incarnation: string, asked: Map<string, boolean>): Promise<boolean> {
    const { cluster } = this.#options;
    const known = asked.get(incarnation);
    if (known !== undefined) return known;
    const node = cluster.nodes().find((row) => row.incarnation === incarnation);
    const lives = node !== undefined && (await cluster.lives(node)) === true;
    asked.set(incarnation, lives);
    if (lives) {
      this.#away.delete(incarnation);
      this.lookIn(AWAY_MS);
    }
    return lives;
  }

  async #finish(records: readonly NodeRecord[]): Promise<void> {
    const { cluster, own, notify, onFault } = this.#options;
    const finishes = await cluster.records.finish(records);
    for (const [at, finish] of finishes.entries()) {
      const { id } = records[at] as NodeRecord;
      if (finish === undefined || own.isClosed(id)) continue;
      if (Value.Check(WEBHOOK_SESSION, finish.value)) notify(finish.value, Date.now());
      else onFault(new Error(`the record ${id} of a session is malformed`));
    }
  }
}
