import { request as httpRequest, type Agent, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { OutcomeUnknownError, UnreachableError } from '../errors.ts';
import type { PeerResponse } from '../types.ts';
import { bodyHash } from './mac.ts';
import { seal, unseal, type Call } from './wire.ts';

const MAX_BODY = 64 * 1024 * 1024;

export interface Way {
  /** `http://host:port` or `https://host:port`. */
  readonly address: string;
  readonly agent: Agent;
  readonly secret: string;
  readonly timeoutMs: number;
}

/**
 * Makes a call once, never again: only who made it knows whether that would do harm.
 * @throws UnreachableError when no connection came about or the node refused it, OutcomeUnknownError when no answer came
 */
export async function exchange(way: Way, call: Call, body: Buffer): Promise<PeerResponse> {
  const { address, agent, secret, timeoutMs } = way;
  let reached = false;
  const fail = (error: Error): Error => {
    const message = `node ${call.to.id}: ${error.message}`;
    return reached ? new OutcomeUnknownError(message, { cause: error }) : new UnreachableError(message, { cause: error });
  };
  const response = await new Promise<{ message: IncomingMessage; body: Buffer }>((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const request = (address.startsWith('https:') ? httpsRequest : httpRequest)(`${address}/`, {
      method: 'POST', agent, signal, headers: { ...seal(secret, 'call', call), 'content-length': body.length },
    });
    request.on('socket', (socket: Socket) => {
      if (!socket.connecting) reached = true;
      else socket.once(address.startsWith('https:') ? 'secureConnect' : 'connect', () => (reached = true));
    });
    request.on('error', (error) => reject(fail(signal.aborted ? new Error('no answer in time') : error)));
    request.on('response', (message) => {
      read(message).then((content) => resolve({ message, body: content }), (error: Error) => reject(fail(error)));
    });
    request.end(body);
  });
  const answer = unseal(secret, 'answer', response.message.headers);
  if (answer === undefined || answer.nonce !== call.nonce || answer.bodyHash !== bodyHash(response.body)) {
    const error = new Error(`what answered with ${response.message.statusCode} does not know the secret of the cluster`);
    // who refuses every stranger has not acted on it; anything else may have
    throw response.message.statusCode === 403 ? new UnreachableError(`node ${call.to.id}: ${error.message}`) : fail(error);
  }
  if (answer.refused !== undefined) throw new UnreachableError(`node ${call.to.id} refused the call: ${answer.refused}`);
  return { status: answer.status, headers: answer.headers, body: response.body };
}

async function read(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
