import { KilnError } from '../errors.ts';
import { Denial, type DenialKind } from './denial.ts';

/** Reasons that a token, or another one, would remove, each with its error code; none without a token (RFC 6750 section 3.1). */
const BY_TOKEN: Readonly<Partial<Record<DenialKind, string>>> = {
  tokenMissing: '',
  tokenKeys: '',
  tokenMalformed: 'invalid_token',
  tokenSignature: 'invalid_token',
  tokenExpired: 'invalid_token',
  tokenInactive: 'invalid_token',
  tokenClaims: 'invalid_token',
  tokenPermission: 'insufficient_scope',
};

/**
 * Header of an answer over HTTP by which a client learns that it needs a token (RFC 9110 section 11.6.1, RFC 6750 section 3); no
 * header where none would help. Why its token was rejected is for the log alone.
 */
export function challengeHeaders(error: unknown): { readonly 'www-authenticate'?: string } {
  if (!(error instanceof KilnError) || !(error.cause instanceof Denial)) return {};
  const code = BY_TOKEN[error.cause.kind];
  if (code === undefined) return {};
  return { 'www-authenticate': `Bearer realm="Kiln"${code === '' ? '' : `, error="${code}"`}` };
}
