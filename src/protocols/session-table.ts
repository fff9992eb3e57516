interface TableSession {
  close(reason: string, level?: 'warn'): void;
}

export interface SessionLimits {
  readonly sessions: number;
  /** Those that did not get to their purpose yet; beyond it the oldest of them gives way. */
  readonly waiting: number;
  /** Completes "too many connections wait to". */
  readonly purpose: string;
}

/** The open sessions of a TCP server. */
export class SessionTable<S extends TableSession> {
  readonly #limits: SessionLimits;
  readonly #sessions = new Set<S>();
  /** In the order they came. */
  readonly #waiting = new Set<S>();

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Why there is no room for another session; undefined when there is. */
  get objection(): string | undefined {
    const { sessions } = this.#limits;
    return this.#sessions.size < sessions ? undefined : `${sessions} are open`;
  }

  /** A session waits from its beginning on. */
  add(session: S): void {
    this.#sessions.add(session);
    this.#waiting.add(session);
    if (this.#waiting.size > this.#limits.waiting) this.#dropOldestWaiting();
  }

  /** A session got to its purpose, or is back from it. */
  setWaiting(session: S, waiting: boolean): void {
    if (waiting) this.#waiting.add(session);
    else this.#waiting.delete(session);
  }

  delete(session: S): void {
    this.#sessions.delete(session);
    this.#waiting.delete(session);
  }

  closeAll(reason: string): void {
    for (const session of [...this.#sessions]) session.close(reason);
  }

  #dropOldestWaiting(): void {
    for (const session of this.#waiting) {
      this.#waiting.delete(session);
      session.close(`too many connections wait to ${this.#limits.purpose}`, 'warn');
      return;
    }
  }
}
