import type { Logger } from '../../log.ts';
import { ControlServerError, type ControlAnswer } from '../control-server.ts';
import { ControlLine } from './control-line.ts';

/** The control servers of a virtual host. */
export interface ControlServers {
  /** Asked in this order, until one answers. */
  readonly urls: readonly string[];
  readonly secretKey: string | undefined;
  readonly timeout: number;
}

/** Lines that are kept; virtual hosts come and go. */
const MAX_IDLE_LINES = 64;

/** The ways to all control servers. */
export class ControlLines {
  readonly #lines = new Map<string, ControlLine>();
  readonly #stop = new AbortController();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param isWanted asked when the call's turn comes
   * @throws ControlServerError where none answers; the last one's
   */
  async ask(
    kind: 'opening' | 'closing',
    { urls, secretKey, timeout }: ControlServers,
    question: object,
    isWanted?: () => boolean,
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
