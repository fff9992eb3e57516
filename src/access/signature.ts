import { createHmac } from 'node:crypto';

/** Base64url of the HMAC-SHA1 of a text or a body, without padding (facts/03-access-control.md). */
export function signature(secretKey: string, signed: string | Buffer): string {
  return createHmac('sha1', secretKey).update(signed).digest('base64url');
}
