import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** What is signed: the proof of one is not valid for the other. */
export type Kind = 'call' | 'answer';

/** Proof that the sender of a text knows the secret of the cluster. */
export function sign(secret: string, kind: Kind, text: string): string {
  return createHmac('sha256', secret).update(`kiln ${kind} 1\n${text}`).digest('base64url');
}

/** In constant time. */
export function isSigned(secret: string, kind: Kind, text: string, mac: string): boolean {
  const given = Buffer.from(mac, 'base64url');
  const right = Buffer.from(sign(secret, kind, text), 'base64url');
  return given.length === right.length && timingSafeEqual(given, right);
}

/** Hash of the body of a call or an answer: SHA-256 in base64url. */
export function bodyHash(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url');
}
