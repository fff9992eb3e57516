import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'sdp-transform';
import { inPlace } from '../../../support/hls/playlist-uris.ts';
import { until } from '../../../support/time/until.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO, TRANSPORT, type OfferedMedia } from '../../../support/webrtc/offers.ts';
import { startWebrtc, type WebrtcServerOptions } from '../../../support/webrtc/webrtc-server.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../../src/core/track.ts';

const VIDEO: VideoTrack = {
  id: 0,
  name: 'video',
  type: 'video',
  codec: 'H264',
  timebase: VIDEO_TIMEBASE,
  bypass: true,
  width: 640,
  height: 360,
  bitrate: 0,
  framerate: 30,
  keyFrameInterval: 0,
};
const AUDIO: AudioTrack = {
  id: 1,
  name: 'audio',
  type: 'audio',
  codec: 'OPUS',
  timebase: { num: 1, den: 48_000 },
  bypass: true,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};
const OFFER = offerOf([OPUS_AUDIO, H264_VIDEO]);
const SDP = { 'content-type': 'application/sdp' };
const FRAGMENT = { 'content-type': 'application/trickle-ice-sdpfrag' };

/** A stream without packets: enough for all signalling. */
async function start(
  t: ExecutionContext,
  options: WebrtcServerOptions = {},
  tracks: readonly Track[] = [VIDEO, AUDIO],
) {
  const server = await startWebrtc(t, options);
  const application = server.registry.vhost('default').application('app');
  const input = application.publish('stream', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks(tracks);
  const output = application.addOutput(input, 'stream');
  output.setTracks(tracks);
  application.announce(output);
  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(server.url + path, { method, headers, body });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  /** `path` is that of the session. */
  const post = async (body = OFFER, path = '/app/stream?direction=whep') => {
    const answer = await call('POST', path, SDP, body);
    return { ...answer, path: inPlace(answer.headers.get('location') ?? '', path) };
  };
  return { ...server, output, input, call, post };
}

test('an offer is answered as RFC 9725 wants', async (t) => {
  const { post, output } = await start(t, {
    iceServers: [
      { urls: ['stun:stun.example.com'], lifetime: 60_000 },
      { urls: ['turn:turn.example.com'], userName: 'na"me', credential: 'secret', lifetime: 60_000 },
    ],
  });
  const { status, headers, body } = await post();
  t.is(status, 201);
  t.is(headers.get('content-type'), 'application/sdp');
  t.regex(headers.get('location') ?? '', /^stream\/[0-9a-f-]{36}\.[0-9a-f]+\?direction=whep$/);
  t.regex(headers.get('etag') ?? '', /^"[0-9a-f]{8}"$/);
  t.is(headers.get('accept-patch'), 'application/trickle-ice-sdpfrag');
  t.is(
    headers.get('link'),
    '<stun:stun.example.com>; rel="ice-server", <turn:turn.example.com>; rel="ice-server"; ' +
      'username="na\\"me"; credential="secret"; credential-type="password"',
  );
  t.is(headers.get('access-control-allow-origin'), '*');
  t.regex(headers.get('access-control-expose-headers') ?? '', /Location, Link, ETag.*, WWW-Authenticate$/);
  t.is(output.sessions.size, 1);

  const answer = parse(body);
  t.is(answer.icelite, 'ice-lite');
  t.deepEqual(answer.groups, [{ type: 'BUNDLE', mids: '0 1' }]);
  t.deepEqual(
    answer.media.map(({ type, payloads, direction, setup }) => [type, payloads, direction, setup]),
    [
      ['audio', 111, 'sendonly', 'passive'],
      ['video', 108, 'sendonly', 'passive'],
    ] as unknown[],
  );
  t.is(answer.media[1]?.fmtp[0]?.config, 'packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1');
  t.like(answer.media[0]?.candidates?.[0], { transport: 'UDP', ip: '127.0.0.1', type: 'host' });
});

test('a section for data channels is taken where the transport of the media can carry it', async (t) => {
  const { post } = await start(t);
  const data = (lines: readonly string[], protocol = 'UDP/DTLS/SCTP') => ({
    ...{ kind: 'application', types: ['webrtc-datachannel'], protocol, direction: 'sendrecv', lines },
  });
  const answered = async (section: OfferedMedia, bundle?: readonly number[]) =>
    parse((await post(offerOf([H264_VIDEO, section], TRANSPORT, bundle && [...bundle]))).body);
  const taken = await answered(data(['a=sctp-port:5000', 'a=max-message-size:262144']));
  t.like(taken.media[1], {
    port: 9,
    protocol: 'UDP/DTLS/SCTP',
    sctpPort: 5000,
    maxMessageSize: 16_384,
    setup: 'passive',
  });
  t.deepEqual(taken.groups, [{ type: 'BUNDLE', mids: '0 1' }]);
  for (const answer of [
    await answered(data(['a=sctp-port:5001'])),
    await answered(data([])),
    await answered(data(['a=sctp-port:5000'], 'DTLS/SCTP')),
    await answered(data(['a=sctp-port:5000']), []),
    await answered({ ...data(['a=sctp-port:5000']), port: 0 }),
  ])
    t.is(answer.media[1]?.port, 0);
});

test('sections that carry nothing stay in their place', async (t) => {
  const { post } = await start(t);
  const data = { kind: 'application', types: ['webrtc-datachannel'], protocol: 'UDP/DTLS/SCTP', direction: 'sendrecv' };
  const second = { ...H264_VIDEO };
  const { status, body } = await post(offerOf([data, { ...OPUS_AUDIO, direction: 'inactive' }, H264_VIDEO, second]));
  t.is(status, 201);
  const answer = parse(body);
  t.deepEqual(
    answer.media.map(({ type, port, direction }) => [type, port, direction]),
    [
      ['application', 0, 'inactive'],
      ['audio', 9, 'inactive'],
      ['video', 9, 'sendonly'],
      ['video', 9, 'inactive'],
    ],
  );
  t.deepEqual(answer.groups, [{ type: 'BUNDLE', mids: '1 2 3' }]);
});

test('bad offers, paths and types are refused, each with its status', async (t) => {
  const { post, call, output } = await start(t);
  const cases: [string, Promise<{ status: number; headers: Headers; body: string }>, number][] = [
    ['no SDP', post('hello'), 400],
    ['empty', post(''), 400],
    [
      'no fingerprint',
      post(
        offerOf(
          [H264_VIDEO],
          TRANSPORT.filter((line) => !line.includes('fingerprint')),
        ),
      ),
      400,
    ],
    ['another type', call('POST', '/app/stream', { 'content-type': 'application/json' }, '{}'), 415],
    ['a fragment', call('POST', '/app/stream', FRAGMENT, OFFER), 415],
    ['no type and no body', call('POST', '/app/stream'), 415],
    ['too large', post(OFFER + 'a=x\r\n'.repeat(20_000)), 413],
    ['no such application', post(OFFER, '/other/stream'), 404],
    ['no such stream', post(OFFER, '/app/other'), 409],
    ['WebRTC is off there', post(OFFER, '/off/stream'), 404],
    ['no such playlist', post(OFFER, '/app/stream/other'), 404],
    ['publishing where no provider is', post(OFFER, '/app/stream?direction=whip'), 406],
    ['other codecs', post(offerOf([{ kind: 'video', types: [96], lines: ['a=rtpmap:96 H265/90000'] }])), 406],
    ['who only sends', post(offerOf([{ ...H264_VIDEO, direction: 'sendonly' }])), 406],
    ['a session that is not there', call('DELETE', '/app/stream/7e0f3a1c-0000-4000-8000-000000000000'), 404],
    ['a patch of nothing', call('PATCH', '/app/stream/x', { ...FRAGMENT, 'if-match': '*' }, 'a=x\r\n'), 404],
    ['PUT', call('PUT', '/app/stream', SDP, OFFER), 405],
    ['PUT of a session', call('PUT', '/app/stream/x', SDP, OFFER), 405],
    ['DELETE of an endpoint', call('DELETE', '/app/stream'), 405],
    ['PATCH of an endpoint', call('PATCH', '/app/stream', FRAGMENT, 'a=x'), 405],
  ];
  for (const [what, response, expected] of cases) {
    const { status, headers, body } = await response;
    t.is(status, expected, what);
    t.is(headers.get('content-type'), 'text/plain; charset=utf-8', what);
    t.true(body.length > 0, what);
    t.is(headers.get('access-control-allow-origin'), '*', what);
    if (status === 405) t.truthy(headers.get('allow'), what);
    if (status === 409) t.is(headers.get('retry-after'), '1', what);
    if (status === 415) t.is(headers.get('accept-post'), 'application/sdp', what);
  }
  t.is(output.sessions.size, 0);
});

test('an endpoint is there before its stream', async (t) => {
  const { call } = await start(t);
  for (const method of ['GET', 'HEAD'])
    for (const [path, expected] of [
      ['/app/other', 200],
      ['/app/stream/master', 200],
      // nothing is said about names
      ['/off/stream', 200],
      ['/other/stream', 200],
    ] as const) {
      const { status, headers, body } = await call(method, `${path}?direction=whep`);
      t.is(status, expected, `${method} ${path}`);
      t.is(headers.get('access-control-allow-origin'), '*');
      if (status === 200) t.deepEqual([headers.get('content-type'), body], ['application/sdp', '']);
    }
});

test('a default playlist is found by its name', async (t) => {
  const { post, output } = await start(t);
  t.deepEqual(
    output.playlists.map(({ fileName }) => fileName),
    ['webrtc_default'],
  );
  t.deepEqual(output.playlists[0]?.renditions, [
    { name: 'default', videoVariantName: 'video', audioVariantName: 'audio' },
  ]);
  t.is((await post(OFFER, '/app/stream/webrtc_default')).status, 201);
});

test('a WHEP stream without default playlist is found by named ones only', async (t) => {
  const { post, output } = await start(t, { webrtc: { createDefaultPlaylist: false } });
  t.is(output.playlists.length, 0);
  t.is((await post()).status, 404);
});

test('a stream that WebRTC cannot carry is not acceptable, one that it can carry in part plays that', async (t) => {
  const h265 = { ...VIDEO, codec: 'H265' as const };
  const aac = { ...AUDIO, codec: 'AAC' as const };
  const none = await start(t, {}, [aac]);
  t.is((await none.post()).status, 406);
  t.is(none.output.playlists.length, 0);
  const other = await start(t, {}, [h265, aac]);
  t.is((await other.post()).status, 406, 'to a viewer without H.265');
  const part = await start(t, {}, [VIDEO, aac]);
  const { status, body } = await part.post();
  t.is(status, 201);
  t.deepEqual(
    parse(body).media.map(({ direction }) => direction),
    ['inactive', 'sendonly'],
  );
});

test("trickle needs the session's tag; an ICE restart changes it and the credentials", async (t) => {
  const { post, call } = await start(t);
  const { headers, body, path } = await post();
  const etag = headers.get('etag') as string;
  const patch = (match: string | undefined, fragment: string) =>
    call('PATCH', path, { ...FRAGMENT, ...(match === undefined ? {} : { 'if-match': match }) }, fragment);
  const candidate =
    'a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n' +
    'a=candidate:1 1 UDP 2130706431 10.0.0.1 9 typ host\r\n';
  t.is((await patch(etag, candidate)).status, 204);
  t.is((await patch(undefined, candidate)).status, 428);
  t.is((await patch('"other"', candidate)).status, 412);
  t.is((await patch(etag, 'what?')).status, 400);
  t.is((await call('PATCH', path, { ...SDP, 'if-match': etag }, candidate)).status, 415);
  t.is((await patch('*', candidate)).status, 204);

  const restart = await patch('*', candidate.replace('abcd', 'efgh'));
  t.is(restart.status, 200);
  t.is(restart.headers.get('content-type'), 'application/trickle-ice-sdpfrag');
  t.not(restart.headers.get('etag'), etag);
  const ufrag = /a=ice-ufrag:(\S+)/.exec(restart.body)?.[1];
  t.truthy(ufrag);
  t.not(ufrag, parse(body).media[0]?.iceUfrag);
  t.regex(restart.body, /a=ice-pwd:\S{22,}/);
  t.regex(restart.body, /m=audio[^]*a=mid:0[^]*a=candidate:/);
  t.is((await patch(etag, candidate)).status, 412);
  t.is((await patch(restart.headers.get('etag') as string, candidate.replace('abcd', 'efgh'))).status, 204);

  t.is((await call('DELETE', path)).status, 200);
  t.is((await call('DELETE', path)).status, 404);
});

test('a session is found only under its own stream', async (t) => {
  const { post, call } = await start(t);
  const { path } = await post();
  t.is((await call('DELETE', path.replace('/app/stream', '/app/other'))).status, 404);
  t.is((await call('DELETE', path)).status, 200);
});

test('MaxConnection is the most there can be at once, however fast they come', async (t) => {
  const { post, call, output } = await start(t, { webrtc: { maxConnection: 3 } });
  const answers = await Promise.all(Array.from({ length: 8 }, () => post()));
  t.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 201, 503, 503, 503, 503, 503]);
  t.is(output.sessions.size, 3);
  const admitted = answers.find(({ status }) => status === 201);
  await call('DELETE', admitted?.path as string);
  t.is((await post()).status, 201);
});

