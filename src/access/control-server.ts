import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { signature } from './signature.ts';

export interface ControlServer {
  /** Of http or https; a user and a password in it are sent as Basic credentials. */
  readonly url: string;
  /** Signs the request; without it there is no signature. */
  readonly secretKey?: string | undefined;
  /** Milliseconds from the call to the last byte of the answer. */
  readonly timeout: number;
}

export interface ControlAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** There is no answer that can be used. */
export class ControlServerError extends Error {
  override readonly name = 'ControlServerError';
  /** True where the server did answer, and its answer is at fault. */
  readonly answered: boolean;

  constructor(message: string, answered: boolean) {
    super(message);
    this.answered = answered;
  }
}

const MAX_ANSWER_BYTES = 1024 * 1024;

/**
 * Posts JSON to an operator's server, on a connection of its own, signed in X-OME-Signature over the very bytes
 * (facts/03-access-control.md). Redirects are answers like any other.
 * @param signal gives the call up
 * @throws ControlServerError
 */
export async function askControlServer(
  server: ControlServer,
  question: object,
  signal: AbortSignal,
): Promise<ControlAnswer> {
  const { url, secretKey, timeout } = server;
  const body = Buffer.from(JSON.stringify(question));
  const deadline = AbortSignal.timeout(timeout);
  const request = (url.startsWith('https:') ? requestHttps : requestHttp)(url, {
    method: 'POST',
    agent: false,
    signal: AbortSignal.any([deadline, signal]),
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Accept: 'application/json',
      ...(secretKey && { 'X-OME-Signature': signature(secretKey, body) }),
    },
  });
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).on('error', reject).end(body);
      // An answer that switches protocols ends the request without an error.
      request.once('close', () => reject(new Error('the connection was closed without an answer')));
    });
    return { status: response.statusCode ?? 0, body: await bodyOf(response) };
  } catch (error) {
    if (error instanceof ControlServerError) throw error;
    const message = deadline.aborted ? `no answer within ${timeout} ms` : (error as Error).message;
    throw new ControlServerError(message, false);
  } finally {
    request.destroy();
  }
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
