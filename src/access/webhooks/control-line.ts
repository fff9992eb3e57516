import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Limiter } from '../../lib/limiter.ts';
import type { Logger } from '../../log/log.ts';
import { askControlServer, type ControlServer } from '../../control-server/control-server.ts';
import { ControlServerError, type ControlAnswer } from '../../control-server/post.ts';
import { Breaker } from './breaker.ts';

/** Opening calls under way at once, and those that wait for that. */
const MAX_OPENINGS = 256;
const MAX_WAITING = 1024;
/** Closing calls under way at once: openings do not wait for them. Any number of them may wait. */
const MAX_CLOSINGS = 32;
const IDLE_SOCKETS = 32;

/** Subject of a call: a client that connects, one that has left, or one that was allowed before. */
export type CallKind = 'opening' | 'closing' | 'recheck';

/** Sent with a recheck, whose body is that of an opening: a server that counts openings leaves it out. */
const RECHECK_HEADERS = { 'X-Kiln-Recheck': 'true' };

/** Line to one control server, for all virtual hosts: its connections, a limit of concurrent calls, and a breaker. */
export class ControlLine {
  readonly #agent: HttpAgent;
  readonly #breaker: Breaker;
  readonly #openings = new Limiter(MAX_OPENINGS, MAX_WAITING);
  readonly #closings = new Limiter(MAX_CLOSINGS);
  readonly #signal: AbortSignal;

  /** @param signal ends what is under way */
  constructor(url: string, signal: AbortSignal, log: Logger) {
    const Agent = url.startsWith('https:') ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_SOCKETS, scheduling: 'lifo' });
    this.#signal = signal;
    const server = placeOf(url);
    this.#breaker = new Breaker({
      onOpen: (reason) =>
        log.warn(
          { event: 'webhook.unreachable', server, reason },
          'the control server does not answer: clients that it has to allow are refused',
        ),
      onClose: () => log.info({ event: 'webhook.reachable', server }, 'the control server answers again'),
    });
  }

  get isIdle(): boolean {
    return this.#openings.size + this.#closings.size === 0;
  }

  /** @param isWanted asked when the call's turn comes. @throws ControlServerError */
  ask(
    kind: CallKind,
    server: ControlServer,
    question: object,
    isWanted: () => boolean = () => true,
  ): Promise<ControlAnswer> {
    const calls = kind === 'closing' ? this.#closings : this.#openings;
    const headers = kind === 'recheck' ? RECHECK_HEADERS : {};
    return calls.run(
      () => {
        if (!isWanted()) throw new ControlServerError('the client has gone', true);
        return this.#breaker.run(() => askControlServer(server, question, this.#signal, this.#agent, headers));
      },
      () => new ControlServerError('too many calls wait for it', false),
    );
  }

  /** Ends the connections that no call uses. */
  close(): void {
    this.#agent.destroy();
  }
}

/** Without credentials and query, which may be secret. */
function placeOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
