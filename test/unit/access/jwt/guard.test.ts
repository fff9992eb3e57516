import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Verdict } from '../../../../src/access/guard.ts';
import { jsonWebTokens, withoutToken } from '../../../../src/access/jwt/guard.ts';
import { KeySources } from '../../../../src/access/jwt/key-sources.ts';
import type { AccessRequest } from '../../../../src/access/request.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { KilnError } from '../../../../src/errors.ts';
import { playRequest, publishRequest } from '../../../support/access/access.ts';
import {
  after,
  EC,
  ED,
  HMAC,
  hmacSigner,
  ISSUER,
  keySet,
  OTHER_EC,
  RSA,
  SECRET,
  token,
} from '../../../support/access/tokens.ts';
import { markOf } from '../../../../src/access/revocations.ts';
import { until } from '../../../support/time/until.ts';
import { vhostConfig } from '../../core/support.ts';

const URL_OF_KEYS = 'https://id.example/keys';
const MAY = { kiln_permissions: [{ action: 'read', path: 'app/stream' }] };

const ENABLES = { enables: { providers: 'rtmp,srt', publishers: 'llhls,webrtc,playback' } };

function setUp(t: ExecutionContext, jwt: object, keys = '', enables: object = ENABLES) {
  const sources = new KeySources({ folder: '/', fetch: async () => keys, log: pino({ enabled: false }) });
  t.teardown(() => sources.close());
  const guard = jsonWebTokens(sources);
  const config = vhostConfig({
    ...{ name: 'guarded', host: { names: ['*'] }, applications: [] },
    jwt: { ...enables, ...jwt },
  });
  const vhost = new Registry().createVhost(config, true);
  const decide = async (request: AccessRequest): Promise<Verdict | undefined> => {
    const answer = guard(request, vhost);
    return typeof answer === 'function' ? await answer(undefined) : answer;
  };
  /** The verdict without the marks, or why the request is refused. */
  const judge = async (request: AccessRequest): Promise<Verdict | string | undefined> => {
    try {
      const verdict = await decide(request);
      if (verdict === undefined) return undefined;
      const { marks: _, ...rest } = verdict;
      return rest;
    } catch (error) {
      if (!(error instanceof KilnError) || error.code !== 'accessDenied') throw error;
      return (error.cause as { kind: string }).kind;
    }
  };
  return { judge, decide, vhost };
}

const bearing = (bearer: string): AccessRequest => playRequest({ protocol: 'llhls', bearer });

test('a session is found by the id, the subject and the key of its token', async (t) => {
  const { decide } = setUp(t, { jwksUrl: URL_OF_KEYS }, keySet({ mine: EC }));
  const all = await decide(bearing(token(EC, { ...MAY, jti: 'one', sub: 'me' }, { kid: 'mine' })));
  t.deepEqual(all, { marks: [markOf('jti', 'one'), markOf('sub', 'me'), markOf('kid', 'mine')] });
  t.deepEqual(await decide(bearing(token(EC, MAY))), { marks: [] });
});

for (const signer of [RSA, EC, ED])
  test(`a token by ${signer.algorithm} admits whom it permits`, async (t) => {
    const { judge } = setUp(t, { jwksUrl: URL_OF_KEYS }, keySet({ other: OTHER_EC, mine: signer }));
    t.deepEqual(await judge(bearing(token(signer, MAY, { kid: 'mine' }))), {});
    t.deepEqual(await judge(bearing(token(signer, MAY))), {}, 'a token without the name of its key');
    t.is(await judge(bearing(token(signer, {}, { kid: 'mine' }))), 'tokenPermission');
    t.is(await judge(bearing(token(signer, MAY, { kid: 'other' }))), 'tokenSignature');
    t.is(await judge(bearing(token(signer, MAY, { kid: 'unknown' }))), 'tokenSignature');
  });

test('a token by HS256 admits whom it permits', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  t.deepEqual(await judge(bearing(token(HMAC, MAY, { kid: 'any' }))), {});
  t.is(await judge(bearing(token(hmacSigner(`${SECRET}!`), MAY))), 'tokenSignature');
});

test('Ed25519 goes by both of its names (RFC 9864)', async (t) => {
  const { judge } = setUp(t, { jwksUrl: URL_OF_KEYS }, keySet({ mine: ED }));
  t.deepEqual(await judge(bearing(token(ED, MAY, { alg: 'Ed25519' }))), {});
});

test('a token for an audience is refused where none is configured', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  t.is(await judge(bearing(token(HMAC, { ...MAY, aud: 'shop' }))), 'tokenClaims');
});

test('without Enables, every module needs a token; a name that no module has is an error', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET }, '', {});
  for (const protocol of ['flv', 'hlsv3', 'thumbnail', 'rtsp'] as const)
    t.is(await judge(playRequest({ protocol })), 'tokenMissing', protocol);
  t.is(await judge(publishRequest({ protocol: 'webrtc' })), 'tokenMissing');
  t.throws(() => setUp(t, { secretKey: SECRET, enables: { publishers: 'webrtc,hls' } }), {
    message: /has hls, which is none of/,
  });
});

test('keys without names are tried in turn', async (t) => {
  const keys = JSON.stringify({ keys: [OTHER_EC.jwk, EC.jwk] });
  const { judge } = setUp(t, { jwksUrl: URL_OF_KEYS }, keys);
  t.deepEqual(await judge(bearing(token(EC, MAY, { kid: 'any' }))), {});
});

