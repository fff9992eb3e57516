import test from 'ava';
import { appOf, pushProtocol, readDestination } from '../../../../src/tasks/push/destination.ts';

test('destinations are read', (t) => {
  t.like(readDestination('rtmp', 'rtmp://example.com/live/', 'key'), {
    scheme: 'rtmp',
    host: 'example.com',
    port: 1935,
    streamKey: 'key',
  });
  t.like(readDestination('rtmp', 'rtmps://[::1]:4000/live', 'key'), { scheme: 'rtmps', host: '::1', port: 4000 });
  t.is(readDestination('rtmp', 'rtmps://example.com/live', 'key').port, 443);
});

test('an application is the path with its query, without a slash at the end', (t) => {
  t.is(appOf(new URL('rtmp://a/live/')), 'live');
  t.is(appOf(new URL('rtmp://a/live/instance')), 'live/instance');
  t.is(appOf(new URL('rtmp://a/live?token=1')), 'live?token=1');
});

for (const [url, message] of [
  ['nonsense', 'Could not parse url'],
  ['rtmp:///live', 'Could not parse url'],
  ['rtmp://example.com', 'Could not parse url'],
  ['rtmp://example.com:99999/live', 'Could not parse url'],
  ['rtmp://example.com:0/live', 'Could not parse url'],
  ['srt://example.com:9999', 'Unsupported protocol'],
] as const)
  test(`${url} is refused for RTMP`, (t) => {
    t.throws(() => readDestination('rtmp', url, 'key'), { name: 'PushError', message });
  });

test('protocols are known in any case', (t) => {
  t.is(pushProtocol('RTMP'), 'rtmp');
  t.is(pushProtocol('constructor'), undefined);
});
