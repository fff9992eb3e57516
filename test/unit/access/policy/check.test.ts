import { createHmac } from 'node:crypto';
import test from 'ava';
import { checkSignature, checkUse, type Signing } from '../../../../src/access/policy/check.ts';
import { readPolicy } from '../../../../src/access/policy/policy.ts';
import { signUrl } from '../../../../src/access/policy/sign.ts';

const SIGNING: Signing = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: '1kU^b6',
  algorithm: 'sha1',
};
const FIELDS = { url_expire: 2_000_000_000_000 };
const URL = 'https://live.example:3334/app/stream/master.m3u8';

const accepted = (
  t: { is(a: unknown, b: unknown): unknown },
  url: string,
  ports?: readonly number[],
  signing = SIGNING,
) => t.is(checkSignature(url, signing, ports).urlExpire, FIELDS.url_expire);
const SIGNED = { name: 'Denial', message: /^the signature of the URL is not/ };

test('the example of docs/compatibility.md#signed-urls passes', (t) => {
  const text = 'ws://192.168.0.100:3333/app/stream?policy=eyJ1cmxfZXhwaXJlIjoxMzk5NzIxNTgxfQ';
  const policy = checkSignature(`${text}&signature=dvVdBpoxAeCPl94Kt5RoiqLI0YE`, SIGNING);
  t.is(policy.urlExpire, 1_399_721_581);
  t.is(
    signUrl('ws://192.168.0.100:3333/app/stream', { url_expire: 1_399_721_581 }, SIGNING),
    `${text}&signature=dvVdBpoxAeCPl94Kt5RoiqLI0YE`,
  );
});

test('the signature is over everything but itself, wherever it stands', (t) => {
  const policy = Buffer.from(JSON.stringify(FIELDS)).toString('base64url');
  const sign = (text: string) => createHmac('sha1', SIGNING.secretKey).update(text).digest('base64url');
  const text = `${URL}?a=1&policy=${policy}&b=%20`;
  const signature = sign(text);
  accepted(t, `${URL}?a=1&policy=${policy}&b=%20&signature=${signature}`);
  accepted(t, `${URL}?signature=${signature}&a=1&policy=${policy}&b=%20`);
  accepted(t, `${URL}?a=1&policy=${policy}&signature=${signature}&b=%20`);
  accepted(t, `${URL}?a=1&policy=${policy}&signature=${signature}=&b=%20`);
  accepted(t, `${URL}?a=1&policy=${policy}&signature=${signature}%3D&b=%20`);
  t.throws(() => checkSignature(`${URL}?policy=${policy}&a=1&b=%20&signature=${signature}`, SIGNING), SIGNED);
});

test('a host is the same in capital letters, as the client typed it or in small ones', (t) => {
  const signed = signUrl(URL, FIELDS, SIGNING);
  accepted(t, signed.replace('live.example', 'Live.EXAMPLE'));
  accepted(t, signed.replace('https://live.example', 'HTTP://LIVE.example'));
  accepted(t, signUrl(URL.replace('live', 'LIVE'), FIELDS, SIGNING));
  const ipv6 = signUrl('http://[2001:db8::a]:3333/app/stream/master.m3u8', FIELDS, SIGNING);
  accepted(t, ipv6.replace('db8::a', 'DB8::A'));
  t.throws(() => checkSignature(signed.replace('/app/', '/APP/'), SIGNING), SIGNED);
});

test('any change of the URL breaks the signature', (t) => {
  const url = signUrl(`${URL}?token=1`, FIELDS, SIGNING);
  accepted(t, url);
  for (const [from, to] of [
    ['live.', 'other.'],
    [':3334', ':3335'],
    ['/stream', '/stream2'],
    ['master', 'other'],
    ['token=1', 'token=2'],
    ['?token', '?more=1&token'],
    ['https:', 'ws:'],
  ] as const)
    t.throws(() => checkSignature(url.replace(from, to), SIGNING), SIGNED);
  t.throws(() => checkSignature(`${url}&more=1`, SIGNING), SIGNED);
  t.throws(() => checkSignature(url, { ...SIGNING, secretKey: 'other' }), SIGNED);
  t.throws(() => checkSignature(url, { ...SIGNING, algorithm: 'sha256' }), SIGNED);
  t.throws(() => checkSignature(url.slice(0, -1), SIGNING), SIGNED);
});

test('SHA-256, and parameters by other names', (t) => {
  const signing = { ...SIGNING, algorithm: 'sha256', policyQueryKeyName: 'p', signatureQueryKeyName: 's' } as const;
  const url = signUrl(URL, FIELDS, signing);
  t.regex(url, /\?p=[\w-]+&s=[\w-]{43}$/);
  accepted(t, url, undefined, signing);
  t.throws(() => checkSignature(url, SIGNING), { message: 'the URL has no policy (parameter policy)' });
});