test('a name of a session is given once, and never again to one that was kicked', async (t) => {
  const { post, output } = await start(t);
  const path = '/app/stream?session=somebody';
  const both = await Promise.all([post(OFFER, path), post(OFFER, path)]);
  t.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
  t.deepEqual([...output.sessions.keys()], ['somebody']);
  output.sessions.get('somebody')?.kick();
  t.is(output.sessions.size, 0);
  t.is((await post(OFFER, path)).status, 403);
  t.is((await post()).status, 201);
});

test('a WHEP viewer that never connects is released after the timeout', async (t) => {
  const { post, call, output, pool } = await start(t, { webrtc: { timeout: 8000 } });
  const { path } = await post();
  await until('the session ends', () => output.sessions.size === 0);
  t.is((await call('DELETE', path)).status, 404);
  await until('the feed is released', () => output.readers === 0);
  t.is(
    pool.workers.reduce((sum, { sessions }) => sum + sessions, 0),
    0,
  );
});

test.serial(
  'one WHEP client has a limited number of sessions that do not connect, and another one is served all the same',
  async (t) => {
    // none is let go meanwhile
    mock.timers.enable({ apis: ['setInterval'] });
    t.teardown(() => mock.timers.reset());
    const { post, url, output } = await start(t);
    const answers = await Promise.all(Array.from({ length: 260 }, () => post()));
    t.is(answers.filter(({ status }) => status === 201).length, 256);
    t.is(answers.filter(({ status }) => status === 503).length, 4);
    const other = request(`${url}/app/stream?direction=whep`, {
      method: 'POST',
      localAddress: '127.0.0.2',
      headers: SDP,
    });
    other.end(OFFER);
    const [answer] = (await once(other, 'response')) as [IncomingMessage];
    answer.resume();
    t.is(answer.statusCode, 201);
    for (const session of [...output.sessions.values()]) session.kick();
    t.is((await post()).status, 201);
  },
);

