import test from 'ava';
import { seeded } from '../../codecs/vectors.ts';
import { parsePlaylist, type MediaPlaylist } from '../../../../src/providers/hls-pull/playlist.ts';

const BASE = new URL('https://cdn.example/live/list.m3u8?token=1');
const media = (...lines: string[]): MediaPlaylist => {
  const playlist = parsePlaylist(['#EXTM3U', '#EXT-X-TARGETDURATION:6', ...lines].join('\n'), BASE);
  if (playlist.kind !== 'media') throw new Error('a master playlist');
  return playlist;
};

test('segments have numbers, durations and absolute URLs', (t) => {
  const { target, segments, isEnded } = media(
    '#EXT-X-MEDIA-SEQUENCE:7',
    '#EXTINF:5.96,title, with commas',
    'a.ts?x=1',
    '#EXT-X-PROGRAM-DATE-TIME:2026-11-30T00:00:00Z',
    '#EXTINF:6',
    '/b.ts',
    '#EXT-X-DISCONTINUITY',
    '#EXTINF:6,',
    'http://other.example/c.ts',
    '#EXT-X-GAP',
    '#EXTINF:6,',
    'd.ts',
  );
  t.is(target, 6);
  t.false(isEnded);
  t.deepEqual(
    segments.map(({ sequence, duration, uri, isGap }) => [sequence, duration, uri.href, isGap]),
    [
      [7, 5.96, 'https://cdn.example/live/a.ts?x=1', false],
      [8, 6, 'https://cdn.example/b.ts', false],
      [9, 6, 'http://other.example/c.ts', false],
      [10, 6, 'https://cdn.example/live/d.ts', true],
    ],
  );
  t.true(media('#EXTINF:6,', 'a.ts', '#EXT-X-ENDLIST').isEnded);
});

test('discontinuities are counted, and dates hold for what follows', (t) => {
  const { segments } = media(
    '#EXT-X-DISCONTINUITY-SEQUENCE:4',
    '#EXTINF:6,',
    'a.ts',
    '#EXT-X-DISCONTINUITY',
    '#EXT-X-PROGRAM-DATE-TIME:2026-11-30T00:00:00Z',
    '#EXTINF:5.5,',
    'b.ts',
    '#EXTINF:6,',
    'c.ts',
    '#EXT-X-PROGRAM-DATE-TIME:soon',
    '#EXTINF:6,',
    'd.ts',
  );
  const at = Date.UTC(2026, 10, 30);
  t.deepEqual(
    segments.map(({ discontinuity, date }) => [discontinuity, date]),
    [
      [4, undefined],
      [5, at],
      [5, at + 5500],
      [5, undefined],
    ],
  );
});

test('keys, initializations and byte ranges hold for what follows', (t) => {
  const { segments } = media(
    '#EXT-X-MAP:URI="init.mp4",BYTERANGE="800@0"',
    '#EXT-X-KEY:METHOD=AES-128,URI="key?a=1,b=2",IV=0x1F',
    '#EXTINF:6,',
    '#EXT-X-BYTERANGE:1000@500',
    'all.mp4',
    '#EXT-X-BYTERANGE:200',
    '#EXTINF:6,',
    'all.mp4',
    '#EXT-X-KEY:METHOD=NONE',
    '#EXTINF:6,',
    'c.mp4',
  );
  t.like(segments[0], { range: { offset: 500, length: 1000 }, map: { range: { offset: 0, length: 800 } } });
  t.is(segments[0]?.key?.uri.href, 'https://cdn.example/live/key?a=1,b=2');
  t.is(segments[0]?.key?.iv?.toString('hex'), '0000000000000000000000000000001f');
  t.deepEqual(segments[1]?.range, { offset: 1500, length: 200 });
  t.is(segments[1]?.key, segments[0]?.key);
  t.is(segments[2]?.key, undefined);
  t.is(segments[2]?.range, undefined);
});

