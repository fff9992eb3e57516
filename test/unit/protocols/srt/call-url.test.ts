import test from 'ava';
import { parseSrtCallUrl } from '../../../../src/protocols/srt/call-url.ts';

test('the URL of a listener names host, port, stream id and options of the socket', (t) => {
  t.is(parseSrtCallUrl('srt://0.0.0.0:7000?mode=listener').mode, 'listener');
  t.like(parseSrtCallUrl('srt://example.com'), { host: 'example.com', port: 9999, streamId: '', options: [] });
  t.like(parseSrtCallUrl('SRT://[2001:db8::1]:7000/?mode=caller&streamid=#!::r=live/x,m=request&latency=300'), {
    host: '2001:db8::1',
    port: 7000,
    streamId: '#!::r=live/x,m=request',
  });
  const { options } = parseSrtCallUrl('srt://a:1?passphrase=ten-letters&pbkeylen=32&streamid=x&transtype=live');
  t.deepEqual(
    options.map(({ name, value }) => [name, value]),
    [
      ['SRTO_PASSPHRASE', 'ten-letters'],
      ['SRTO_PBKEYLEN', 32],
    ],
  );
});

for (const [url, message] of [
  ['srt://', /not a URL|host and a port/],
  ['srt://:9999', /not a URL|host and a port/],
  ['srt://example.com:0', /host and a port/],
  ['srt://example.com:70000', /not a URL/],
  ['udp://example.com:7000', /host and a port/],
  ['srt://example.com:7000/app/stream', /SRT has no paths: the stream is named by `streamid`/],
  ['srt://example.com:7000#x', /a # begins a fragment/],
  ['srt://us#er:secret@example.com:7000', /a # begins a fragment/],
  ['srt://example.com:7000?mode=rendezvous', /the mode of the connection can only be `caller` or `listener`/],
  ['srt://example.com:7000?passphrase=secret', /^passphrase is not a text of 10 to 79 bytes/],
  ['srt://example.com:7000?colour=secret', /"SRTO_COLOUR" is not a socket option of SRT/],
  [`srt://example.com:7000?streamid=${'x'.repeat(513)}`, /streamid has more than 512 bytes/],
  [`srt://example.com:7000?latency=${'1'.repeat(5000)}`, /not a URL/],
  ['srt://example.com:7000?streamid=a\nb', /not a URL/],
] as const)
  test(`no listener is called by ${url.slice(0, 60).replaceAll('\n', ' ')}`, (t) => {
    const { message: said } = t.throws(() => parseSrtCallUrl(url), { name: 'SrtError', message }, url);
    t.notRegex(said, /secret/);
  });
