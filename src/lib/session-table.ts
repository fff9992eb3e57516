export interface TableSession {
  close(reason: string, level?: 'warn'): void;
}

export interface SessionLimits {
  readonly sessions: number;
  /** Limit of waiting sessions. Beyond it, the oldest session of the address with most of them is closed. */
  readonly waiting: number;
  /** Completes "too many connections wait to". */
  readonly purpose: string;
}

/** The open sessions of a server. A session waits until it serves its purpose, such as publishing. */
export class SessionTable<S extends TableSession> {
  readonly #limits: SessionLimits;
  readonly #sessions = new Map<S, string>();
  /** In the order of arrival. */
  readonly #waiting = new Set<S>();

  constructor(limits: SessionLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Reason to reject another session; undefined while there is room. */
  get objection(): string | undefined {
    const { sessions } = this.#limits;
    return this.#sessions.size < sessions ? undefined : `${sessions} are open`;
  }

  /** Adds a session, which waits at first. @param address of the client; sessions without one count as of the same client */
  add(session: S, address = ''): void {
    this.#sessions.set(session, address);
    this.#waiting.add(session);
    if (this.#waiting.size > this.#limits.waiting) this.#dropOldestWaiting();
  }

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