test('a master playlist has variants, with the default audio of their group', (t) => {
  const playlist = parsePlaylist(
    [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="de",URI="de.m3u8"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="en, UK",DEFAULT=YES,URI="en.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=800000,CODECS="avc1.4d401f,mp4a.40.2",AUDIO="aac"',
      'low.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=2500000',
      '# a comment',
      'high.m3u8',
    ].join('\r\n'),
    BASE,
  );
  t.is(playlist.kind, 'master');
  t.deepEqual(
    playlist.kind === 'master' &&
      playlist.variants.map(({ uri, bandwidth, audio }) => [uri.pathname, bandwidth, audio?.pathname]),
    [
      ['/live/low.m3u8', 800_000, '/live/en.m3u8'],
      ['/live/high.m3u8', 2_500_000, undefined],
    ],
  );
});

test('of the audio of a variant the default rendition is taken, else the first', (t) => {
  const rendition = (group: string, more: string): string =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="a"${more}`;
  const variant = (group: string, uri: string): string => `#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="${group}"\n${uri}`;
  const playlist = parsePlaylist(
    [
      '#EXTM3U',
      rendition('first', ',URI="a1.m3u8"'),
      rendition('first', ',URI="a2.m3u8",AUTOSELECT=YES'),
      rendition('two', ',DEFAULT=YES,URI="b1.m3u8"'),
      rendition('two', ',DEFAULT=YES,URI="b2.m3u8"'),
      rendition('inside', ',URI="c.m3u8"'),
      rendition('inside', ',DEFAULT=YES'),
      variant('first', '1.m3u8'),
      variant('two', '2.m3u8'),
      variant('inside', '3.m3u8'),
      variant('none', '4.m3u8'),
      variant('first', 'a1.m3u8'),
    ].join('\n'),
    BASE,
  );
  t.deepEqual(playlist.kind === 'master' && playlist.variants.map(({ audio }) => audio?.pathname), [
    '/live/a1.m3u8',
    '/live/b1.m3u8',
    undefined,
    undefined,
    undefined,
  ]);
});

test('variables are replaced in URLs and in the values of attributes', (t) => {
  const master = parsePlaylist(
    [
      '#EXTM3U',
      '#EXT-X-DEFINE:NAME="host",VALUE="http://other.example"',
      '#EXT-X-DEFINE:QUERYPARAM="token"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{$host}",NAME="a",URI="{$host}/a.m3u8?{$token}"',
      '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="{$host}"',
      '{$host}/{$token}.m3u8',
    ].join('\n'),
    new URL(`${BASE.href}%2F2&token=3`),
  );
  if (master.kind !== 'master') return t.fail();
  t.is(master.variants[0]?.uri.href, 'http://other.example/1/2.m3u8');
  t.is(master.variants[0]?.audio?.href, 'http://other.example/a.m3u8?1/2');
  const lines = [
    '#EXTM3U',
    '#EXT-X-TARGETDURATION:6',
    '#EXT-X-DEFINE:IMPORT="host"',
    '#EXT-X-DEFINE:NAME="iv",VALUE="2"',
  ];
  const key = '#EXT-X-KEY:METHOD=AES-128,URI="{$host}/k",IV=0x{$iv}';
  const read = parsePlaylist([...lines, key, '#EXTINF:6,', '{$host}/{$iv}.ts'].join('\n'), BASE, master.variables);
  if (read.kind !== 'media') return t.fail();
  t.is(read.segments[0]?.uri.href, 'http://other.example/2.ts');
  t.is(read.segments[0]?.key?.uri.href, 'http://other.example/k');
  t.is(read.segments[0]?.key?.iv?.[15], 2);
});

