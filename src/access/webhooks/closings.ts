import type { Logger } from '../../log/log.ts';
import { ControlServerError } from '../../control-server/post.ts';
import type { WebhookCall } from '../webhook-session.ts';
import type { ControlLines, ControlServers } from './control-lines.ts';
import { payload } from './payload.ts';

/** Pauses between the attempts to send one closing, in milliseconds. */
const PAUSES_MS = [1000, 4000, 12_000, 24_000];
/** More that wait for a dead control server are given up, the oldest first. */
const MAX_PENDING = 20_000;
/** Time that the end of this node waits for closings that are not sent yet, in milliseconds. */
const LONGEST_END_MS = 5000;
/** Answers of proxies whose server is away. */
const NOT_DELIVERED = new Set([502, 503, 504]);
const LOG_EVERY_MS = 10_000;

/** Notifies control servers of ended sessions, a few times where they do not answer. Their answers are ignored. */
export class Closings {
  readonly #lines: ControlLines;
  readonly #log: Logger;
  /** Functions that give up a closing. */
  readonly #pending = new Map<object, () => void>();
  #lost = 0;
  #logging: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(lines: ControlLines, log: Logger) {
    this.#lines = lines;
    this.#log = log;
  }

  /** Number of closings that are not sent yet. */
  get pending(): number {
    return this.#pending.size;
  }

  /** @param at when the session ended: milliseconds since the epoch */
  notify(servers: ControlServers, call: WebhookCall, at: number): void {
    for (const giveUp of this.#pending.values()) {
      if (this.#pending.size < MAX_PENDING) break;
      giveUp();
    }
    let timer: NodeJS.Timeout | undefined;
    const closing = {};
    const settle = (): void => {
      clearTimeout(timer);
      this.#pending.delete(closing);
      if (this.#pending.size === 0) this.#onEmpty?.();
    };
    const giveUp = (): void => {
      settle();
      this.lose('the control server does not answer');
    };
    this.#pending.set(closing, giveUp);
    const isWanted = (): boolean => this.#pending.has(closing);
    const body = payload(call, 'closing', at);
    const attempt = async (pauses: readonly number[]): Promise<void> => {
      if (await this.#isSent(servers, body, isWanted)) return settle();
      if (!isWanted()) return;
      const [pause, ...rest] = pauses;
      if (pause === undefined) return giveUp();
      timer = setTimeout(() => void attempt(rest), pause);
    };
    void attempt(PAUSES_MS);
  }

  /** Counts a closing that will never be sent. Logged now and then, with their number. */
  lose(reason: string): void {
    this.#lost++;
    this.#logging ??= setTimeout(() => this.#logLost(reason), LOG_EVERY_MS).unref();
  }

  /** Resolves when all are sent, or it takes too long. */
  async close(): Promise<void> {
    if (this.#pending.size > 0) {
      const sent = new Promise<void>((resolve) => (this.#onEmpty = resolve));
      const late = setTimeout(() => {
        for (const giveUp of this.#pending.values()) giveUp();
      }, LONGEST_END_MS);
      await sent;
      clearTimeout(late);
    }
    if (this.#lost > 0) this.#logLost('this node has ended');
  }

  async #isSent(servers: ControlServers, body: object, isWanted: () => boolean): Promise<boolean> {
    try {
      const { status } = await this.#lines.ask('closing', servers, body, isWanted);
      return !NOT_DELIVERED.has(status);
    } catch (error) {
      if (!(error instanceof ControlServerError)) throw error;
      return error.answered;
    }
  }

  #logLost(reason: string): void {
    clearTimeout(this.#logging);
    this.#logging = undefined;
    this.#log.warn({ count: this.#lost, reason }, 'control servers were not notified of sessions that have ended');
    this.#lost = 0;
  }
}