test('a new codec in mid-stream ends the WHEP sessions made for the first', async (t) => {
  const { post, output } = await start(t);
  await post();
  output.setTracks([{ ...VIDEO, width: 320 }, AUDIO]);
  t.is(output.sessions.size, 1);
  output.setTracks([{ ...VIDEO, codec: 'VP8' }, AUDIO]);
  t.is(output.sessions.size, 0);
  t.is((await post()).status, 201);
});

test('one stream is fed for a limited number of payload types at once', async (t) => {
  const { post } = await start(t, { ice: [{ address: '127.0.0.1', protocol: 'udp' }] }, [VIDEO]);
  const offer = (type: number) =>
    offerOf([{ ...H264_VIDEO, types: [type], lines: H264_VIDEO.lines?.map((line) => line.replace('108', `${type}`)) }]);
  const answers = await Promise.all(Array.from({ length: 32 }, (_, i) => post(offer(96 + i))));
  const statuses = answers.map(({ status }) => status);
  t.true(statuses.includes(201));
  t.true(statuses.includes(503));
  t.is((await post(offer(96 + statuses.indexOf(201)))).status, 201);
});

test('preflights are answered; CrossDomains limit origins', async (t) => {
  const { call } = await start(t, { webrtc: { crossDomains: { url: ['https://*.example.com'] } } });
  const preflight = (origin: string, path = '/app/stream') =>
    call('OPTIONS', path, {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'if-match',
    });
  const allowed = await preflight('https://www.example.com', '/app/stream/key');
  t.is(allowed.status, 200);
  t.is(allowed.headers.get('access-control-allow-origin'), 'https://www.example.com');
  t.regex(allowed.headers.get('access-control-allow-methods') ?? '', /DELETE.*PATCH.*POST/);
  t.is(allowed.headers.get('access-control-allow-headers'), 'if-match');
  t.is(allowed.headers.get('access-control-allow-private-network'), 'true');
  t.is(allowed.headers.get('accept-post'), 'application/sdp');
  t.is((await preflight('https://example.org')).headers.get('access-control-allow-origin'), null);
});

