import test from 'ava';
import { checkSignature, checkUse, type Signing } from '../../../../src/access/policy/check.ts';
import { signUrl } from '../../../../src/access/policy/sign.ts';
import { withParameter } from '../../../../src/access/policy/signed-url.ts';
import { signature } from '../../../../src/control-server/signature.ts';
import { seeded } from '../../codecs/vectors.ts';

const ROUNDS = 10_000;
const NOW = 1_800_000_000_000;
const SIGNING: Signing = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'secret',
  algorithm: 'sha1',
};
const USE = { address: '192.0.2.7', realAddress: '192.0.2.7', now: NOW };
const FIELDS = { url_expire: NOW + 1000, url_activate: NOW, stream_expire: NOW + 2000, allow_ip: '192.0.2.0/24' };
const PLAIN = 'https://live.example:3334/app/stream/master.m3u8?a=1';

/** Whether a URL is accepted; throws whatever is no refusal. */
function accepts(url: string): boolean {
  try {
    checkUse(checkSignature(url, SIGNING), USE);
    return true;
  } catch (error) {
    if ((error as Error).name !== 'Denial') throw error;
    return false;
  }
}

test('a signed URL that was changed or cut anywhere is refused', (t) => {
  const random = seeded(20_261_123);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const url = signUrl(PLAIN, FIELDS, SIGNING);
  t.true(accepts(url));
  const sign = url.indexOf('signature=');
  const accepted: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const at = upTo(url.length - 1);
    const character = String.fromCharCode(32 + upTo(95));
    const spoilt = round % 2 === 0 ? url.slice(0, at) : `${url.slice(0, at)}${character}${url.slice(at + 1)}`;
    // the last character of base64url has bits that mean nothing, and scheme and host are told in any case
    const isSame = spoilt.toLowerCase() === url.toLowerCase() && (at < sign || spoilt === url);
    if (!isSame && accepts(spoilt)) accepted.push(spoilt);
  }
  t.deepEqual(accepted, []);
});

test('any signed text is a policy or is rejected', (t) => {
  const random = seeded(20_261_124);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const json = JSON.stringify(FIELDS);
  const words = [
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '-1',
    '1e400',
    'null',
    '\\u0000',
    '\ud800',
    '[['.repeat(400),
    'url_expire',
  ];
  let malformed = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const at = upTo(json.length);
    const bytes = Buffer.from(
      [
        () => json.slice(0, at),
        () => `${json.slice(0, at)}${words[upTo(words.length)]}${json.slice(at + upTo(4))}`,
        () => `${json.slice(0, at)}${String.fromCharCode(upTo(256))}${json.slice(at + 1)}`,
        () => Buffer.from(Array.from({ length: upTo(200) }, () => upTo(256))).toString('latin1'),
      ][round % 4]?.() ?? '',
      round % 8 < 4 ? 'utf8' : 'latin1',
    );
    const text = withParameter(PLAIN, 'policy', bytes.toString('base64url'));
    const url = withParameter(text, 'signature', signature(SIGNING.secretKey, text));
    if (!accepts(url)) malformed++;
  }
  // some changes leave a policy that allows as much
  t.true(malformed > ROUNDS / 2 && malformed < ROUNDS, String(malformed));
});
