import { request as requestHttp, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { Watchdog } from '../lib/watchdog.ts';

export interface Post {
  /** URL of http or https; a user and a password in it are sent as Basic credentials. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Milliseconds for the connection, and then again for the complete answer. */
  readonly timeout: number;
  readonly maxAnswerBytes: number;
  /**
   * SHA-256 of the only certificate that is accepted, 64 lower-case hexadecimal digits. It takes the place of the name and the
   * authorities that are checked otherwise.
   */
  readonly fingerprint?: string | undefined;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: Buffer;
}

export interface PostAnswer extends ControlAnswer {
  readonly headers: IncomingMessage['headers'];
}

/** Error for a missing or invalid answer. */
export class ControlServerError extends Error {
  override readonly name = 'ControlServerError';
  /** Whether the server did answer, so that the answer is at fault. */
  readonly answered: boolean;

  constructor(message: string, answered: boolean) {
    super(message);
    this.answered = answered;
  }
}

/**
 * Posts to an operator's server. Redirects are answers like any other.
 * @param signal aborts the call
 * @param agent keeps connections for the next calls; without one the call has a connection of its own
 * @throws ControlServerError
 */
export async function post(call: Post, signal: AbortSignal, agent?: Agent): Promise<PostAnswer> {
  const { timeout, maxAnswerBytes } = call;
  const connecting = new AbortController();
  const request = requestOf(call, signal, agent, connecting.signal);
  const deadline = new Deadline(request, timeout, connecting);
  let hasAnswered = false;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).on('error', reject).end(call.body);
      // an answer that switches protocols ends the request without an error
      request.once('close', () => reject(new Error('the connection was closed without an answer')));
    });
    hasAnswered = true;
    const { statusCode: status = 0, headers: answered } = response;
    return { status, headers: answered, body: await bodyOf(response, maxAnswerBytes) };
  } catch (error) {
    request.destroy();
    if (error instanceof ControlServerError) throw error;
    // a server may close a kept connection just when it is used again
    if (request.reusedSocket && !hasAnswered && isReset(error) && deadline.missed === undefined && !signal.aborted)
      return post(call, signal);
    throw new ControlServerError(deadline.missed ?? (error as Error).message, false);
  } finally {
    deadline.close();
    if (agent === undefined) request.destroy();
  }
}

/** @param connecting ends a connection that the request does not have yet @throws ControlServerError for what cannot be sent */
function requestOf(
  { url, headers, body, fingerprint }: Post,
  signal: AbortSignal,
  agent: Agent | undefined,
  connecting: AbortSignal,
): ClientRequest {
  const connection =
    fingerprint === undefined
      ? { agent: agent ?? false }
      : {
          createConnection: pinned(fingerprint, AbortSignal.any([signal, connecting])),
          // without an agent Node.js knows none of its own
          defaultPort: HTTPS_PORT,
        };
  try {
    return (url.startsWith('https:') ? requestHttps : requestHttp)(url, {
      method: 'POST',
      signal,
      headers: { ...headers, 'Content-Length': body.length },
      ...connection,
    });
  } catch (error) {
    throw new ControlServerError((error as Error).message, false);
  }
}

const HTTPS_PORT = 443;

type OnConnected = (error: Error | null, stream: Duplex) => void;

interface Target {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
}

/**
 * Connects by TLS to a server with one certificate alone: nothing is sent to another.
 * @param signal ends the attempt: the request cannot, which has the connection only when it is there
 */
function pinned(fingerprint: string, signal: AbortSignal) {
  return ({ host, port }: Target, onConnected: OnConnected): undefined => {
    const name = host ?? '';
    const socket = connect({
      ...{ host: name, port: Number(port), rejectUnauthorized: false },
      ...(isIP(name) === 0 && { servername: name }),
    });
    const stop = (): void => void socket.destroy(signal.reason as Error);
    const settle = (): void => {
      socket.off('error', fail);
      signal.removeEventListener('abort', stop);
    };
    const fail = (error: Error): void => {
      settle();
      onConnected(error, socket);
    };
    socket.once('error', fail);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    socket.once('secureConnect', () => {
      const { fingerprint256 = '' } = socket.getPeerX509Certificate() ?? {};
      if (fingerprint256.replaceAll(':', '').toLowerCase() === fingerprint) {
        settle();
        onConnected(null, socket);
      } else {
        socket.destroy();
        fail(new Error('the certificate of the server is another than the pinned one'));
      }
    });
    return undefined;
  };
}

/** Ends a request that has no connection in time, or no answer within the same time after that. */
class Deadline {
  #watchdog: Watchdog;
  #missed: string | undefined;
  #closed = false;

  /** @param connecting aborted when there is no connection in time */
  constructor(request: ClientRequest, ms: number, connecting: AbortController) {
    const waitFor = (what: string): Watchdog =>
      new Watchdog(ms, () => {
        this.#missed = `no ${what} within ${ms} ms`;
        const error = new Error(this.#missed);
        request.destroy(error);
        connecting.abort(error);
      });
    this.#watchdog = waitFor('connection');
    const onConnected = (): void => {
      this.#watchdog.close();
      if (!this.#closed) this.#watchdog = waitFor('answer');
    };
    request.once('socket', (socket) => {
      if (!socket.connecting) onConnected();
      else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', onConnected);
    });
  }

  get missed(): string | undefined {
    return this.#missed;
  }

  close(): void {
    this.#closed = true;
    this.#watchdog.close();
  }
}

function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '');
}

async function bodyOf(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new ControlServerError(`the answer is larger than ${maxBytes} bytes`, true);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
