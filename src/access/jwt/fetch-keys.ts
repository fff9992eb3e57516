import { wholeBody } from '../../protocols/outbound/http-body.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { httpRequest } from '../../protocols/outbound/http-request.ts';
import { MAX_KEY_SET_BYTES } from './keys.ts';
import type { FetchKeys } from './remote-keys.ts';

/** Media type of a JWK Set (RFC 7517 section 8.5.2); providers send `application/json` as well. */
const ACCEPT = 'application/jwk-set+json, application/json';
const OK = 200;

/** Fetches JWK Sets from where the guard allows it. */
export function fetchKeys(guard: OutboundGuard): FetchKeys {
  return async (url, signal) => {
    const answer = await httpRequest(guard, new URL(url), { accept: ACCEPT, signal, staysSecure: true });
    const { statusCode } = answer.response;
    if (statusCode !== OK) {
      answer.socket.destroy();
      throw guard.error(`the server answered with ${statusCode}`);
    }
    return (await wholeBody(answer, MAX_KEY_SET_BYTES, guard)).toString();
  };
}
