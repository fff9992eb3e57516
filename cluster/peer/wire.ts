import type { NodeIdentity, PeerRequest, PeerResponse } from '../types.ts';
import { isSigned, sign, type Kind } from './mac.ts';

/**
 * A call is an HTTP POST whose header `kiln-call` says what is called, and whose `kiln-mac` proves who calls; the body is
 * that of the call. The answer has `kiln-answer` and `kiln-mac` in the same way, whatever its own status.
 */
export interface Call extends Pick<PeerRequest, 'method' | 'path' | 'headers'> {
  readonly from: NodeIdentity;
  readonly to: NodeIdentity;
  /** Milliseconds since 1970 by the cluster's clock. */
  readonly time: number;
  readonly nonce: string;
  readonly bodyHash: string;
}

export interface Answer extends Pick<PeerResponse, 'status' | 'headers'> {
  /** Of the call. */
  readonly nonce: string;
  readonly bodyHash: string;
  /** Why the call was not taken. */
  readonly refused?: Refusal;
}

/** Why a call is not taken, and what that is called. */
export const REFUSALS = {
  another: 'another life of the node is here',
  time: 'it comes at another time',
  repeated: 'it came before',
} as const;

export type Refusal = keyof typeof REFUSALS;

type Headers = { readonly [name: string]: string | readonly string[] | undefined };

export function seal(secret: string, kind: Kind, content: Call | Answer): Record<string, string> {
  const text = Buffer.from(JSON.stringify(content)).toString('base64url');
  return { [`kiln-${kind}`]: text, 'kiln-mac': sign(secret, kind, text) };
}

/** @returns undefined when it does not come from the cluster */
export function unseal(secret: string, kind: 'call', headers: Headers): Call | undefined;
export function unseal(secret: string, kind: 'answer', headers: Headers): Answer | undefined;
export function unseal(secret: string, kind: Kind, headers: Headers): Call | Answer | undefined {
  const text = headers[`kiln-${kind}`];
  const mac = headers['kiln-mac'];
  if (typeof text !== 'string' || typeof mac !== 'string' || !isSigned(secret, kind, text, mac)) return undefined;
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as Call | Answer;
}
