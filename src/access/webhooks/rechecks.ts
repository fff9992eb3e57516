import { ControlServerError } from '../../control-server/post.ts';
import type { FaultLog } from '../../log/log.ts';
import { Limiter } from '../../lib/limiter.ts';
import type { SessionHolder, WebhookCall } from '../webhook-session.ts';
import type { Answer } from './answer.ts';
import type { Opened } from './open-sessions.ts';

/** Calls of a virtual host under way at once: the others wait, each session once, and leave room for clients that connect. */
const MAX_CALLS = 16;
/** Sessions that are due within this time share a timer of Node.js. */
const GRAIN_MS = 50;

export interface RechecksOptions {
  /** Milliseconds between two calls about a session of a virtual host; 0: there are none. */
  readonly intervalOf: (vhost: string) => number;
  /** Asks a control server of the virtual host. @param isWanted asked when the call's turn comes @throws ControlServerError */
  readonly ask: (vhost: string, call: WebhookCall, isWanted: () => boolean) => Promise<Answer>;
  readonly faults: Pick<FaultLog, 'count'>;
  readonly onFault: (error: Error) => void;
}

interface Watched {
  readonly session: Opened & { readonly call: WebhookCall };
  readonly holder: SessionHolder;
  lifetime: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Asks control servers again about sessions that run. A refusal ends a session. Without an answer it goes on: a server that is
 * away for a minute would end every session of the cluster otherwise, and who was allowed has not become another.
 */
export class Rechecks {
  readonly #options: RechecksOptions;
  readonly #watched = new Map<string, Watched>();
  /** By virtual host: a slow server delays the calls of no other. */
  readonly #calls = new Map<string, Limiter>();
  /** Sessions that were ended. */
  refused = 0;

  constructor(options: RechecksOptions) {
    this.#options = options;
  }

  /** Begins with a session. One of which no call is known cannot be asked about. */
  watch(session: Opened, holder: SessionHolder): void {
    if (!('call' in session) || session.call === undefined || this.#options.intervalOf(session.vhost) === 0) return;
    this.drop(session.id);
    const { call, lifetime } = session;
    const watched = { session: { ...session, call }, holder, lifetime, timer: undefined };
    this.#watched.set(session.id, watched);
    // viewers come together, and are not asked about together
    this.#plan(watched, 0.5 + Math.random() / 2);
  }

  /** The session has ended, or is another node's. */
  drop(id: string): void {
    clearTimeout(this.#watched.get(id)?.timer);
    this.#watched.delete(id);
  }

  /** Idempotent. */
  close(): void {
    for (const id of this.#watched.keys()) this.drop(id);
  }

  #plan(watched: Watched, part = 1): void {
    const interval = this.#options.intervalOf(watched.session.vhost);
    if (interval === 0) return this.drop(watched.session.id);
    const pause = Math.ceil((interval * part) / GRAIN_MS) * GRAIN_MS;
    watched.timer = setTimeout(() => void this.#askInTurn(watched), pause).unref();
  }

  async #askInTurn(watched: Watched): Promise<void> {
    const { vhost } = watched.session;
    const calls = this.#calls.get(vhost) ?? new Limiter(MAX_CALLS);
    this.#calls.set(vhost, calls);
    try {
      await calls.run(() => this.#ask(watched));
    } catch (error) {
      this.#options.onFault(error as Error);
    }
    if (calls.size === 0 && this.#calls.get(vhost) === calls) this.#calls.delete(vhost);
  }

  async #ask(watched: Watched): Promise<void> {
    const { id, vhost, call } = watched.session;
    const isWanted = (): boolean => this.#watched.get(id) === watched;
    if (!isWanted()) return;
    try {
      const answer = await this.#options.ask(vhost, call, isWanted);
      if (!isWanted()) return;
      this.#judge(watched, answer);
    } catch (error) {
      if (!(error instanceof ControlServerError)) throw error;
      if (isWanted())
        this.#options.faults.count(`a session goes on without an answer to its recheck: ${error.message}`);
    }
    if (isWanted()) this.#plan(watched);
  }

  #judge(watched: Watched, { allowed, lifetime, reason }: Answer): void {
    const { session, holder } = watched;
    if (!allowed) {
      this.refused++;
      this.drop(session.id);
      holder.revoke(`the control server does not allow it any more: ${reason || 'no reason given'}`);
    } else if (lifetime !== watched.lifetime) {
      watched.lifetime = lifetime;
      holder.relimit(lifetime === undefined ? undefined : session.call.time + lifetime);
    }
  }
}
