import test from 'ava';
import { readSrtQuery } from '../../../src/protocols/srt/query.ts';
import { readUdpOptions } from '../../../src/pushing/udp-options.ts';
import {
  appOf,
  credentialsOf,
  movedDestination,
  pushProtocol,
  readDestination,
  whipEndpoint,
} from '../../../src/pushing/destination.ts';

test('destinations of pushes are read', (t) => {
  t.like(readDestination('rtmp', 'rtmp://example.com/live/', 'key'), {
    scheme: 'rtmp',
    host: 'example.com',
    port: 1935,
    streamKey: 'key',
  });
  t.like(readDestination('rtmp', 'rtmps://[::1]:4000/live', 'key'), { scheme: 'rtmps', host: '::1', port: 4000 });
  t.is(readDestination('rtmp', 'rtmps://example.com/live', 'key').port, 443);
});

for (const [tcUrl, url] of [
  [undefined, 'rtmp://user:pass@example.com:4000/live'],
  ['rtmp://foo.example.com:1935/other', 'rtmp://foo.example.com:1935/other'],
  ['rtmps://foo.example.com/other', 'rtmps://foo.example.com/other'],
  ['//192.0.2.0/other', 'rtmp://192.0.2.0/other'],
  ['/other', 'rtmp://user:pass@example.com:4000/other'],
  ['other', 'rtmp://user:pass@example.com:4000/other'],
] as const)
  test(`a server that wants to be connected to at ${tcUrl} means ${url}`, (t) => {
    const moved = movedDestination(readDestination('rtmp', 'rtmp://user:pass@example.com:4000/live', 'key'), tcUrl);
    t.is(moved.url.href, url);
    t.is(moved.streamKey, 'key');
  });

test('a server does not get a push to move to what is no RTMP server, nor to one without TLS', (t) => {
  const plain = readDestination('rtmp', 'rtmp://example.com/live', 'key');
  for (const tcUrl of ['http://example.com/live', 'rtmp://', '//[', '/'])
    t.throws(() => movedDestination(plain, tcUrl), { name: 'PushError' }, tcUrl);
  const secure = readDestination('rtmp', 'rtmps://example.com/live', 'key');
  t.is(movedDestination(secure, '//other.example.com/live').scheme, 'rtmps');
  t.throws(() => movedDestination(secure, 'rtmp://example.com/live'), { message: 'the new address has no TLS' });
});

test('an application is the path with its query, without a slash at the end', (t) => {
  t.is(appOf(new URL('rtmp://a/live/')), 'live');
  t.is(appOf(new URL('rtmp://a/live/instance')), 'live/instance');
  t.is(appOf(new URL('rtmp://a/live?token=1')), 'live?token=1');
});

test('a # in the query of an SRT URL is part of it, wherever the stream id stands', (t) => {
  for (const query of [
    'streamid=#!::r=live/x,m=publish&latency=300',
    'latency=300&streamid=#!::r=live/x,m=publish',
    'latency=300&streamid=%23!::r=live/x,m=publish',
  ]) {
    const { url } = readDestination('srt', `srt://127.0.0.1:37000?${query}`, '');
    const { streamId, options } = readSrtQuery(url);
    t.is(streamId, '#!::r=live/x,m=publish');
    t.is(options.length, 1, query);
  }
});

test('any other # in a URL is named: what follows it would be lost', (t) => {
  const message = 'Could not parse url: a # begins a fragment, which is not a part of the address: write %23 instead';
  for (const [protocol, url] of [
    ['srt', 'srt://example.com:9999#?latency=300'],
    ['rtmp', 'rtmp://example.com/live#one'],
    ['rtmp', 'rtmp://user:pa#ss@example.com/live'],
    ['mpegts', 'udp://example.com:4000#ttl=2'],
  ] as const)
    t.throws(() => readDestination(protocol, url, 'key'), { name: 'PushError', message }, url);
});

for (const [url, message] of [
  ['nonsense', 'Could not parse url'],
  ['rtmp:///live', 'Could not parse url'],
  ['rtmp://example.com', 'Could not parse url'],
  ['rtmp://example.com:99999/live', 'Could not parse url'],
  ['rtmp://example.com:0/live', 'Could not parse url'],
  ['rtmp://user:%zz@example.com/live', 'Could not parse url'],
  ['srt://example.com:9999', 'Unsupported protocol'],
] as const)
  test(`${url} is refused for RTMP`, (t) => {
    t.throws(() => readDestination('rtmp', url, 'key'), { name: 'PushError', message });
  });

