import { request as requestHttp, type Agent, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Watchdog } from '../lib/watchdog.ts';
import { signature } from './signature.ts';

export interface ControlServer {
  /** URL of http or https; a user and a password in it are sent as Basic credentials. */
  readonly url: string;
  /** Key of the signature; without it requests are not signed. */
  readonly secretKey?: string | undefined;
  /** Milliseconds for the connection, and then again for the complete answer. */
  readonly timeout: number;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: Buffer;
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

const MAX_ANSWER_BYTES = 1024 * 1024;

/**
 * Posts JSON to an operator's server, with the body signed in X-OME-Signature (docs/compatibility.md#control-servers).
 * Redirects are answers like any other.
 * @param signal aborts the call
 * @param agent keeps connections for the next calls; without one the call has a connection of its own
 * @throws ControlServerError
 */
export async function askControlServer(
  server: ControlServer,
  question: object,
  signal: AbortSignal,
  agent?: Agent,
): Promise<ControlAnswer> {
  const { url, secretKey, timeout } = server;
  const body = Buffer.from(JSON.stringify(question));
  const request = (url.startsWith('https:') ? requestHttps : requestHttp)(url, {
    method: 'POST',
    agent: agent ?? false,
    signal,
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Accept: 'application/json',
      ...(secretKey && { 'X-OME-Signature': signature(secretKey, body) }),
    },
  });
  const deadline = new Deadline(request, timeout);
  let hasAnswered = false;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).on('error', reject).end(body);
      // an answer that switches protocols ends the request without an error
      request.once('close', () => reject(new Error('the connection was closed without an answer')));
    });
    hasAnswered = true;
    return { status: response.statusCode ?? 0, body: await bodyOf(response) };
  } catch (error) {
    request.destroy();
    if (error instanceof ControlServerError) throw error;
    // a server may close a kept connection just when it is used again
    if (request.reusedSocket && !hasAnswered && isReset(error) && deadline.missed === undefined && !signal.aborted)
      return askControlServer(server, question, signal);
    throw new ControlServerError(deadline.missed ?? (error as Error).message, false);
  } finally {
    deadline.close();
    if (agent === undefined) request.destroy();
  }
}

/** Ends a request that has no connection in time, or no answer within the same time after that. */
class Deadline {
  #watchdog: Watchdog;
  #missed: string | undefined;
  #closed = false;

  constructor(request: ClientRequest, ms: number) {
    const waitFor = (what: string): Watchdog =>
      new Watchdog(ms, () => {
        this.#missed = `no ${what} within ${ms} ms`;
        request.destroy(new Error(this.#missed));
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

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES)
      throw new ControlServerError(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`, true);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
