import test from 'ava';
import { dumpPath } from '../../../../../src/publishers/hls/dump/paths.ts';
import { PathError } from '../../../../../src/lib/files/paths.ts';

const VALUES = { vhost: 'default', app: 'app', stream: 'talk', start: new Date(2026, 2, 4, 5, 6, 7) };

test('macros are replaced, others stay', (t) => {
  const path = (template: string) => dumpPath(template, VALUES);
  t.is(path('/d/${VHostName}/${AppName}_${StreamName}'), '/d/default/app_talk');
  t.is(path('/${YYYY}-${MM}-${DD}_${hh}.${mm}.${ss}/'), '/2026-03-04_05.06.07');
  t.regex(path('/${z}'), /^\/[+-]\d{4}$/);
  t.regex(path('/${S}'), /^\/[^/]+$/);
  t.regex(path('/${ISO8601}'), /^\/2026-03-04T05:06:07[+-]\d\d:\d\d$/);
  t.is(new Date(path('/${ISO8601}').slice(1)).getTime(), VALUES.start.getTime());
  t.is(path('/a//b/./c/${Other}'), '/a/b/c/${Other}');
});

test('names lead nowhere else, and paths that cannot be are refused', (t) => {
  t.is(dumpPath('/d/${StreamName}/x', { ...VALUES, stream: '/etc/../a' }), '/d/_etc_.._a/x');
  const impossible = [
    'd',
    './d',
    '${StreamName}/d',
    '/',
    '/a/../b',
    '/..',
    '/a\0b',
    `/${'ä'.repeat(128)}`,
    `/${'a/'.repeat(2000)}b`,
  ];
  for (const template of impossible) t.throws(() => dumpPath(template, VALUES), { instanceOf: PathError }, template);
  for (const stream of ['..', '\0', 'x'.repeat(256)])
    t.throws(() => dumpPath('/d/${StreamName}', { ...VALUES, stream }), { instanceOf: PathError }, stream);
});
