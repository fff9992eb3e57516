import test from 'ava';
import { targetOf } from '../../../../src/access/webhooks/new-url.ts';
import { playRequest, publishRequest } from '../../../support/access/access.ts';

const RTMP = publishRequest();
const SRT = publishRequest({ protocol: 'srt', hostName: 'default', url: 'srt://default:9999/app/stream' });
const HLS = playRequest({ protocol: 'llhls', playlist: 'master' });
const FLV = playRequest({ protocol: 'flv' });
const PLAYBACK = playRequest({ protocol: 'playback' });
const THUMBNAIL = playRequest({ protocol: 'thumbnail' });

test('a client is sent to the names of a URL', (t) => {
  t.deepEqual(targetOf('rtmp://live.example:1935/second/other?k=v', RTMP), { app: 'second', stream: 'other' });
  t.deepEqual(targetOf('rtmps://Other.example/app/a%20b', RTMP), {
    hostName: 'Other.example',
    app: 'app',
    stream: 'a b',
  });
  t.deepEqual(targetOf('srt://default:9999/app/new', SRT), { app: 'app', stream: 'new' }, 'the name of a virtual host');
  t.deepEqual(targetOf('https://[::1]:3334/app/new/abr.m3u8', HLS), {
    hostName: '::1',
    app: 'app',
    stream: 'new',
    playlist: 'abr',
  });
  t.deepEqual(targetOf('http://live.example/app/new', HLS), { app: 'app', stream: 'new' });
  t.deepEqual(targetOf('http://live.example/app/new/thumb.png', THUMBNAIL), { app: 'app', stream: 'new' });
  t.deepEqual(targetOf('http://live.example/app/new/recorded.m3u8', PLAYBACK), { app: 'app', stream: 'new' });
  t.deepEqual(targetOf('http://live.example/app/new.flv', FLV), { app: 'app', stream: 'new' });
  t.deepEqual(targetOf('http://live.example/app/a.flv/low.ts', FLV), { app: 'app', stream: 'a.flv', playlist: 'low' });
  t.deepEqual(targetOf('ws://live.example/app/new/low', playRequest()), { app: 'app', stream: 'new', playlist: 'low' });
});

for (const [url, asked] of [
  ['http://live.example/app/stream', RTMP],
  ['srt://live.example:9999/app/stream', RTMP],
  ['rtmp://live.example/app/stream', SRT],
  ['rtmp://live.example/app/stream', HLS],
  ['file:///app/stream', HLS],
  ['rtmp://live.example/app', RTMP],
  ['rtmp://live.example/app/', RTMP],
  ['rtmp://live.example//stream', RTMP],
  ['rtmp:///app/stream', RTMP],
  ['rtmp://live.example/app/stream/file', RTMP],
  ['http://live.example/app/stream/a/b', HLS],
  ['http://live.example/app/%zz', HLS],
  ['/app/stream', HLS],
  ['app', RTMP],
] as const) {
  test(`${asked.protocol} cannot be sent to ${url}`, (t) => t.is(targetOf(url, asked), undefined));
}
