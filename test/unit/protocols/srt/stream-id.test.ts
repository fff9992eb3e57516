import test from 'ava';
import { readStreamId } from '../../../../src/protocols/srt/stream-id.ts';
import { seeded } from '../../codecs/vectors.ts';

const read = (text: string, mapped?: string) => {
  const found = readStreamId(text, mapped);
  if (found === undefined) return undefined;
  const { query, url: _, ...rest } = found;
  return query.size === 0 ? rest : { ...rest, query: query.toString() };
};
const PLAIN = { host: 'default', app: 'app', stream: 'talk' };

test('host, application and stream, with a playlist and a query where there are any', (t) => {
  t.deepEqual(read('default/app/talk'), PLAIN);
  t.deepEqual(read('/default/app/talk'), PLAIN);
  t.deepEqual(read('default/app/talk/low'), { ...PLAIN, playlist: 'low' });
  t.deepEqual(read('default/app/talk?session=a&x=1?2'), { ...PLAIN, query: 'session=a&x=1%3F2' });
  t.deepEqual(read('live.example.com/app/talk'), { ...PLAIN, host: 'live.example.com' });
});

test('percent-encoded as a whole', (t) => {
  t.deepEqual(read('default%2Fapp%2Ftalk%3Fsession%3Da'), { ...PLAIN, query: 'session=a' });
  t.deepEqual(read('default/app/%C3%BCber'), { ...PLAIN, stream: 'über' });
  t.deepEqual(read('default/app/50%'), { ...PLAIN, stream: '50%' }, 'as it is, where it is not encoded');
});

test('an SRT stream id is read after srt://, with a port or without', (t) => {
  t.deepEqual(read('srt://default:9999/app/talk'), PLAIN);
  t.deepEqual(read('srt://default/app/talk/low?a=b'), { ...PLAIN, playlist: 'low', query: 'a=b' });
  t.deepEqual(read('srt%3A%2F%2F192.0.2.1%3A9999%2Fapp%2Ftalk'), { ...PLAIN, host: '192.0.2.1' });
  t.deepEqual(read('srt://[2001:db8::1]:9999/app/talk'), { ...PLAIN, host: '[2001:db8::1]' });
});

test('keys and values: u, or r with h, and m', (t) => {
  t.deepEqual(read('#!::u=default/app/talk'), PLAIN);
  t.deepEqual(read('#!::u=default%2Fapp%2Ftalk,m=publish'), { ...PLAIN, mode: 'publish' });
  t.deepEqual(read('#!::m=request,r=default/app/talk/low'), { ...PLAIN, playlist: 'low', mode: 'request' });
  t.deepEqual(read('#!::u=admin,h=default,r=/app/talk'), PLAIN, 'a user is no path');
  t.deepEqual(read('#!::r=app/talk,h=default,t=stream,s=1'), PLAIN);
  t.deepEqual(read('%23!%3A%3Au%3Ddefault%2Fapp%2Ftalk'), PLAIN);
});

test('an empty one is what its port stands for', (t) => {
  t.deepEqual(read('', 'default/app/talk'), PLAIN);
  t.deepEqual(read(' ', 'default/app/talk?a=b'), { ...PLAIN, query: 'a=b' });
  t.is(read(''), undefined);
  t.deepEqual(read('default/app/other', 'default/app/talk'), { ...PLAIN, stream: 'other' });
});

test('an SRT stream id is read as a whole URL, as it is signed', (t) => {
  const url = (text: string, mapped?: string) => readStreamId(text, mapped)?.url;
  t.is(url('default/app/talk?a=b'), 'srt://default/app/talk?a=b');
  t.is(url('/default/app/talk/low'), 'srt://default/app/talk/low');
  t.is(url('default%2Fapp%2Ftalk%3Fsession%3Da'), 'srt://default/app/talk?session=a');
  t.is(url('srt://192.0.2.1:9999/app/talk?policy=x&signature=y'), 'srt://192.0.2.1:9999/app/talk?policy=x&signature=y');
  t.is(url('#!::u=default/app/talk'), 'srt://default/app/talk');
  t.is(url('#!::m=request,r=app/talk,h=default'), 'srt://default/app/talk');
  t.is(url('', 'default/app/talk'), 'srt://default/app/talk');
});

test('text of any other form is no SRT stream id', (t) => {
  for (const text of [
    'talk',
    'app/talk',
    'default//talk',
    'default/app/',
    'a/b/c/d/e',
    '?default/app/talk',
    'http://default/app/talk/x/y',
    'srt://default',
    'srt://:9999/app/talk',
    '#!::',
    '#!::u=talk',
    '#!::r=default/app/talk,m=bidirectional',
    '#!:{u=default/app/talk}',
    `default/app/${'x'.repeat(256)}`,
  ])
    t.is(read(text), undefined, text);
});

test('random text throws nothing', (t) => {
  const pieces = [
    '#!::',
    'u=',
    'r=',
    'm=',
    ',',
    '/',
    '%',
    '%2F',
    '?',
    '=',
    'srt://',
    ':',
    '[',
    'a',
    'default',
    '\0',
    'ü',
  ];
  const chance = seeded(1);
  for (let i = 0; i < 20_000; i++) {
    const text = Array.from(
      { length: Math.floor(chance() * 12) },
      () => pieces[Math.floor(chance() * pieces.length)],
    ).join('');
    t.notThrows(() => readStreamId(text), text);
  }
});
