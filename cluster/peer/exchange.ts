import { request as httpRequest, type Agent, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { PeerCertificate, SecureContext } from 'node:tls';
import { OutcomeUnknownError, UnreachableError } from '../errors.ts';
import type { PeerResponse } from '../types.ts';
import { bodyHash, type Secrets } from './mac.ts';
import { MAX_HEAD, refusalOf, seal, unseal, type Call } from './wire.ts';

const MAX_BODY = 64 * 1024 * 1024;
/** Bytes that HTTP itself may add to a head. */
const HTTP_HEAD = 1024;

/** TLS of connections to one node. */
export interface SecureOptions {
  readonly secureContext: SecureContext;
  /** Id of the node that the other end has to be, where both ends show certificates. */
  readonly node?: string;
  readonly checkServerIdentity?: (host: string, certificate: PeerCertificate) => Error | undefined;
}

export interface Way {
  /** `http://host:port` or `https://host:port`. */
  readonly address: string;
  /** Agent of kept connections; undefined makes a new connection. */
  readonly agent: Agent | undefined;
  readonly secure?: SecureOptions;
  readonly secrets: Secrets;
  /** Aborted when the time for an answer is over. */
  readonly signal: AbortSignal;
}

interface Response {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** How far a failed call got. */
interface Failure {
  readonly error: Error;
  /** There was a connection: the call may have been executed. */
  readonly reached: boolean;
  /** The connection was an older one, which the other end may have closed before the call. */
  readonly reused: boolean;
}

/**
 * Makes a call that is executed once at most.
 * @throws UnreachableError when no connection could be made or the node refused it (ClockError for its time),
 *   OutcomeUnknownError when no answer came
 */
export async function exchange(way: Way, call: Call, body: Buffer): Promise<PeerResponse> {
  const unreachable = (text: string, cause?: Error): Error =>
    new UnreachableError(`node ${call.to.id}: ${text}`, { cause });
  const unknown = (text: string, cause?: Error): Error =>
    new OutcomeUnknownError(`node ${call.to.id}: ${text}`, { cause });
  const sealed = seal(way.secrets, 'call', call);
  // a node may close the connection before it can reject a head that is too long
  if (lengthOf(sealed) > MAX_HEAD - HTTP_HEAD) throw unreachable('the path and the headers of the call are too long');
  const headers = { ...sealed, 'content-length': body.length };
  const { signal } = way;
  let again = false;
  let sent = await send(way, headers, body);
  if ('error' in sent && sent.reused && !signal.aborted) {
    // the same call with the same nonce: a node does not execute it twice
    again = true;
    sent = await send({ ...way, agent: undefined }, headers, body);
  }
  if ('error' in sent) {
    const { error, reached } = sent;
    const text = signal.aborted ? 'no answer in time' : error.message;
    throw reached || again ? unknown(text, error) : unreachable(text, error);
  }
  const answer = unseal(way.secrets, 'answer', sent.headers);
  if (answer === undefined || answer.nonce !== call.nonce || answer.bodyHash !== bodyHash(sent.body)) {
    const text = `answered ${sent.status} without proof of the cluster secret: another secret, another version, or not a Kiln node`;
    // a node that rejects an unauthenticated call, or a head that is too long, has not executed the call; otherwise it may have
    throw !again && (sent.status === 403 || sent.status === 431) ? unreachable(text) : unknown(text);
  }
  if (answer.refused === undefined) return { status: answer.status, headers: answer.headers, body: sent.body };
  const refusal = refusalOf('call', call.to.id, answer.refused, answer.time);
  const mayBeDone = again || answer.refused === 'repeated';
  throw mayBeDone ? new OutcomeUnknownError(refusal.message, { lives: refusal.lives }) : refusal;
}

function send(
  { address, agent, secure: options, signal }: Way,
  headers: Record<string, string | number>,
  body: Buffer,
): Promise<Response | Failure> {
  const isSecure = address.startsWith('https:');
  return new Promise((resolve) => {
    let reached = false;
    const fail = (error: Error): void => resolve({ error, reached, reused: reached && request.reusedSocket });
    const request = (isSecure ? httpsRequest : httpRequest)(`${address}/`, {
      method: 'POST',
      headers,
      signal,
      maxHeaderSize: MAX_HEAD,
      agent: agent ?? false,
      ...options,
    });
    request.on('socket', (socket: Socket) => {
      if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', () => (reached = true));
      else reached = true;
    });
    request.on('error', fail);
    request.on('response', (message) => {
      const { statusCode: status, headers: received } = message;
      read(message).then((content) => resolve({ status, headers: received, body: content }), fail);
    });
    request.end(body);
  });
}

function lengthOf(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
}

async function read(message: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message) {
    length += chunk.length;
    if (length > MAX_BODY) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
