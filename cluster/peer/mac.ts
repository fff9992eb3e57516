import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** Kind of a signed text: the proof of one is not valid for another. */
export type Kind = 'call' | 'answer' | 'entry' | 'row';

/** The secret of the cluster; while it is being changed, the previous secret comes second. */
export type Secrets = readonly string[];

/**
 * Proof that the sender of a text knows the secret of the cluster: a MAC by each of its secrets, separated by commas, so that
 * a node that knows only one of them takes it.
 */
export function sign(secrets: Secrets, kind: Kind, text: string): string {
  return secrets.map((secret) => macOf(secret, kind, text).toString('base64url')).join(',');
}

/** Whether one of the MACs is by one of the secrets. In constant time. */
export function isSigned(secrets: Secrets, kind: Kind, text: string, proof: string): boolean {
  return signerOf(secrets, kind, text, proof) !== undefined;
}

/** The first of the secrets that one of the MACs is by; undefined when none is. In constant time. */
export function signerOf(secrets: Secrets, kind: Kind, text: string, proof: string): string | undefined {
  const given = proof.split(',', MAX_MACS).map((mac) => Buffer.from(mac, 'base64url'));
  return secrets.find((secret) => {
    const right = macOf(secret, kind, text);
    return given.some((mac) => mac.length === right.length && timingSafeEqual(mac, right));
  });
}

/** Hash of the body of a call or an answer: SHA-256 in base64url. */
export function bodyHash(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url');
}

const MAX_MACS = 2;

function macOf(secret: string, kind: Kind, text: string): Buffer {
  return createHmac('sha256', secret).update(`kiln ${kind} 1\n${text}`).digest();
}
