import test from 'ava';
import { parsePlayUrl } from '../../../../src/protocols/rtmp/play-url.ts';

test('the last segment is the stream, with the query, what is before it the application', (t) => {
  t.deepEqual(parsePlayUrl('rtmp://a.example/live/one?token=x%20y'), {
    secure: false,
    host: 'a.example',
    port: 1935,
    authority: 'a.example',
    app: 'live',
    name: 'one?token=x%20y',
    credentials: undefined,
  });
  t.deepEqual(parsePlayUrl('RTMPS://us%40er:p%3Aw@[2001:db8::1]:1936/a%20b/_definst_/s%C3%A9'), {
    secure: true,
    host: '2001:db8::1',
    port: 1936,
    authority: '[2001:db8::1]:1936',
    app: 'a b/_definst_',
    name: 'sé',
    credentials: { user: 'us@er', password: 'p:w' },
  });
  t.is(parsePlayUrl('rtmps://a/b/c')?.port, 443);
});

test('anything else is none', (t) => {
  const others = ['', 'rtmp://', 'rtmp://a', 'rtmp://a/', 'rtmp://a/app', 'rtmp://a/app/', 'rtmp:///app/s'];
  const odd = [
    'http://a/b/c',
    'rtmp://a:0/b/c',
    'rtmp://a:99999/b/c',
    'rtmp://a/b/c#d',
    'rtmp://u:p#w@a/b/c',
    'rtmp://a/b c/d',
  ];
  for (const url of [...others, ...odd, `rtmp://a/b/${'c'.repeat(5000)}`]) t.is(parsePlayUrl(url), undefined, url);
});
