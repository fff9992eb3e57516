import test from 'ava';
import { parseEndpointUrl } from '../../../../src/webrtc/call/url.ts';

const read = (href: string, scheme: 'whep' | 'whip' = 'whep') => {
  const { url, token } = parseEndpointUrl(href, scheme) ?? {};
  return url && { href: url.href, token };
};

test('an endpoint is asked over HTTP or HTTPS, with a token before its host', (t) => {
  t.deepEqual(read('whep://example.com/app/s?direction=whep'), {
    href: 'http://example.com/app/s?direction=whep',
    token: undefined,
  });
  t.deepEqual(read('WHEPS://a%20b.c%2Fd@example.com:8443/x/whep'), undefined);
  t.deepEqual(read('wheps://ab.c%2Fd==@example.com:8443/x/whep'), {
    href: 'https://example.com:8443/x/whep',
    token: 'ab.c/d==',
  });
  t.deepEqual(read('whip://user:word@[::1]:80/x', 'whip'), { href: 'http://user:word@[::1]/x', token: undefined });
});

test('other URLs are none', (t) => {
  for (const href of [
    'http://a/b',
    'whip://a/b',
    'whep:',
    'whep://',
    'whep://a:0/',
    'whep://a/b#c',
    'whep://us#er:secret@a/b',
    'whep://a/b c',
    'constructor://a',
  ])
    t.is(read(href), undefined, href);
});
