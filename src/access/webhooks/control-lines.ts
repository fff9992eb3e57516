import { Histogram } from '../../lib/histogram.ts';
import type { Logger } from '../../log/log.ts';
import { ControlServerError, type ControlAnswer } from '../../control-server/post.ts';
import { ControlLine, type CallKind } from './control-line.ts';

/** The control servers of a virtual host. */
export interface ControlServers {
  /** Asked in this order, until one answers. */
  readonly urls: readonly string[];
  readonly secretKey: string | undefined;
  readonly timeout: number;
}

/** Lines that are kept; virtual hosts come and go. */
const MAX_IDLE_LINES = 64;

/** Upper bounds, in seconds. */
const ANSWER_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Outcomes of the calls of one kind. */
export interface CallCounts {
  /** Seconds until there was an answer, or it was clear that there would be none, waiting for a turn included. */
  readonly seconds: Histogram;
  /** Calls without an answer that can be used. */
  failed: number;
}

/** Lines to all control servers. */
export class ControlLines {
  readonly #lines = new Map<string, ControlLine>();
  readonly #stop = new AbortController();
  readonly #log: Logger;
  readonly counts = {
    opening: { seconds: new Histogram(ANSWER_BOUNDS), failed: 0 } as CallCounts,
    closing: { seconds: new Histogram(ANSWER_BOUNDS), failed: 0 } as CallCounts,
    recheck: { seconds: new Histogram(ANSWER_BOUNDS), failed: 0 } as CallCounts,
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param isWanted asked when the call's turn comes
   * @throws ControlServerError where none answers; the last one's
   */
  async ask(
    kind: CallKind,
    { urls, secretKey, timeout }: ControlServers,
    question: object,
    isWanted?: () => boolean,
  ): Promise<ControlAnswer> {
    const counts = this.counts[kind];
    const since = performance.now();
    try {
      const answer = await this.#askOne(kind, { urls, secretKey, timeout }, question, isWanted);
      if (answer.status !== 200) counts.failed++;
      return answer;
    } catch (error) {
      // nothing was asked for a client that has gone, and the end of this node says nothing of the server
      if (isWanted?.() !== false && !this.#stop.signal.aborted) counts.failed++;
      throw error;
    } finally {
      counts.seconds.add((performance.now() - since) / 1000);
    }
  }

  async #askOne(
    kind: CallKind,
    { urls, secretKey, timeout }: ControlServers,
    question: object,
    isWanted: (() => boolean) | undefined,
  ): Promise<ControlAnswer> {
    let failure = new ControlServerError('there is no control server', false);
    for (const url of urls) {
      try {
        return await this.#line(url).ask(kind, { url, secretKey, timeout }, question, isWanted);
      } catch (error) {
        if (!(error instanceof ControlServerError) || error.answered) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  /** Ends every call. Idempotent. */
  close(): void {
    this.#stop.abort();
    for (const line of this.#lines.values()) line.close();
  }

  #line(url: string): ControlLine {
    const line = this.#lines.get(url) ?? new ControlLine(url, this.#stop.signal, this.#log);
    // what was asked last comes last
    this.#lines.delete(url);
    this.#lines.set(url, line);
    for (const [known, other] of this.#lines) {
      if (this.#lines.size <= MAX_IDLE_LINES) break;
      if (!other.isIdle || other === line) continue;
      other.close();
      this.#lines.delete(known);
    }
    return line;
  }
}
