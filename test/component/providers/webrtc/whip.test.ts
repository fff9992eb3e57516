import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { parse } from 'sdp-transform';
import { KilnError } from '../../../../src/errors.ts';
import { MediaWorker } from '../../../../src/webrtc/media-worker.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO, TRANSPORT, type OfferedMedia } from '../../../support/webrtc/offers.ts';
import { CLIENT } from '../../../support/access/access.ts';
import { seeded } from '../../../unit/codecs/vectors.ts';
import { inPlace } from '../../../support/hls/playlist-uris.ts';
import { until } from '../../../support/time/until.ts';
import { startWebrtc, type WebrtcServerOptions } from '../../../support/webrtc/webrtc-server.ts';

const FEEDBACK = ['nack', 'nack pli', 'ccm fir', 'goog-remb', 'transport-cc', 'x-unknown'];
const EXTENSIONS = [
  'urn:ietf:params:rtp-hdrext:sdes:mid',
  'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
  'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
  'urn:3gpp:video-orientation',
].map((uri, index) => `a=extmap:${index + 3} ${uri}`);
const VIDEO: OfferedMedia = {
  ...H264_VIDEO,
  direction: 'sendonly',
  types: [108, 109],
  lines: [
    ...(H264_VIDEO.lines ?? []),
    'a=rtpmap:109 rtx/90000',
    'a=fmtp:109 apt=108',
    ...FEEDBACK.map((one) => `a=rtcp-fb:108 ${one}`),
    ...EXTENSIONS,
  ],
};
const AUDIO: OfferedMedia = { ...OPUS_AUDIO, direction: 'sendonly' };
const OFFER = offerOf([AUDIO, VIDEO]);
const SDP = { 'content-type': 'application/sdp' };
const FRAGMENT = { 'content-type': 'application/trickle-ice-sdpfrag' };

async function start(t: ExecutionContext, options: WebrtcServerOptions = {}) {
  const server = await startWebrtc(t, options);
  const application = server.registry.vhost('default').application('app');
  const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(server.url + path, { method, headers, body });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  /** `path` is that of the session. */
  const post = async (body = OFFER, path = '/app/stream?direction=whip') => {
    const answer = await call('POST', path, SDP, body);
    return { ...answer, path: inPlace(answer.headers.get('location') ?? '', path) };
  };
  return { ...server, application, call, post };
}

test('an offer is answered as RFC 9725 wants', async (t) => {
  const { post, application } = await start(t, {
    ingest: { rtx: { enable: true } },
    iceServers: [{ urls: ['turn:turn.example.com'], userName: 'name', credential: 'secret', lifetime: 0 }],
  });
  const { status, headers, body } = await post();
  t.is(status, 201);
  t.is(headers.get('content-type'), 'application/sdp');
  t.regex(headers.get('location') ?? '', /^stream\/[0-9a-f-]{36}\.[0-9a-f]+\?direction=whip$/);
  t.regex(headers.get('etag') ?? '', /^"[0-9a-f]{8}"$/);
  t.is(headers.get('accept-patch'), 'application/trickle-ice-sdpfrag');
  t.is(
    headers.get('link'),
    '<turn:turn.example.com>; rel="ice-server"; username="name"; credential="secret"; credential-type="password"',
  );
  t.true(application.inUse);

  const answer = parse(body);
  t.is(answer.icelite, 'ice-lite');
  t.deepEqual(answer.groups, [{ type: 'BUNDLE', mids: '0 1' }]);
  t.deepEqual(
    answer.media.map(({ type, payloads, direction, setup, rtcpMux }) => [
      type,
      String(payloads),
      direction,
      setup,
      rtcpMux,
    ]),
    [
      ['audio', '111', 'recvonly', 'passive', 'rtcp-mux'],
      ['video', '108 109', 'recvonly', 'passive', 'rtcp-mux'],
    ],
  );
  const [, video] = answer.media;
  t.deepEqual(
    video?.rtcpFb?.map(({ type, subtype }) => `${type} ${subtype ?? ''}`.trim()),
    FEEDBACK.slice(0, -1),
  );
  t.deepEqual(video?.ext?.map(({ value }) => value).sort(), [3, 4, 5, 6, 7]);
  t.is(video?.fmtp.find(({ payload }) => payload === 109)?.config, 'apt=108');
  t.true(answer.media.every(({ candidates }) => candidates?.length === 1));
});

