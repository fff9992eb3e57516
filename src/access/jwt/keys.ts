import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject } from 'node:crypto';

/** Algorithms of tokens (RFC 7518 section 3.1, RFC 8037 section 3.1). */
export type TokenAlgorithm = 'RS256' | 'ES256' | 'EdDSA' | 'HS256';

/** A key for tokens. Its type fixes the algorithm: what a token says cannot change it (RFC 8725 section 3.1). */
export interface TokenKey {
  /** `kid`; undefined for a key without a name, which may be that of any token. */
  readonly id: string | undefined;
  readonly algorithm: TokenAlgorithm;
  readonly key: KeyObject;
}

/** Longest set of keys that is read, in bytes. */
export const MAX_KEY_SET_BYTES = 262_144;

/** Error for keys that cannot be fetched or read. */
export class KeySetError extends Error {
  override readonly name = 'KeySetError';
}

/** Keys of a set: providers have two or three, and some one for each of their applications. */
const MAX_KEYS = 64;
/** RFC 7518 section 3.3. */
const LEAST_RSA_BITS = 2048;
/** RFC 7518 section 3.2. */
const LEAST_SECRET_BYTES = 32;

/**
 * Reads a JWK Set (RFC 7517 section 5), a single JWK, or a public key in PEM. Keys of a set that are for something else, or of
 * another type, are left out.
 * @throws KeySetError when none is left
 */
export function readKeys(text: string): readonly TokenKey[] {
  const keys = text.trimStart().startsWith('{') ? readJwks(text) : [keyOf(publicKey(text), undefined)];
  if (keys.length === 0)
    throw new KeySetError('there is no key of RS256, ES256, EdDSA or HS256 for signatures among its keys');
  return keys;
}

/** The key of HS256. @param secret of 32 bytes at least @throws KeySetError */
export function secretKey(secret: string): TokenKey {
  return keyOf(createSecretKey(Buffer.from(secret)), undefined);
}

function publicKey(text: string): KeyObject {
  // a private key would be taken for its public one: the file would hold a secret that is not needed
  if (text.includes('PRIVATE KEY')) throw new KeySetError('it is a private key: its public key is what is needed');
  try {
    return createPublicKey(text);
  } catch {
    throw new KeySetError('it is neither JSON of a JWK Set nor a public key in PEM');
  }
}

function readJwks(text: string): TokenKey[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new KeySetError('it is not JSON');
  }
  const set = value as { readonly keys?: unknown };
  const all = Array.isArray(set.keys) ? set.keys : [value];
  if (all.length > MAX_KEYS) throw new KeySetError(`it has more than ${MAX_KEYS} keys`);
  return all.flatMap((jwk) => readJwk(jwk) ?? []);
}

/** @returns undefined for what is no key for signatures of tokens */
function readJwk(given: unknown): TokenKey | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { kid, use, alg, kty, k } = given as Readonly<Record<string, unknown>>;
  if (use !== undefined && use !== 'sig') return undefined;
  try {
    const key =
      kty === 'oct'
        ? createSecretKey(Buffer.from(String(k), 'base64url'))
        : createPublicKey({ key: given as JsonWebKey, format: 'jwk' });
    const read = keyOf(key, typeof kid === 'string' ? kid : undefined);
    return alg === undefined || algorithmNamed(alg) === read.algorithm ? read : undefined;
  } catch {
    return undefined;
  }
}

/** Name of an algorithm here: Ed25519 has two (RFC 9864 section 2.2). */
export function algorithmNamed(name: unknown): unknown {
  return name === 'Ed25519' ? 'EdDSA' : name;
}

function keyOf(key: KeyObject, id: string | undefined): TokenKey {
  const algorithm = algorithmOf(key);
  if (algorithm === undefined)
    throw new KeySetError(
      `its key is none of RSA with ${LEAST_RSA_BITS} bits, P-256, Ed25519, or a secret of ${LEAST_SECRET_BYTES} bytes`,
    );
  return { id, algorithm, key };
}

function algorithmOf(key: KeyObject): TokenAlgorithm | undefined {
  if (key.type === 'secret') return (key.symmetricKeySize ?? 0) >= LEAST_SECRET_BYTES ? 'HS256' : undefined;
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return modulusLength >= LEAST_RSA_BITS ? 'RS256' : undefined;
    case 'ec':
      return namedCurve === 'prime256v1' ? 'ES256' : undefined;
    case 'ed25519':
      return 'EdDSA';
    default:
      return undefined;
  }
}