test('a signed URL without a policy or a signature, or with two of them, is rejected', (t) => {
  const url = signUrl(URL, FIELDS, SIGNING);
  t.throws(() => checkSignature(URL, SIGNING), { message: 'the URL has no policy (parameter policy)' });
  t.throws(() => checkSignature(url.replace(/&signature.*/, ''), SIGNING), {
    message: 'the URL has no signature (parameter signature)',
  });
  t.throws(() => checkSignature(url.replace(/signature=.*/, 'signature='), SIGNING), {
    message: 'the URL has no signature (parameter signature)',
  });
  t.throws(() => checkSignature(`${url}&policy=e30`, SIGNING), {
    message: 'the URL has more than one policy (parameter policy)',
  });
  t.throws(() => checkSignature(`${url}&signature=e30`, SIGNING), {
    message: 'the URL has more than one signature (parameter signature)',
  });
  t.throws(() => checkSignature(`${URL}?${'x'.repeat(8192)}`, SIGNING), {
    message: 'the URL is longer than 8192 characters',
  });
});

test('a client that names no port may have used any that it can have known', (t) => {
  const assumed = (signed: string, asked: string) => signUrl(signed, FIELDS, SIGNING).replace(/^.*?(?=\/app\/)/, asked);
  const ports = [3333, 3334, 8443];
  for (const signed of [
    'https://h:3333',
    'https://h:3334',
    'https://h:443',
    'https://h:8443',
    'http://h:80',
    'http://h:3333',
  ])
    accepted(t, assumed(`${signed}/app/s`, 'http://h:3333'), ports);
  t.throws(() => checkSignature(assumed('http://h:8080/app/s', 'http://h:3333'), SIGNING, ports), SIGNED);
  t.throws(() => checkSignature(assumed('http://h:3334/app/s', 'http://h:3333'), SIGNING), SIGNED);
  accepted(t, assumed('wss://h:443/app/s', 'ws://h:3333'), []);
  accepted(t, assumed('rtmps://h:443/app/s', 'rtmp://h:1935'), []);
  accepted(t, assumed('srt://h:10001/app/s', 'srt://h:9999'), [10_001]);
  t.throws(() => checkSignature(assumed('srt://h:80/app/s', 'srt://h:9999'), SIGNING, []), SIGNED);
});

test('a URL that was signed in plain may come percent-encoded, except for its delimiters', (t) => {
  const signed = signUrl('http://h:80/app/뉴스 1?title=a b', FIELDS, SIGNING);
  accepted(t, signed.replace('뉴스 1', encodeURIComponent('뉴스 1')).replace('a b', 'a%20b'));
  const other = signUrl('http://h:80/app/a?b=/c', FIELDS, SIGNING);
  accepted(t, other);
  t.throws(() => checkSignature(other.replace('a?b', 'a%3fb'), SIGNING), { name: 'Denial' });
  t.throws(() => checkSignature(other.replace('=/c', '=%2Fc'), SIGNING), SIGNED);
  accepted(t, signed.replace('뉴스 1', '%EB%89%B4%EC%8A%A4%201'));
  t.throws(() => checkSignature(signed.replace('뉴스 1', '%EB%89'), SIGNING), SIGNED);
});

const encode = (json: object) => readPolicy(Buffer.from(JSON.stringify(json)).toString('base64url'));
const NOW = 1_800_000_000_000;
const USE = { address: '192.0.2.7', realAddress: '198.51.100.7', now: NOW };

test('the clock has no tolerance', (t) => {
  t.notThrows(() => checkUse(encode({ url_expire: NOW, url_activate: NOW, stream_expire: NOW + 1 }), USE));
  t.throws(() => checkUse(encode({ url_expire: NOW - 1 }), USE), {
    message: 'the URL expired at 2027-01-15T07:59:59.999Z',
  });
  t.throws(() => checkUse(encode({ url_expire: NOW, url_activate: NOW + 1 }), USE), {
    message: 'the URL is not valid before 2027-01-15T08:00:00.001Z',
  });
  t.throws(() => checkUse(encode({ url_expire: NOW, stream_expire: NOW }), USE), {
    message: 'the time of its session ended at 2027-01-15T08:00:00.000Z',
  });
});

test('addresses of the connection and of the client have their own networks', (t) => {
  const rules = (json: object) => encode({ url_expire: NOW, ...json });
  t.notThrows(() => checkUse(rules({ allow_ip: '192.0.2.0/24', real_ip: '198.51.100.7' }), USE));
  t.throws(() => checkUse(rules({ allow_ip: '198.51.100.0/24' }), USE), {
    message: 'the address of the connection is not in allow_ip',
  });
  t.throws(() => checkUse(rules({ real_ip: '192.0.2.0/24' }), USE), {
    message: 'the address of the client is not in real_ip',
  });
  t.notThrows(() => checkUse(rules({ allow_ip: '192.0.2.0/24' }), { ...USE, address: '::ffff:192.0.2.7' }));
  t.notThrows(() => checkUse(rules({ allow_ip: '::ffff:192.0.2.0/120' }), USE));
  t.notThrows(() => checkUse(rules({ allow_ip: '0.0.0.0/0' }), USE));
  t.throws(() => checkUse(rules({ allow_ip: '0.0.0.0/0' }), { ...USE, address: '2001:db8::1' }));
  t.notThrows(() => checkUse(rules({ allow_ip: '2001:db8::/32' }), { ...USE, address: '2001:db8:1::1' }));
  t.notThrows(() => checkUse(rules({ allow_ip: 'fe80::/10' }), { ...USE, address: 'fe80::1%eth0' }));
  t.throws(() => checkUse(rules({ allow_ip: '0.0.0.0/0' }), { ...USE, address: '' }));
});