test('the answer bundles what the offer does, and nothing else', async (t) => {
  const { post } = await start(t);
  const answerTo = async (name: string, offer: string) => {
    const { status, body } = await post(offer, `/app/${name}?direction=whip`);
    t.is(status, 201, body);
    const { groups = [], media } = parse(body);
    return { groups: groups.map(({ mids }) => String(mids)), ports: media.map(({ port }) => port) };
  };
  t.deepEqual(await answerTo('alone', offerOf([VIDEO], TRANSPORT, [])), { groups: [], ports: [9] });
  const unused = { ...AUDIO, direction: 'inactive' };
  t.deepEqual(await answerTo('bundled', offerOf([VIDEO, unused])), { groups: ['0 1'], ports: [9, 9] });
  t.deepEqual(await answerTo('apart', offerOf([VIDEO, unused], TRANSPORT, [0])), { groups: ['0'], ports: [9, 0] });
  for (const bundle of [[], [1]]) {
    const { status, body } = await post(offerOf([VIDEO, AUDIO], TRANSPORT, bundle), '/app/two?direction=whip');
    t.deepEqual([status, body], [406, 'The offer is not acceptable: its sections are not bundled']);
  }
});

test('retransmissions in a stream of their own are taken where they are enabled, lost packets asked for in any case', async (t) => {
  const { post } = await start(t);
  const [, video] = parse((await post()).body).media;
  t.is(String(video?.payloads), '108');
  t.true(video?.rtcpFb?.some(({ type, subtype }) => type === 'nack' && subtype === undefined));
});

test('the first codec that is taken is the one, in the order of the offer', async (t) => {
  const { post } = await start(t);
  const offered = (types: number[]): OfferedMedia => ({
    kind: 'video',
    direction: 'sendonly',
    types,
    lines: [
      'a=rtpmap:96 H265/90000',
      'a=fmtp:96 tx-mode=MRST',
      'a=rtpmap:97 VP8/90000',
      'a=rtpmap:98 H264/90000',
      'a=fmtp:98 packetization-mode=1;profile-level-id=640032',
      'a=rtpmap:99 VP9/90000',
      'a=fmtp:99 profile-id=2',
      'a=rtpmap:100 AV1/90000',
      'a=rtpmap:101 VP9/90000',
      'a=fmtp:101 profile-id=0',
    ],
  });
  const cases: [number[], string][] = [
    [[96, 97, 98], '97'],
    [[98, 97], '98'],
    [[99, 101], '101'],
    [[100, 98], '100'],
  ];
  for (const [index, [types, expected]] of cases.entries()) {
    const { status, body } = await post(offerOf([offered(types)]), `/app/stream${index}?direction=whip`);
    t.is(status, 201);
    t.is(String(parse(body).media[0]?.payloads), expected);
  }
});

test('a simulcast is taken as it is offered', async (t) => {
  const { post } = await start(t);
  const lines = [
    ...(VIDEO.lines ?? []),
    'a=rid:h send',
    'a=rid:m send',
    'a=rid:l send',
    'a=rid:x recv',
    'a=simulcast:send h;m,x;~l',
  ];
  const { body } = await post(offerOf([{ ...VIDEO, lines }]));
  const [video] = parse(body).media;
  t.deepEqual(
    video?.rids?.map(({ id, direction }) => `${id} ${direction}`),
    ['h recv', 'm recv', 'l recv'],
  );
  t.deepEqual(video?.simulcast, { dir1: 'recv', list1: 'h;m;l' });
});

