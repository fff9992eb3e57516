import test from 'ava';
import { readAddress, streamName } from '../../../../src/providers/rtmp/address.ts';

type Form = readonly [
  tcUrl: string, app: string, key: string, host: string, appName: string, name: string | undefined,
];

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
];

for (const [tcUrl, app, key, host, appName, name] of FORMS) {
  test(`${tcUrl || 'no URL'}, app ${app || 'empty'}, key ${JSON.stringify(key).slice(0, 30)}`, (t) => {
    const address = readAddress(tcUrl, app);
    t.is(address.host, host);
    t.is(address.app, appName);
    t.is(streamName(key, address), name);
  });
}