for (const [what, lines, message] of [
  ['a page', ['<!doctype html>'], /no playlist of HLS/],
  ['one without a target duration', ['#EXTM3U', '#EXTINF:6,', 'a.ts'], /no EXT-X-TARGETDURATION/],
  ['an endless duration', ['#EXTM3U', '#EXT-X-TARGETDURATION:99999'], /no number of at most 600 seconds/],
  ['a malformed number', ['#EXTM3U', '#EXT-X-TARGETDURATION:6', '#EXT-X-MEDIA-SEQUENCE:-1'], /is no number/],
  [
    'a file',
    ['#EXTM3U', '#EXT-X-TARGETDURATION:6', '#EXTINF:6,', 'file:///etc/passwd'],
    /something else than a URL of HTTP/,
  ],
  ['SAMPLE-AES', ['#EXTM3U', '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"'], /encrypted by SAMPLE-AES/],
  ['a key of a DRM system', ['#EXTM3U', '#EXT-X-KEY:METHOD=AES-128,URI="k",KEYFORMAT="com.example"'], /AES-128/],
  ['a malformed range', ['#EXTM3U', '#EXTINF:6,', '#EXT-X-BYTERANGE:x@1', 'a.ts'], /byte range/],
  ['a variable without a value', ['#EXTM3U', '#EXT-X-DEFINE:NAME="a"'], /EXT-X-DEFINE has no value for a/],
  ['a query without the variable', ['#EXTM3U', '#EXT-X-DEFINE:QUERYPARAM="b"'], /no value for b/],
  ['an import without a master playlist', ['#EXTM3U', '#EXT-X-DEFINE:IMPORT="token"'], /no value for token/],
  ['a variable without a name', ['#EXTM3U', '#EXT-X-DEFINE:VALUE="1"'], /no name of a variable/],
  [
    'a variable that is defined twice',
    ['#EXTM3U', '#EXT-X-DEFINE:NAME="a",VALUE="1"', '#EXT-X-DEFINE:NAME="a",VALUE="1"'],
    /defines its variable a twice/,
  ],
  [
    'a variable that is not defined',
    ['#EXTM3U', '#EXT-X-TARGETDURATION:6', '#EXTINF:6,', '{$a}.ts'],
    /does not define its variable a/,
  ],
  [
    'a playlist that grows by its variables',
    [
      '#EXTM3U',
      '#EXT-X-TARGETDURATION:6',
      `#EXT-X-DEFINE:NAME="a",VALUE="${'x'.repeat(8000)}"`,
      '#EXTINF:6,',
      '{$a}'.repeat(100_000),
    ],
    /too long with its variables/,
  ],
  ['a variant without a URL', ['#EXTM3U', '#EXT-X-STREAM-INF:BANDWIDTH=1'], /a variant of the playlist has no URL/],
] as const)
  test(`${what} is rejected`, (t) => {
    t.throws(() => parsePlaylist(lines.join('\n'), BASE), { name: 'PullError', message });
  });

test('a playlist that is cut anywhere is read or rejected', (t) => {
  const text = [
    '#EXTM3U',
    '#EXT-X-TARGETDURATION:6',
    '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x00',
    '#EXTINF:6,',
    'a.ts',
  ];
  const whole = text.join('\n');
  for (let end = 0; end <= whole.length; end++)
    try {
      t.is(parsePlaylist(whole.slice(0, end), BASE).kind, 'media');
    } catch (error) {
      t.is((error as Error).name, 'PullError');
    }
});

test('damaged playlists are read or rejected', (t) => {
  const random = seeded(5);
  const whole = Buffer.from(
    [
      '#EXTM3U',
      '#EXT-X-TARGETDURATION:6',
      '#EXT-X-MEDIA-SEQUENCE:9',
      '#EXT-X-MAP:URI="i.mp4",BYTERANGE="8@0"',
      '#EXT-X-DEFINE:NAME="v",VALUE="w"',
      '#EXT-X-KEY:METHOD=AES-128,URI="k{$v}",IV=0x00',
      '#EXT-X-DISCONTINUITY-SEQUENCE:3',
      '#EXT-X-BYTERANGE:10@2',
      '#EXTINF:6.5,',
      'a.ts',
      '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.4d401f"',
      'b.m3u8',
    ].join('\n'),
  );
  let [read, refused] = [0, 0];
  for (const text of [whole, whole.subarray(0, whole.indexOf('#EXT-X-STREAM-INF'))])
    for (let i = 0; i < 2000; i++) {
      const bytes = Buffer.from(text);
      for (let n = 0; n < 3; n++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      try {
        parsePlaylist(bytes.toString(), BASE);
        read++;
      } catch (error) {
        refused++;
        t.is((error as Error).name, 'PullError', String(error));
      }
    }
  t.true(read > 0 && refused > 0, `${read} read, ${refused} refused`);
});