test('one stream is taken of a simulcast in a codec without qualities', async (t) => {
  const { post } = await start(t);
  for (const [index, [type, name]] of (
    [
      [98, 'VP9'],
      [45, 'AV1'],
      [49, 'H265'],
    ] as const
  ).entries()) {
    const lines = [
      `a=rtpmap:${type} ${name}/90000`,
      ...EXTENSIONS,
      'a=rid:h send',
      'a=rid:l send',
      'a=simulcast:send h;l',
    ];
    const { status, body } = await post(
      offerOf([{ kind: 'video', direction: 'sendonly', types: [type], lines }]),
      `/app/s${index}?direction=whip`,
    );
    t.is(status, 201, body);
    const [video] = parse(body).media;
    t.is(video?.rids, undefined);
    t.is(video?.simulcast, undefined);
    t.false(video?.ext?.some(({ uri }) => uri.endsWith('stream-id')));
  }
});

test.serial('a rejection by the media worker is no server error, and ends the WHIP session at once', async (t) => {
  const { provider, application, url } = await start(t);
  const refusing = mock.method(MediaWorker.prototype, 'produce', async () => {
    throw new Error('the SSRC is in use');
  });
  t.teardown(() => refusing.mock.restore());
  const request = {
    hostName: '127.0.0.1',
    origin: url,
    url: 'http://live.example:3333/app/stream?direction=whip',
    client: CLIENT,
    app: 'app',
    stream: 'stream',
    query: new URLSearchParams(),
  };
  const error = await t.throwsAsync(
    provider.handler.answer(request, OFFER, () => {}),
    { instanceOf: KilnError },
  );
  t.is(error.code, 'notAcceptable');
  t.false(application.inUse);
});

test('offers, paths and types that cannot be are refused, each with its status', async (t) => {
  const { post, call, application, registry } = await start(t, { ingest: { maxConnection: 3 } });
  const h263 = { kind: 'video', direction: 'sendonly', types: [96], lines: ['a=rtpmap:96 H263/90000'] };
  const cases: [string, Promise<{ status: number; headers: Headers; body: string }>, number][] = [
    ['no SDP', post('hello'), 400],
    ['empty', post(''), 400],
    [
      'no fingerprint',
      post(
        offerOf(
          [VIDEO],
          TRANSPORT.filter((line) => !line.includes('fingerprint')),
        ),
      ),
      400,
    ],
    [
      'no ICE',
      post(
        offerOf(
          [VIDEO],
          TRANSPORT.filter((line) => !line.includes('ice')),
        ),
      ),
      400,
    ],
    ['another type', call('POST', '/app/stream?direction=whip', { 'content-type': 'application/json' }, '{}'), 415],
    [
      'two types',
      call('POST', '/app/stream?direction=whip', { 'content-type': 'application/sdp, text/plain' }, OFFER),
      415,
    ],
    ['no type and no body', call('POST', '/app/stream?direction=whip'), 415],
    ['too large', post(OFFER + 'a=x\r\n'.repeat(20_000)), 413],
    ['no such application', post(OFFER, '/other/stream?direction=whip'), 404],
    ['the provider is off', post(OFFER, '/off/stream?direction=whip'), 403],
    ['a name that none can be', post(OFFER, '/app/a%3Ab?direction=whip'), 400],
    ['codecs that are not taken', post(offerOf([h263])), 406],
    ['in part', post(offerOf([AUDIO, h263])), 406],
    ['two pictures', post(offerOf([VIDEO, VIDEO])), 406],
    ['who only receives', post(offerOf([{ ...VIDEO, direction: 'recvonly' }])), 406],
    [
      'nothing but data',
      post(
        offerOf([
          { kind: 'application', types: ['webrtc-datachannel'], protocol: 'UDP/DTLS/SCTP', direction: 'sendrecv' },
        ]),
      ),
      406,
    ],
    ['PUT', call('PUT', '/app/stream', SDP, OFFER), 405],
    ['DELETE of an endpoint', call('DELETE', '/app/stream?direction=whip'), 405],
    ['PATCH of an endpoint', call('PATCH', '/app/stream?direction=whip', FRAGMENT, 'a=x'), 405],
    ['a session that is not there', call('DELETE', '/app/stream/7e0f3a1c-0000-4000-8000-000000000000'), 404],
  ];
  for (const [what, response, expected] of cases) {
    const { status, headers, body } = await response;
    t.is(status, expected, `${what}: ${body}`);
    t.is(headers.get('content-type'), 'text/plain; charset=utf-8', what);
    t.true(body.length > 0, what);
    t.is(headers.get('access-control-allow-origin'), '*', what);
    if (status === 405) t.truthy(headers.get('allow'), what);
    if (status === 415) t.is(headers.get('accept-post'), 'application/sdp', what);
  }
  t.false(application.inUse);

  t.is((await post()).status, 201);
  const second = await post();
  t.deepEqual([second.status, second.body], [409, 'Stream is already exist']);
  for (const name of ['a', 'b']) t.is((await post(OFFER, `/app/${name}?direction=whip`)).status, 201);
  const fourth = await post(OFFER, '/app/c?direction=whip');
  t.deepEqual([fourth.status, fourth.headers.get('retry-after')], [503, '1']);
  registry.draining = true;
  t.is((await post(OFFER, '/app/d?direction=whip')).status, 503);
});

