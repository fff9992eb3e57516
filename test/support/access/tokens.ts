import { createHmac, generateKeyPairSync, sign, type JsonWebKey, type KeyObject } from 'node:crypto';

export const ISSUER = 'https://id.example';
export const SECRET = 'a secret of thirty-two characters';

/** A pair of keys, and how it signs (RFC 7518 section 3, RFC 8037 section 3.1). */
export interface Signer {
  readonly algorithm: string;
  /** PEM of the public key. */
  readonly pem: string;
  readonly jwk: JsonWebKey;
  readonly sign: (text: string) => Buffer;
}

function signer(algorithm: string, { publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject }): Signer {
  return {
    algorithm,
    pem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    jwk: publicKey.export({ format: 'jwk' }),
    sign: (text) =>
      sign(algorithm === 'EdDSA' ? null : 'sha256', Buffer.from(text), {
        key: privateKey,
        dsaEncoding: 'ieee-p1363',
      }),
  };
}

export const RSA = signer('RS256', generateKeyPairSync('rsa', { modulusLength: 2048 }));
export const EC = signer('ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' }));
export const OTHER_EC = signer('ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' }));
export const ED = signer('EdDSA', generateKeyPairSync('ed25519'));
export const HMAC = hmacSigner(SECRET);

export function hmacSigner(secret: string): Signer {
  return {
    algorithm: 'HS256',
    pem: '',
    jwk: { kty: 'oct', k: Buffer.from(secret).toString('base64url') },
    sign: (text) => createHmac('sha256', secret).update(text).digest(),
  };
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Seconds since the epoch, from now. */
export const after = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

/** A token (RFC 7519), made without the library that reads it. @param header further parameters of it */
export function token(by: Signer, claims: object, header: object = {}): string {
  const text = `${part({ alg: by.algorithm, typ: 'JWT', ...header })}.${part({ exp: after(60), ...claims })}`;
  return `${text}.${by.sign(text).toString('base64url')}`;
}

/** A set of keys (RFC 7517 section 5), with the names that are given. */
export function keySet(keys: Readonly<Record<string, Signer>>): string {
  return JSON.stringify({ keys: Object.entries(keys).map(([kid, { jwk }]) => ({ ...jwk, kid })) });
}
