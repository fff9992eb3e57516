import test from 'ava';
import { openApi } from '../support/api/api.ts';

const PATH = '/v1/vhosts/default/apps/app/streams';
const RTSP = 'rtsp://camera.example.com/live';

const CASES: readonly (readonly [what: string, body: unknown, status: number, text: string | RegExp])[] = [
  ['no object', [], 400, 'Request body must be an object'],
  ['nothing', {}, 400, 'Stream name or urls is required'],
  ['no urls', { name: 's' }, 400, 'Stream name or urls is required'],
  ['no name', { urls: [RTSP] }, 400, 'Stream name or urls is required'],
  ['an odd name', { name: 'a/b', urls: [RTSP] }, 400, /^name contains one of/],
  ['a name that is no string', { name: 5, urls: [RTSP] }, 400, 'name is not a string'],
  ['an empty list', { name: 's', urls: [] }, 400, 'Urls must be at least one'],
  ['urls that are no list', { name: 's', urls: RTSP }, 400, 'Urls must be at least one'],
  ['a number as url', { name: 's', urls: [1] }, 400, 'Url must be a string'],
  ['a broken url', { name: 's', urls: ['camera'] }, 400, 'Invalid URL: camera'],
  ['a url without a host', { name: 's', urls: ['rtsp:///x'] }, 400, 'Invalid URL: rtsp:///x'],
  ...['rtsp://user:pa#ss@cam/live', 'rtsp://user:12#ss@cam/live', 'ovt://u#x@cam/app/live'].map(
    (url) =>
      [
        `a # in ${url}`,
        { name: 's', urls: [url] },
        400,
        `Invalid URL: ${url.split(':')[0]}://... (a # begins a fragment, which is not a part of the address: write %23 instead)`,
      ] as const,
  ),
  [
    'two schemes',
    { name: 's', urls: [RTSP, 'ovt://a/b/c'] },
    400,
    'Only urls with the same scheme can be sent as a group.',
  ],
  [
    'properties of a wrong type',
    { name: 's', urls: [RTSP], properties: { persistent: 'yes' } },
    400,
    'persistent must be a boolean',
  ],
  [
    'a negative time',
    { name: 's', urls: [RTSP], properties: { noInputFailoverTimeoutMs: -1 } },
    400,
    /^noInputFailoverTimeoutMs must/,
  ],
  ['properties that are a list', { name: 's', urls: [RTSP], properties: [] }, 400, 'properties must be an object'],
  ['a name that is live', { name: 'live', urls: [RTSP] }, 409, 'Stream already exists'],
  [
    'a scheme that nothing pulls',
    { name: 's', urls: ['ftp://a/b'] },
    502,
    'Could not pull the stream : http://localhost:80/v1/vhosts/default/apps/app/streams: ' +
      'streams are pulled over ovt, rtsp, rtspc, rtmp, rtmps, srt, http, https, whep, wheps, udp, not over "ftp"',
  ],
];

for (const [what, body, status, text] of CASES) {
  test(`a pull with ${what} is answered ${status}`, async (t) => {
    const { call, registry } = await openApi(t);
    const input = registry
      .vhost('default')
      .application('app')
      .publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks([
      {
        id: 0,
        name: 'Video',
        type: 'video',
        codec: 'VP8',
        timebase: { num: 1, den: 90_000 },
        bypass: false,
        width: 1,
        height: 1,
        bitrate: 0,
        framerate: 0,
        keyFrameInterval: 0,
      },
    ]);
    const answer = await call('POST', PATH, { 'content-type': 'application/json' }, JSON.stringify(body));
    t.is(answer.status, status);
    t.is(answer.body?.statusCode, status);
    const message = /^\[HTTP\] (.*) \(\d+\)$/.exec(answer.body?.message ?? '')?.[1] ?? '';
    if (typeof text === 'string') t.is(message, text);
    else t.regex(message, text);
  });
}

test('a pull into an application that is missing', async (t) => {
  const { call } = await openApi(t);
  const body = JSON.stringify({ name: 's', urls: [RTSP] });
  t.is((await call('POST', '/v1/vhosts/default/apps/none/streams', {}, body)).status, 404);
  t.is((await call('POST', '/v1/vhosts/none/apps/app/streams', {}, body)).status, 404);
});
