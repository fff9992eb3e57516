import type { JWTPayload } from 'jose';
import { Denial } from '../denial.ts';
import { hasKey, type KeySource } from './key-source.ts';
import { algorithmNamed } from './keys.ts';

/** Longest token that is read, in characters. */
export const MAX_TOKEN = 8192;
/** Seconds by which the clocks of the issuer and of this node may differ. */
const CLOCK_SKEW_S = 30;

export interface Expected {
  /** `iss`; undefined: any. */
  readonly issuer: string | undefined;
  /** One of `aud`; undefined: any. */
  readonly audience: string | undefined;
}

/** Loaded with the first token: servers without tokens do without it. */
let jose: Promise<typeof import('jose')> | undefined;

/**
 * Checks a signed token (RFC 7519) and its claims of time, issuer and audience.
 * @throws Denial tokenMalformed, tokenKeys, tokenSignature, tokenExpired, tokenInactive, tokenClaims
 */
export async function verifyToken(
  token: string,
  source: KeySource,
  { issuer, audience }: Expected,
): Promise<{ readonly claims: JWTPayload; readonly kid: string | undefined }> {
  jose ??= import('jose').catch((error: unknown) => {
    jose = undefined;
    throw error;
  });
  const { decodeProtectedHeader, errors, jwtVerify } = await jose;
  const { kid, alg } = headerOf(() => decodeProtectedHeader(token));
  const keys = (await source.keys(kid)).filter((key) => key.algorithm === algorithmNamed(alg) && hasKey([key], kid));
  const options = {
    clockTolerance: CLOCK_SKEW_S,
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  };
  for (const { key } of keys) {
    try {
      const { payload } = await jwtVerify(token, key, { ...options, algorithms: [String(alg)] });
      // RFC 7519 section 4.1.3
      if (audience === undefined && payload.aud !== undefined)
        throw new Denial('tokenClaims', 'the token is for an audience, and this virtual host has no Audience');
      return { claims: payload, kid };
    } catch (error) {
      // keys without names are tried in turn
      if (error instanceof errors.JWSSignatureVerificationFailed) continue;
      throw denialOf(error, errors);
    }
  }
  throw new Denial('tokenSignature', 'the token is not signed with a key of this virtual host, by its algorithm');
}

function headerOf<T>(read: () => T): T {
  try {
    return read();
  } catch {
    throw new Denial('tokenMalformed', 'what was sent as a token is none');
  }
}

function denialOf(
  error: unknown,
  { JWTExpired, JWTClaimValidationFailed, JOSEError }: (typeof import('jose'))['errors'],
): unknown {
  if (error instanceof JWTExpired) return new Denial('tokenExpired', 'the token has expired');
  if (error instanceof JWTClaimValidationFailed)
    return error.claim === 'nbf'
      ? new Denial('tokenInactive', 'the token is not valid yet')
      : new Denial('tokenClaims', `the token is not for this virtual host: ${error.message}`);
  return error instanceof JOSEError
    ? new Denial('tokenMalformed', `the token cannot be read: ${error.message}`)
    : error;
}
