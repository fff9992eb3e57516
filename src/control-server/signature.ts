import { createHmac } from 'node:crypto';

export type Algorithm = 'sha1' | 'sha256';

export function hmac(algorithm: Algorithm, secretKey: string | Buffer, signed: string | Buffer): Buffer {
  return createHmac(algorithm, secretKey).update(signed).digest();
}

/** Base64url of the HMAC of a text or a body, without padding: SHA-1 by default (docs/compatibility.md#control-servers). */
export function signature(secretKey: string, signed: string | Buffer, algorithm: Algorithm = 'sha1'): string {
  return hmac(algorithm, secretKey, signed).toString('base64url');
}