test('a WHIP publisher is rejected where access control cannot be asked', async (t) => {
  const { post } = await start(t, {
    vhost: {
      admissionWebhooks: {
        controlServerUrl: 'http://127.0.0.1/',
        secretKey: 'x',
        enables: { providers: 'rtmp,webrtc', publishers: '' },
      },
    },
  });
  t.is((await post()).status, 401);
});

test('an offer is answered whose type was sent twice', async (t) => {
  const { call } = await start(t);
  const twice = { 'content-type': 'application/sdp, application/sdp' };
  t.is((await call('POST', '/app/stream?direction=whip', twice, OFFER)).status, 201);
});

test("trickle needs the session's tag; an ICE restart changes it and the credentials; DELETE needs none", async (t) => {
  const { post, call, application } = await start(t);
  const { headers, body, path } = await post();
  const etag = headers.get('etag') as string;
  const patch = (match: string | undefined, fragment: string, type: Record<string, string> = FRAGMENT) =>
    call('PATCH', path, { ...type, ...(match === undefined ? {} : { 'if-match': match }) }, fragment);
  const trickle =
    'a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\na=end-of-candidates\r\n';
  const added = await patch(etag, trickle);
  t.deepEqual([added.status, added.body, added.headers.get('etag')], [204, '', null]);
  t.is((await patch(undefined, trickle)).status, 428);
  t.is((await patch('"other"', trickle)).status, 412);
  t.is((await patch(etag, 'no fragment')).status, 400);
  t.is((await patch(etag, '')).status, 400);
  t.is((await patch(etag, trickle, SDP)).status, 415);
  const restart = await patch('*', 'a=ice-ufrag:efgh\r\na=ice-pwd:9876543210987654321098\r\n');
  t.is(restart.status, 200);
  t.is(restart.headers.get('content-type'), 'application/trickle-ice-sdpfrag');
  t.not(restart.headers.get('etag'), etag);
  const before = parse(body).media[0]?.icePwd;
  t.false(restart.body.includes(before as string));
  t.regex(restart.body, /^a=ice-pwd:\S{22,}\r$/m);
  t.is((await patch(etag, trickle)).status, 412);
  t.is((await call('DELETE', path, { 'if-match': '"whatever"' })).status, 200);
  t.false(application.inUse);
  t.is((await patch('*', trickle)).status, 404);
});

