import test from 'ava';
import { challengeHeaders } from '../../../src/access/challenge.ts';
import { accessDenied, Denial, type DenialKind } from '../../../src/access/denial.ts';
import { kilnError } from '../../../src/errors.ts';

const challenge = (kind: DenialKind) => challengeHeaders(accessDenied(new Denial(kind, 'why'))) as object;

test('clients that lack a token learn that, and those with another one that it does not do', (t) => {
  const bearer = (code = '') => ({
    'www-authenticate': `Bearer realm="Kiln"${code === '' ? '' : `, error="${code}"`}`,
  });
  for (const kind of ['tokenMissing', 'tokenKeys'] as const) t.deepEqual(challenge(kind), bearer(), kind);
  for (const kind of ['tokenMalformed', 'tokenSignature', 'tokenExpired', 'tokenInactive', 'tokenClaims'] as const)
    t.deepEqual(challenge(kind), bearer('invalid_token'), kind);
  t.deepEqual(challenge('tokenPermission'), bearer('insufficient_scope'));
});

test('clients whom no token would help are not asked for one', (t) => {
  for (const kind of ['webhookRefused', 'webhookFailed', 'policyMissing', 'policyExpired'] as const)
    t.deepEqual(challenge(kind), {}, kind);
  for (const error of [kilnError('accessDenied'), kilnError('playlistSessionRefused'), new Error('other'), undefined])
    t.deepEqual(challengeHeaders(error), {});
});
