import { request as httpRequest, type ClientRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { UnreachableError } from '../errors.ts';
import type { Way } from './exchange.ts';
import { MAX_HEAD, refusalOf, seal, unseal, type Answer, type Call } from './wire.ts';

/** The method of calls that open a stream, and the protocol that the connection is upgraded to. */
export const STREAM = 'STREAM';
export const PROTOCOL = 'kiln';
/** Path of a stream that carries nothing. No other path begins so. */
export const HELD = 'kiln:held';

/**
 * Opens a stream of bytes on a connection of its own. Both ends are authenticated when it is open; its
 * bytes are not signed.
 * @throws UnreachableError when it could not be opened (ClockError when the node refused it for its time)
 */
export function openStream({ address, secure, secrets, signal }: Omit<Way, 'agent'>, call: Call): Promise<Duplex> {
  const fail = (text: string, cause?: Error): Error => new UnreachableError(`node ${call.to.id}: ${text}`, { cause });
  const objection = (answer: Answer | undefined): Error | undefined => {
    if (answer === undefined || answer.nonce !== call.nonce)
      return fail('answered without proof of the cluster secret: another secret, another version, or not a Kiln node');
    if (answer.refused !== undefined) return refusalOf('stream', call.to.id, answer.refused, answer.time);
    return answer.status === 101 ? undefined : fail('it does not accept streams');
  };
  return new Promise((resolve, reject) => {
    const make = address.startsWith('https:') ? httpsRequest : httpRequest;
    const headers = { ...seal(secrets, 'call', call), connection: 'Upgrade', upgrade: PROTOCOL };
    const request: ClientRequest = make(`${address}/`, {
      method: 'GET',
      headers,
      maxHeaderSize: MAX_HEAD,
      signal,
      agent: false,
      ...secure,
    });
    request.on('error', (error) => reject(fail(signal.aborted ? 'no answer in time' : error.message, error)));
    request.on('response', (response) => {
      response.resume();
      reject(objection(unseal(secrets, 'answer', response.headers)) ?? fail('it does not accept streams'));
    });
    request.on('upgrade', (response, socket, head) => {
      const wrong = objection(unseal(secrets, 'answer', response.headers));
      if (wrong !== undefined) {
        socket.destroy();
        return reject(wrong);
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}
