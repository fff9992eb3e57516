import test from 'ava';
import { readPolicy } from '../../../../src/access/policy/policy.ts';

const encode = (json: unknown): string =>
  Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)).toString('base64url');

test('a policy is read with and without padding; keys of others are no fault', (t) => {
  const json = { url_expire: 1, url_activate: 0, stream_expire: 8.64e15, customer: 'a', __proto__: null };
  for (const value of [
    encode(json),
    Buffer.from(JSON.stringify(json)).toString('base64').replace(/\+/g, '-').replace(/\//g, '_'),
  ])
    t.like(readPolicy(value), { urlExpire: 1, urlActivate: 0, streamExpire: 8.64e15, allowIp: undefined });
});

test('networks are read as CIDR, and single addresses', (t) => {
  const { allowIp, realIp } = readPolicy(encode({ url_expire: 1, allow_ip: '192.0.2.0/24', real_ip: '2001:db8::1' }));
  t.true(allowIp?.check('192.0.2.77', 'ipv4'));
  t.false(allowIp?.check('192.0.3.77', 'ipv4'));
  t.true(realIp?.check('2001:db8::1', 'ipv6'));
});

const WRONG: readonly (readonly [string, string, RegExp])[] = [
  ['not base64url', 'a b', /is not base64url/],
  ['standard base64', 'ab+/', /is not base64url/],
  ['padding in the middle', 'ab==cd', /is not base64url/],
  ['not JSON', encode('{'), /is not JSON/],
  ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]).toString('base64url'), /is not JSON/],
  ['nothing', encode(''), /is not base64url/],
  ['a list', encode([1]), /is not a JSON object/],
  ['a number', encode(1), /is not a JSON object/],
  ['null', encode('null'), /is not a JSON object/],
  ['nested', encode({ url_expire: 1, more: {} }), /has nested values/],
  ['a nested list', encode({ url_expire: 1, more: [1] }), /has nested values/],
  ['huge', encode({ url_expire: 1, more: 'x'.repeat(4096) }), /is longer than 4096 characters/],
  ['without end', encode({ url_activate: 1 }), /has no url_expire/],
  ['an inherited end', encode('{"__proto__":1}'), /has no url_expire/],
  ['a text as a time', encode({ url_expire: '1' }), /url_expire that is no time/],
  ['null as a time', encode({ url_expire: null }), /url_expire that is no time/],
  ['a negative time', encode({ url_expire: -1 }), /url_expire that is no time/],
  ['a fraction', encode({ url_expire: 1.5 }), /url_expire that is no time/],
  ['a time beyond dates', encode({ url_expire: 8.64e15 + 1 }), /url_expire that is no time/],
  ['infinity', encode('{"url_expire":1e999}'), /url_expire that is no time/],
  ['a wrong start', encode({ url_expire: 1, url_activate: true }), /url_activate that is no time/],
  ['a wrong end', encode({ url_expire: 1, stream_expire: 'never' }), /stream_expire that is no time/],
  ['no network', encode({ url_expire: 1, allow_ip: '10.0.0.0/33' }), /allow_ip that is no network/],
  ['an empty network', encode({ url_expire: 1, allow_ip: '' }), /allow_ip that is no network/],
  ['a number as a network', encode({ url_expire: 1, real_ip: 10 }), /real_ip that is no network/],
];

for (const [what, value, message] of WRONG) {
  test(`a policy is malformed: ${what}`, (t) => {
    const error = t.throws(() => readPolicy(value), { name: 'Denial', message });
    t.is((error as Error & { kind: string }).kind, 'policyMalformed');
  });
}
