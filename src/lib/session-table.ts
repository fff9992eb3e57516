/** What of a session its table knows. */
export interface TableSession {
  close(reason: string, level?: 'warn'): void;
}

export interface SessionLimits {
  readonly sessions: number;
  /** Those that did not get to their purpose yet; beyond it the oldest of the address that most of them are from gives way. */
  readonly waiting: number;
  /** Completes "too many connections wait to". */
  readonly purpose: string;
}

/** The open sessions of a server. */
export class SessionTable<S extends TableSession> {
  readonly #limits: SessionLimits;
  /** With their addresses. */
  readonly #sessions = new Map<S, string>();
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

  /**
   * A session waits from its beginning on.
   * @param address of who came; where none are told, all count as of the same
   */
  add(session: S, address = ''): void {
    this.#sessions.set(session, address);
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
    for (const session of [...this.#sessions.keys()]) session.close(reason);
  }

  #dropOldestWaiting(): void {
    const counts = new Map<string | undefined, number>();
    for (const session of this.#waiting) {
      const address = this.#sessions.get(session);
      counts.set(address, (counts.get(address) ?? 0) + 1);
    }
    const most = Math.max(...counts.values());
    for (const session of this.#waiting) {
      if (counts.get(this.#sessions.get(session)) !== most) continue;
      this.#waiting.delete(session);
      session.close(`too many connections wait to ${this.#limits.purpose}`, 'warn');
      return;
    }
  }
}
