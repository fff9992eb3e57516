import test from 'ava';
import { Cookies } from '../../../../src/providers/hls-pull/cookies.ts';

const PLAIN = new URL('http://cdn.example/live.m3u8');
const SECURE = new URL('https://cdn.example/live.m3u8');

test('cookies go back to the host that has set them', (t) => {
  const cookies = new Cookies();
  t.is(cookies.header(PLAIN), undefined);
  cookies.take(SECURE, ['session=a=b; Path=/; HttpOnly', 'node=3; Secure; SameSite=None', 'none', '=x', 'bad=\u0001']);
  t.is(cookies.header(SECURE), 'session=a=b; node=3');
  t.is(cookies.header(PLAIN), 'session=a=b');
  t.is(cookies.header(new URL('https://other.example/')), undefined);
  cookies.take(SECURE, ['node=4', 'session=; Max-Age=0']);
  t.is(cookies.header(SECURE), 'node=4');
});

test('a server cannot make the memory grow', (t) => {
  const cookies = new Cookies();
  for (let n = 0; n < 1000; n++) cookies.take(PLAIN, [`c${n}=${'x'.repeat(100)}`]);
  cookies.take(PLAIN, [`large=${'x'.repeat(100_000)}`]);
  t.is(cookies.header(PLAIN)?.split('; ').length, 50);
});
