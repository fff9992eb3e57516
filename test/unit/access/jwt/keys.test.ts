import { generateKeyPairSync } from 'node:crypto';
import test from 'ava';
import { KeySetError, readKeys, secretKey } from '../../../../src/access/jwt/keys.ts';
import { EC, ED, HMAC, keySet, RSA } from '../../../support/access/tokens.ts';

const read = (text: string) => readKeys(text).map(({ id, algorithm }) => [id, algorithm]);
const set = (...keys: readonly unknown[]): string => JSON.stringify({ keys });

test('the type of a key fixes its algorithm', (t) => {
  t.deepEqual(read(RSA.pem), [[undefined, 'RS256']]);
  t.deepEqual(read(EC.pem), [[undefined, 'ES256']]);
  t.deepEqual(read(ED.pem), [[undefined, 'EdDSA']]);
  t.deepEqual(read(keySet({ a: RSA, b: EC, c: ED, d: HMAC })), [
    ['a', 'RS256'],
    ['b', 'ES256'],
    ['c', 'EdDSA'],
    ['d', 'HS256'],
  ]);
  t.deepEqual(read(` \n${JSON.stringify(EC.jwk)}`), [[undefined, 'ES256']]);
  t.is(secretKey('x'.repeat(32)).algorithm, 'HS256');
});

test('keys of a set that are for something else are left out', (t) => {
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' });
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const others = [
    { ...RSA.jwk, use: 'enc' },
    { ...RSA.jwk, alg: 'PS256' },
    { ...EC.jwk, alg: 'HS256' },
    ...[p384, weak, { kty: 'oct', k: 'c2hvcnQ' }, { kty: 'OKP', crv: 'X25519', x: 'AAAA' }, { kty: 'XYZ' }],
    ...[null, 1, []],
  ];
  t.deepEqual(read(set(...others, { ...EC.jwk, kid: 'e', use: 'sig', alg: 'ES256' }, { ...ED.jwk, alg: 'Ed25519' })), [
    ['e', 'ES256'],
    [undefined, 'EdDSA'],
  ]);
  t.throws(() => readKeys(set(...others)), { instanceOf: KeySetError, message: /there is no key of RS256, ES256/ });
});

test('what is no key is told', (t) => {
  const fault = (text: string): string => t.throws(() => readKeys(text), { instanceOf: KeySetError })?.message ?? '';
  t.regex(fault(''), /neither JSON of a JWK Set nor a public key in PEM/);
  t.regex(fault('{'), /not JSON/);
  t.regex(fault('{}'), /there is no key/);
  t.regex(fault('{"keys":{}}'), /there is no key/);
  t.regex(fault(set(...Array.from({ length: 65 }, () => EC.jwk))), /more than 64 keys/);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  t.regex(fault(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()), /it is a private key/);
  t.throws(() => secretKey('short'), { instanceOf: KeySetError, message: /a secret of 32 bytes/ });
});