test('a tag may be one of a list; new credentials are a restart, and whole, or refused', async (t) => {
  const { post, call } = await start(t);
  const { headers, path } = await post();
  const etag = headers.get('etag') as string;
  const patch = async (match: string, fragment: string) =>
    (await call('PATCH', path, { ...FRAGMENT, 'if-match': match }, fragment)).status;
  const candidate = 'm=audio 9 RTP/AVP 0\r\na=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n';
  t.is(await patch(`"x", ${etag}`, candidate), 204);
  t.is(await patch(`"x" ,W/${etag}`, candidate), 412);
  t.is(await patch(`${etag.slice(1, -1)}`, candidate), 412);
  const [ufrag, pwd] = ['a=ice-ufrag:efgh\r\n', 'a=ice-pwd:9876543210987654321098\r\n'];
  t.is(await patch(etag, ufrag + pwd), 400);
  t.is(await patch('*', ufrag), 400);
  t.is(await patch('*', pwd), 400);
  t.is(await patch('*', candidate), 204);
  t.is(await patch('"*"', ufrag + pwd), 200);
});

test('endpoints and sessions know their own methods', async (t) => {
  const { post, call } = await start(t);
  const { path } = await post();
  const [bare] = path.split('?') as [string];
  for (const [url, allow] of [
    ['/app/stream?direction=whip', 'GET, HEAD, OPTIONS, POST'],
    [path, 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    [bare, 'DELETE, GET, HEAD, OPTIONS, PATCH'],
  ] as const) {
    const { status, headers } = await call('PUT', url);
    t.deepEqual([status, headers.get('allow')], [405, allow], url);
  }
  t.is((await call('POST', path, SDP, OFFER)).status, 405);
  const { status, headers } = await call('OPTIONS', path);
  t.deepEqual(
    [status, headers.get('allow'), headers.get('accept-patch'), headers.get('accept-post')],
    [200, 'DELETE, GET, HEAD, OPTIONS, PATCH', 'application/trickle-ice-sdpfrag', null],
  );
  t.is((await call('OPTIONS', '/app/stream?direction=whip')).headers.get('accept-post'), 'application/sdp');
  t.is((await call('DELETE', path)).status, 200);
});

test('reads of endpoints and sessions succeed without content', async (t) => {
  const { post, call } = await start(t);
  const { path } = await post();
  const missing = path.replace(/[0-9a-f-]{36}/, '7e0f3a1c-0000-4000-8000-000000000000');
  for (const method of ['GET', 'HEAD'])
    for (const [url, expected] of [
      ['/app/stream?direction=whip', 200],
      ['/other/stream?direction=whip', 200],
      [path, 204],
      [missing, 404],
    ] as const) {
      const { status, headers, body } = await call(method, url);
      t.is(status, expected, `${method} ${url}`);
      if (status < 300) t.is(body, '');
      if (status === 200) {
        t.is(headers.get('content-type'), 'application/sdp');
        t.is(headers.get('accept-post'), 'application/sdp');
      }
    }
  t.is((await call('DELETE', path)).status, 200, 'the session is still there');
});

test('Location leads to the session from every path of an endpoint, also below a path that a proxy takes away', async (t) => {
  const { post, call, url } = await start(t);
  for (const path of ['/app/wh', '/app/wh?direction=whip', '/app/wh/', '/app/wh/master?a=/b/c', '/app/%77h']) {
    const { status, headers } = await post(
      OFFER,
      path.includes('?') ? `${path}&direction=whip` : `${path}?direction=whip`,
    );
    t.is(status, 201, path);
    const location = headers.get('location') ?? '';
    t.notRegex(location, /^\/|^[^/?]*:/, 'a relative path (RFC 3986 section 4.2)');
    const { href } = new URL(location, `http://proxy/some/where${path}`);
    t.true(href.startsWith('http://proxy/some/where/app/wh/'), href);
    const resource = href.slice('http://proxy/some/where'.length);
    t.is((await call('PATCH', resource, { ...FRAGMENT, 'if-match': '"other"' }, 'a=mid:0\r\n')).status, 412, path);
    t.is((await call('DELETE', resource)).status, 200, path);
    t.is(new URL(location, url).search, '?direction=whip');
  }
});

test('a client that takes Location for a path behind the host ends its session all the same', async (t) => {
  const { post, call, application } = await start(t);
  const { headers } = await post();
  t.is((await call('DELETE', `/stream/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}.abc`)).status, 404);
  t.is((await call('DELETE', '/app/stream?direction=whip')).status, 405);
  t.is((await call('DELETE', `/${headers.get('location')}`)).status, 200);
  t.false(application.inUse);
});

test("a session is its own endpoint's alone", async (t) => {
  const { post, call } = await start(t);
  const key = (await post()).path.split(/[/?]/)[3] as string;
  t.is((await call('DELETE', `/app/other/${key}`)).status, 404);
  t.is((await call('DELETE', `/app/stream/${key}`)).status, 200);
});

test('CrossDomains of the provider count, those of the publisher do not', async (t) => {
  const { call } = await start(t, {
    ingest: { crossDomains: { url: ['https://studio.example.com'] } },
    webrtc: { crossDomains: { url: ['https://player.example.com'] } },
  });
  const preflight = (direction: string, origin: string) =>
    call('OPTIONS', `/app/stream?direction=${direction}`, {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,oven-capabilities',
    });
  const allowed = await preflight('whip', 'https://studio.example.com');
  t.is(allowed.status, 200);
  t.is(allowed.headers.get('access-control-allow-origin'), 'https://studio.example.com');
  t.is(allowed.headers.get('access-control-allow-headers'), 'content-type,oven-capabilities');
  t.is(allowed.headers.get('access-control-allow-private-network'), 'true');
  t.is(allowed.headers.get('accept-post'), 'application/sdp');
  t.is(allowed.headers.get('accept-patch'), 'application/trickle-ice-sdpfrag');
  t.is((await preflight('whip', 'https://player.example.com')).headers.get('access-control-allow-origin'), null);
  t.is(
    (await preflight('whep', 'https://player.example.com')).headers.get('access-control-allow-origin'),
    'https://player.example.com',
  );
});

test('a WHIP publisher that never connects releases the stream name after the timeout', async (t) => {
  const { post, application, pool } = await start(t, { ingest: { timeout: 8000 } });
  t.is((await post()).status, 201);
  await until('the name is free', () => !application.inUse);
  t.is(
    pool.workers.reduce((sum, { sessions }) => sum + sessions, 0),
    0,
  );
});

test.serial('one WHIP client holds a limited number of sessions that do not connect', async (t) => {
  // none is let go meanwhile
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const { post, pool } = await start(t);
  const statuses: number[] = [];
  for (let i = 0; i < 260; i += 20) {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, j) => post(OFFER, `/app/s${i + j}?direction=whip`)),
    );
    statuses.push(...answers.map(({ status }) => status));
  }
  t.is(statuses.filter((status) => status === 201).length, 256);
  t.is(statuses.filter((status) => status === 503).length, 4);
  t.is(
    pool.workers.reduce((sum, { sessions }) => sum + sessions, 0),
    256,
  );
});

test('random offers and fragments do no harm', async (t) => {
  const { post, call, application } = await start(t);
  const next = seeded(5);
  const pick = (below: number) => Math.floor(next() * below);
  const mutate = (text: string): string => {
    const bytes = Buffer.from(text);
    for (let i = pick(8); i >= 0; i--) bytes[pick(bytes.length)] = pick(256);
    return bytes.subarray(0, pick(4) === 0 ? pick(bytes.length) : bytes.length).toString('latin1');
  };
  for (let i = 0; i < 300; i++) {
    const { status, path } = await post(mutate(OFFER), `/app/r?direction=whip`);
    t.true(status < 500, `${status}`);
    if (status !== 201) continue;
    const fragment = mutate(
      'a=ice-ufrag:efgh\r\na=ice-pwd:9876543210987654321098\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n',
    );
    t.true((await call('PATCH', path, { ...FRAGMENT, 'if-match': '*' }, fragment)).status < 500);
    t.is((await call('DELETE', path)).status, 200);
  }
  t.false(application.inUse);
  t.is((await post()).status, 201);
});