test('a token cannot choose its algorithm', async (t) => {
  const { judge } = setUp(t, { jwksUrl: URL_OF_KEYS }, keySet({ mine: RSA }));
  const forged = token(hmacSigner(RSA.pem), MAY, { kid: 'mine' });
  t.is(await judge(bearing(forged)), 'tokenSignature', 'a secret that is the public key');
  const none = { ...RSA, algorithm: 'none', sign: () => Buffer.alloc(0) };
  t.is(await judge(bearing(token(none, MAY, { kid: 'mine' }))), 'tokenSignature', 'no signature');
  t.is(await judge(bearing(token(RSA, MAY, { kid: 'mine', alg: 'RS512' }))), 'tokenSignature');
  t.is(await judge(bearing(token(RSA, MAY, { kid: 'mine', alg: 'PS256' }))), 'tokenSignature');
  t.is(await judge(bearing(token(OTHER_EC, MAY, { kid: 'mine', jwk: OTHER_EC.jwk }))), 'tokenSignature', 'its own key');
  t.is(await judge(bearing(token(RSA, MAY, { crit: ['exp'] }))), 'tokenMalformed');
});

test('times have a tolerance of 30 s', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  const at = (claims: object) => judge(bearing(token(HMAC, { ...MAY, ...claims })));
  t.deepEqual(await at({ exp: after(-20) }), {});
  t.is(await at({ exp: after(-40) }), 'tokenExpired');
  t.deepEqual(await at({ nbf: after(20) }), {});
  t.is(await at({ nbf: after(60) }), 'tokenInactive');
  t.deepEqual(await at({ exp: undefined }), {}, 'one without end');
  t.is(await at({ exp: 'tomorrow' }), 'tokenClaims');
});

test('issuer and audience are checked where they are configured', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET, issuer: ISSUER, audience: 'kiln' });
  const by = (claims: object) => judge(bearing(token(HMAC, { ...MAY, ...claims })));
  t.deepEqual(await by({ iss: ISSUER, aud: 'kiln' }), {});
  t.deepEqual(await by({ iss: ISSUER, aud: ['shop', 'kiln'] }), {});
  for (const claims of [
    {},
    { iss: ISSUER },
    { aud: 'kiln' },
    { iss: 'x', aud: 'kiln' },
    { iss: ISSUER, aud: ['shop'] },
  ])
    t.is(await by(claims), 'tokenClaims', JSON.stringify(claims));
});

test('a claim ends the session', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  const end = after(3600);
  t.deepEqual(await judge(bearing(token(HMAC, { ...MAY, kiln_session_exp: end }))), { until: end * 1000 });
  t.is(await judge(bearing(token(HMAC, { ...MAY, kiln_session_exp: after(-1) }))), 'tokenExpired');
});

test('a token comes in a header or in the query', async (t) => {
  const { judge, vhost } = setUp(t, { secretKey: SECRET, queryKeyName: 'key' });
  const good = token(HMAC, { kiln_permissions: [{ action: 'publish' }] });
  const asking = (search: string, bearer?: string) => publishRequest({ query: new URLSearchParams(search), bearer });
  t.deepEqual(await judge(asking(`a=b&key=${good}`)), {});
  t.deepEqual(await judge(asking('', good)), {});
  t.is(await judge(asking(`token=${good}`)), 'tokenMissing');
  t.is(await judge(asking('key=')), 'tokenMissing');
  t.is(await judge(asking(`key=${good}&key=${good}`)), 'tokenMalformed');
  t.is(await judge(asking(`key=${good}`, 'another')), 'tokenMalformed', 'the header counts');
  t.is(await judge(asking(`key=${'x'.repeat(8193)}`)), 'tokenMalformed');
  const client = playRequest({ protocol: 'llhls' });
  t.is(withoutToken(`a=b&key=${good}&c`, vhost.config, client), 'a=b&c');
  t.is(withoutToken(`key=${good}`, vhost.config, playRequest({ protocol: 'flv' })), `key=${good}`);
});

test('modules that are not enabled, and virtual hosts without tokens, ignore them', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  t.is(await judge(playRequest({ protocol: 'flv' })), undefined);
  t.is(await judge(publishRequest({ protocol: 'webrtc', bearer: 'a key' })), undefined);
  const open = new Registry().createVhost(
    vhostConfig({ name: 'open', host: { names: ['*'] }, applications: [] }),
    true,
  );
  const sources = new KeySources({ folder: '/', fetch: () => t.fail() as never, log: pino({ enabled: false }) });
  t.is(jsonWebTokens(sources)(bearing('a key'), open), undefined);
});

test('random and cut tokens are refused', async (t) => {
  const { judge } = setUp(t, { secretKey: SECRET });
  const good = token(HMAC, MAY);
  for (let length = 1; length < good.length; length++) {
    const why = await judge(bearing(good.slice(0, length)));
    t.true(why === 'tokenMalformed' || why === 'tokenSignature', `${length}: ${JSON.stringify(why)}`);
  }
  for (const odd of ['.', '..', '...', 'a.b.c', '%', '\u{1f600}', `${good}.x`, 'e30.e30.e30', 'bnVsbA.e30.'])
    t.is(await judge(bearing(odd)), odd === 'e30.e30.e30' ? 'tokenSignature' : 'tokenMalformed', odd);
});

test('a token is checked with the keys of a file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-jwt-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const keyFile = join(folder, 'keys');
  const { judge } = setUp(t, { keyFile });
  t.is(await judge(bearing(token(EC, MAY))), 'tokenKeys');
  await writeFile(keyFile, EC.pem);
  await until('the key is read', async () => typeof (await judge(bearing(token(EC, MAY)))) === 'object');
});