test('an endpoint of WHIP has its token as stream key, or before its host', (t) => {
  t.like(readDestination('whip', 'whips://example.com/app/s', 'key'), { scheme: 'whips', port: 443, streamKey: 'key' });
  t.like(readDestination('whip', 'whip://example.com:3333/app/s', ''), { scheme: 'whip', port: 3333 });
  t.is(whipEndpoint('whip://one@example.com/s', '').token, 'one');
  t.is(whipEndpoint('whip://one@example.com/s', 'other').token, 'other');
  t.is(whipEndpoint('whip://one@example.com/s', 'other').url.href, 'http://example.com/s');
  const message = /^streamKey is no bearer token/;
  t.throws(() => readDestination('whip', 'whip://example.com/s', 'two words'), { name: 'PushError', message });
});

test('protocols are known in any case', (t) => {
  t.is(pushProtocol('RTMP'), 'rtmp');
  t.is(pushProtocol('constructor'), undefined);
});

for (const [protocol, url, message] of [
  ['mpegts', 'tcp://example.com:4000?listen', 'Unsupported tcp listen'],
  ['mpegts', 'udp://example.com:4000?ttl=256', 'Could not parse url: ttl is not a number from 1 to 255'],
  ['mpegts', 'udp://example.com:4000?pkt_size=100', /^Could not parse url: pkt_size is not a number from 188/],
  ['mpegts', 'udp://example.com:4000?localaddr=eth0', 'Could not parse url: localaddr is not an IP address'],
  ['mpegts', 'udp://example.com:4000?colour=red', 'Could not parse url: colour is not an option of UDP'],
  ['mpegts', 'srt://example.com:4000', 'Unsupported protocol'],
  ['srt', 'srt://example.com?mode=listener', 'Unsupported connection mode'],
  ['rtsp', 'rtmp://example.com/app', 'Unsupported protocol'],
  ['rtsp', 'rtsps://example.com/app', 'Unsupported protocol'],
  ['rtsp', 'rtsp://example.com/app?transport=UDP', 'Unsupported transport: RTSP is pushed over TCP'],
  ['whip', 'http://example.com/app', 'Unsupported protocol'],
  ['whip', 'wheps://example.com/app', 'Unsupported protocol'],
  ['whip', 'whip://example.com:0/app', 'Could not parse url'],
  ['whip', 'whip://example.com/a b', 'Could not parse url'],
  ['srt', 'srt://example.com?mode=rendezvous', 'Unsupported connection mode'],
  ['srt', 'srt://example.com?passphrase=short', /^Could not parse url: passphrase is not a text of 10 to 79 bytes/],
  ['srt', 'srt://example.com?colour=red', /^Could not parse url: "SRTO_COLOUR" is not a socket option of SRT$/],
] as const)
  test(`${url} is refused for ${protocol}`, (t) => {
    const error = t.throws(() => readDestination(protocol, url, ''), { name: 'PushError', message });
    t.false(error?.message.includes('short'));
  });

test('the query of an SRT URL has the options of libsrt', (t) => {
  const url = new URL(
    'srt://a:1?mode=caller&streamid=%23!::r=x&latency=300&maxbw=-1&pbkeylen=32&passphrase=ten-letters&tlpktdrop=false&timeout=900',
  );
  const { streamId, options } = readSrtQuery(url);
  t.is(streamId, '#!::r=x');
  t.deepEqual(
    options.map(({ name, value }) => [name, value]),
    [
      ['SRTO_LATENCY', 300],
      ['SRTO_MAXBW', -1n],
      ['SRTO_PBKEYLEN', 32],
      ['SRTO_PASSPHRASE', 'ten-letters'],
      ['SRTO_TLPKTDROP', false],
      ['SRTO_CONNTIMEO', 900],
    ],
  );
});

test('the query of a UDP URL has the options of ffmpeg', (t) => {
  const read = (query: string) => readUdpOptions(new URL(`udp://239.1.1.1:4000${query}`));
  t.deepEqual(read(''), { datagramBytes: 1316, ttl: undefined, localAddress: undefined });
  t.deepEqual(read('?pkt_size=1472&ttl=16&localaddr=192.0.2.1&fifo_size=1000'), {
    datagramBytes: 1316,
    ttl: 16,
    localAddress: '192.0.2.1',
  });
  t.is(read('?pkt_size=188').datagramBytes, 188);
});

test('the user and the password of an RTMP URL are those that it escapes', (t) => {
  t.deepEqual(credentialsOf(new URL('rtmp://a%40b:p%3Aw@example.com/live')), { user: 'a@b', password: 'p:w' });
  t.is(credentialsOf(new URL('rtmp://example.com/live')), undefined);
});
