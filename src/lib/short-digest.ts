import { createHash } from 'node:crypto';

/**
 * Digest of some data, as short as suffices to know it again: 16 characters of base64url. Of a text that was cut from another one, V8
 * would keep that whole.
 */
export function shortDigest(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('base64url').slice(0, 16);
}
