import test from 'ava';
import { isStreamName } from '../../../../src/core/names.ts';
import { playedNames, readAddress, streamName } from '../../../../src/providers/rtmp/address.ts';

type Form = readonly [tcUrl: string, app: string, key: string, host: string, appName: string, name: string | undefined];

const FORMS: readonly Form[] = [
  ['rtmp://live.example.com/app', 'app', 'stream', 'live.example.com', 'app', 'stream'],
  ['rtmp://live.example.com:1935/app/', 'app/', 'stream?token=1', 'live.example.com', 'app', 'stream'],
  ['rtmp://10.0.0.1:1935/app?vhost=x', 'app?vhost=x', 'stream', '10.0.0.1', 'app', 'stream'],
  ['rtmp://[::1]:1935/app', 'app', 'stream', '[::1]', 'app', 'stream'],
  ['rtmp://h/app/_definst_', 'app/_definst_', 'stream', 'h', 'app', 'stream'],
  ['rtmp://h/app/stream', 'app/stream', '', 'h', 'app', 'stream'],
  ['rtmp://h/app/stream', 'app/stream', '?token=1', 'h', 'app', 'stream'],
  ['rtmp://h/app', '', 'stream', 'h', 'app', 'stream'],
  ['rtmp://h/app?authmod=adobe&user=u', 'app?authmod=adobe&user=u', 'stream', 'h', 'app', 'stream'],
  ['', 'app', '/stream/', '', 'app', 'stream'],
  ['not a url', 'app', 'stream', '', 'app', 'stream'],
  ['rtmp://h/app', 'app', '', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', 'a/b', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', 'a:b', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', 'a\nb', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', 'x'.repeat(256), 'h', 'app', undefined],
  ['rtmp://h/app', 'app', 'Ünïcode key', 'h', 'app', 'Ünïcode key'],
  ['rtmp://h/app', 'app', '%C3%9Cn%C3%AFcode%20key', 'h', 'app', 'Ünïcode key'],
  ['rtmp://h/my%20app', 'my%20app', '100%', 'h', 'my app', '100%'],
  ['rtmp://h/größe', '', 'stream', 'h', 'größe', 'stream'],
  ['rtmp://h/größe/a%26b', 'größe/a%26b', '', 'h', 'größe', 'a&b'],
  ['rtmp://h/app', 'app', 'a%2Fb', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', '..', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', '%2e', 'h', 'app', undefined],
  ['rtmp://h/app', 'app', '...', 'h', 'app', '...'],
  ['rtmp://h/app', 'app', '日'.repeat(85), 'h', 'app', '日'.repeat(85)],
  ['rtmp://h/app', 'app', '日'.repeat(86), 'h', 'app', undefined],
];

for (const [tcUrl, app, key, host, appName, name] of FORMS) {
  test(`${tcUrl || 'no URL'}, app ${app || 'empty'}, key ${JSON.stringify(key).slice(0, 30)}, ${key.length} long`, (t) => {
    const address = readAddress(tcUrl, app);
    t.is(address.host, host);
    t.is(address.app, appName);
    const given = streamName(key, address);
    t.is(isStreamName(given) ? given : undefined, name);
  });
}

test('parts of an RTMP URL are cut to the length of a name', (t) => {
  const long = 'x'.repeat(60_000);
  const address = readAddress(`rtmp://${long}/${long}`, `${long}/${long}`);
  for (const part of Object.values(address)) t.is(part.length, 255);
});

const PLAYED: readonly (readonly [app: string, key: string, names: object])[] = [
  ['app', 'talk', { stream: 'talk' }],
  ['app', 'talk?gop=0', { stream: 'talk' }],
  ['app', 'talk/low', { stream: 'talk', playlist: 'low' }],
  ['app/talk', 'low?token=1', { stream: 'talk', playlist: 'low' }],
  ['app/_definst_', 'talk', { stream: 'talk' }],
  ['app/talk', '', { stream: 'talk' }],
  ['app', '%C3%9Cn', { stream: 'Ün' }],
  ['app/talk', 'low/more', { stream: 'talk/low/more' }],
  ['app', '', { stream: '' }],
];

for (const [app, key, names] of PLAYED) {
  test(`a player of application ${app} that asks for ${JSON.stringify(key)}`, (t) => {
    t.deepEqual(playedNames(key, readAddress(`rtmp://h/${app}`, app)), names);
  });
}
