import { setTimeout as delay } from 'node:timers/promises';
import { askControlServer, type ControlServer } from '../control-server/control-server.ts';
import { ControlServerError } from '../control-server/post.ts';
import { BackOff } from '../lib/back-off.ts';
import type { Logger } from '../log/log.ts';

/** Limit of waiting notifications; beyond it the oldest are given up. */
const MAX_WAITING = 1000;
const LONGEST_PAUSE_MS = 30_000;
/** Status of a proxy whose server is away: the alert is sent again. */
const NOT_DELIVERED = new Set([502, 503, 504]);
/** Time that `close` waits for unsent notifications. */
const LONGEST_END_MS = 2000;
/** Interval at which given-up alerts are logged together. */
const LOG_EVERY_MS = 60_000;

/** Posts notifications to the operator's server, one after the other, each until the server has accepted or rejected it. */
export class Notifier {
  readonly #server: ControlServer;
  readonly #log: Logger;
  readonly #stop = new AbortController();
  readonly #waiting: object[] = [];
  readonly #pauses = new BackOff(LONGEST_PAUSE_MS);
  #sending: Promise<void> | undefined;
  #ending = false;
  #outcome: 'taken' | 'refused' | 'waiting' = 'taken';
  #undelivered = 0;
  /** Part of `#undelivered` that is logged. */
  #logged = 0;
  #logging: NodeJS.Timeout | undefined;

  constructor(server: ControlServer, log: Logger) {
    this.#server = server;
    this.#log = log;
  }

  get undelivered(): number {
    return this.#undelivered;
  }

  send(notification: object): void {
    if (this.#stop.signal.aborted) return;
    this.#waiting.push(notification);
    if (this.#waiting.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#lose();
    }
    this.#start();
  }

  #start(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
      // some may have been added after the loop ended
      if (this.#waiting.length > 0 && !this.#ending && !this.#stop.signal.aborted) this.#start();
    });
  }

  /** Waits until all are sent, for a limited time. Idempotent. */
  async close(): Promise<void> {
    this.#ending = true;
    const late = setTimeout(() => this.#stop.abort(), LONGEST_END_MS);
    await this.#sending;
    clearTimeout(late);
    this.#stop.abort();
    this.#undelivered += this.#waiting.splice(0).length;
    this.#logLost();
  }

  async #sendAll(): Promise<void> {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      const failure = await this.#post(first);
      if (this.#stop.signal.aborted) return;
      const isOver = failure === undefined || failure.refused;
      if (isOver && this.#waiting[0] === first) this.#waiting.shift();
      if (failure?.refused === true) this.#lose();
      this.#logOutcome(failure);
      if (isOver) this.#pauses.reset();
      else if (this.#ending || !(await this.#pause())) return;
    }
  }

  #lose(): void {
    this.#undelivered++;
    this.#logging ??= setTimeout(() => this.#logLost(), LOG_EVERY_MS).unref();
  }

  #logLost(): void {
    clearTimeout(this.#logging);
    this.#logging = undefined;
    const count = this.#undelivered - this.#logged;
    if (count > 0) this.#log.warn({ event: 'alert.lost', count }, 'alerts were given up, and will not be sent');
    this.#logged = this.#undelivered;
  }

  async #pause(): Promise<boolean> {
    try {
      await delay(Math.max(this.#pauses.next(), 250), undefined, { signal: this.#stop.signal, ref: false });
    } catch {
      return false;
    }
    return true;
  }

  /** @returns undefined when the server accepted it; otherwise the reason, and whether the server rejects it for good */
  async #post(notification: object): Promise<{ readonly reason: string; readonly refused: boolean } | undefined> {
    try {
      const { status } = await askControlServer(this.#server, notification, this.#stop.signal);
      if (status >= 200 && status < 300) return undefined;
      return { reason: `it answered with status ${status}`, refused: !NOT_DELIVERED.has(status) };
    } catch (error) {
      if (!(error instanceof ControlServerError)) throw error;
      return { reason: error.message, refused: error.answered };
    }
  }

  /** Logs changes between success, rejection and failure. */
  #logOutcome(failure: { readonly reason: string; readonly refused: boolean } | undefined): void {
    const outcome = failure === undefined ? 'taken' : failure.refused ? 'refused' : 'waiting';
    if (outcome === this.#outcome) return;
    this.#outcome = outcome;
    if (failure === undefined) {
      this.#log.info({ event: 'alert.delivered' }, 'alerts can be sent again');
      return;
    }
    const { reason, refused } = failure;
    this.#log.warn(
      { event: 'alert.undelivered', reason, waiting: this.#waiting.length },
      refused
        ? 'the server of Alert/Url rejects alerts: rejected ones are not sent again'
        : `alerts cannot be sent to the server of Alert/Url: the newest ${MAX_WAITING} are kept, and sent later`,
    );
  }
}