test('a WHEP viewer is rejected where access control cannot be asked', async (t) => {
  const { post } = await start(t, {
    vhost: {
      admissionWebhooks: { controlServerUrl: 'http://127.0.0.1:1/', secretKey: 'x', enables: { publishers: 'webrtc' } },
    },
  });
  t.is((await post()).status, 401);
});

test('the default playlist follows the tracks, and viewers stay whose tracks stay as they are', async (t) => {
  const { post, output } = await start(t, {}, [VIDEO]);
  t.is((await post()).status, 201);
  output.setTracks([VIDEO, AUDIO]);
  t.is(output.sessions.size, 1, 'sound has come');
  const directions = (sdp: string) => parse(sdp).media.map(({ direction }) => direction);
  t.deepEqual(directions((await post()).body), ['sendonly', 'sendonly']);
  t.is(output.sessions.size, 2);
  output.setTracks([{ ...VIDEO, width: 1280 }, AUDIO]);
  t.is(output.sessions.size, 2, 'the same codec goes on');
  output.setTracks([VIDEO]);
  t.is(output.sessions.size, 1, 'who had the sound comes back without');
  output.setTracks([{ ...VIDEO, codec: 'VP8' }]);
  t.is(output.sessions.size, 0, 'what was agreed does not fit any more');
  output.setTracks([{ ...AUDIO, codec: 'AAC' }]);
  t.deepEqual(output.playlists, []);
  t.is((await post()).status, 406);
});
