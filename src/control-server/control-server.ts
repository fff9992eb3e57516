import type { Agent } from 'node:http';
import { post, type ControlAnswer } from './post.ts';
import { signature } from './signature.ts';

export interface ControlServer {
  /** URL of http or https; a user and a password in it are sent as Basic credentials. */
  readonly url: string;
  /** Key of the signature; without it requests are not signed. */
  readonly secretKey?: string | undefined;
  /** Milliseconds for the connection, and then again for the complete answer. */
  readonly timeout: number;
}

const MAX_ANSWER_BYTES = 1024 * 1024;

/**
 * Posts JSON to an operator's server, with the body signed in X-OME-Signature (docs/compatibility.md#control-servers).
 * Redirects are answers like any other.
 * @param signal aborts the call
 * @param agent keeps connections for the next calls; without one the call has a connection of its own
 * @param more headers
 * @throws ControlServerError
 */
export async function askControlServer(
  { url, secretKey, timeout }: ControlServer,
  question: object,
  signal: AbortSignal,
  agent?: Agent,
  more: Readonly<Record<string, string>> = {},
): Promise<ControlAnswer> {
  const body = Buffer.from(JSON.stringify(question));
  const headers = {
    ...more,
    'Content-Type': 'application/json',
    Accept: 'application/json',
    ...(secretKey && { 'X-OME-Signature': signature(secretKey, body) }),
  };
  return await post({ url, headers, body, timeout, maxAnswerBytes: MAX_ANSWER_BYTES }, signal, agent);
}
