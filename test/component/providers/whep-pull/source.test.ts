import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { BlockList } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { parseAvcConfig } from '../../../../src/codecs/h264.ts';
import { joinNals } from '../../../../src/codecs/nal.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
import { OutboundGuard } from '../../../../src/protocols/outbound/guard.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import type { PullSource, SourceOptions, SourceSink } from '../../../../src/providers/pull/source.ts';
import { whepSource } from '../../../../src/providers/whep-pull/source.ts';
import { LiveStream } from '../../../support/server/live-stream.ts';
import { PULLING } from '../../../support/pushing/outbound.ts';
import { until } from '../../../support/time/until.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO, TRANSPORT } from '../../../support/webrtc/offers.ts';
import { PublisherPeer } from '../../../support/webrtc/publisher-peer.ts';
import { h264, h265, opus } from '../../../support/webrtc/webrtc-media.ts';
import { callingPool } from '../../../support/webrtc/calling-pool.ts';
import { startWebrtc } from '../../../support/webrtc/webrtc-server.ts';
import { accept, serveSignalling, withOtherFingerprint } from '../../../support/webrtc/whep-server.ts';

const video = await h264();
const audio = await opus();

function guardOf(networks?: readonly string[]): OutboundGuard {
  const list = new BlockList();
  for (const network of networks ?? []) list.addSubnet(network, 32);
  return new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    ...(networks !== undefined && { allowed: { networks: list, element: 'Modules/Pull' } }),
  });
}

const DEFAULTS = {
  log: pino({ level: 'silent' }),
  silenceMs: undefined,
  ignoresReports: false,
  signal: new AbortController().signal,
};

/** Opens pulls, and takes what they bring. */
async function pulling(t: ExecutionContext, networks?: readonly string[]) {
  const pool = await callingPool(t);
  const source = whepSource({ pool: () => pool, guard: guardOf(networks) });
  const open = (url: string, options: Partial<SourceOptions> = {}): Promise<PullSource> =>
    source(url, { ...DEFAULTS, clock: new LocalClock(), ...options });
  const play = async (url: string, options: Partial<SourceOptions> = {}) => {
    const opened = await open(url, options);
    t.teardown(() => opened.close());
    const packets: Packet[] = [];
    const ends: string[] = [];
    const got = { tracks: [] as readonly Track[], bytes: 0 };
    const sink: SourceSink = {
      tracks: (tracks) => (got.tracks = tracks),
      packet: (packet) => packets.push(packet),
      received: (bytes) => (got.bytes += bytes),
      lost: () => {},
      trouble: () => {},
      end: (reason) => ends.push(reason),
    };
    await opened.play(sink);
    return { source: opened, packets, ends, got };
  };
  return { pool, open, play };
}

test('a stream of another Kiln comes whole, and ends with it', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const { play, pool } = await pulling(t);
  const { source, packets, got, ends } = await play(`${url.replace('http', 'whep')}/app/stream?direction=whep`);
  await until('two seconds have come', () => packets.length >= 150);
  t.deepEqual(
    got.tracks.map(({ codec }) => codec),
    ['H264', 'OPUS'],
  );
  t.true(got.bytes > 0);
  t.like(source.connection, { transport: 'UDP', protocol: 'UDP', remoteAddress: '127.0.0.1' });
  const { sps, pps } = parseAvcConfig(video.track.config as Buffer);
  const known = new Set(
    video.frames.flatMap(({ data }) => [data, joinNals([...sps, ...pps, data])]).map((data) => data.toString('hex')),
  );
  const pictures = packets.filter(({ track }) => track.type === 'video');
  t.true(pictures[0]?.key);
  t.true(pictures.every(({ data }) => known.has(data.toString('hex'))));
  for (const type of ['video', 'audio']) {
    const times = packets.filter(({ track }) => track.type === type).map(({ dts }) => dts);
    t.true(
      times.slice(1).every((time, index) => time > (times[index] as number)),
      type,
    );
  }
  t.is(pool.workers[0]?.sessions, 1);
  live.close();
  await until('it has ended', () => ends.length === 1);
  t.is(pool.workers[0]?.sessions, 0);
});

test('H.265 of another Kiln comes where there is no other video', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const media = await h265();
  const live = new LiveStream(registry, [media, audio]);
  t.teardown(() => live.close());
  const { play } = await pulling(t);
  const { packets, got } = await play(`${url.replace('http', 'whep')}/app/stream?direction=whep`);
  await until('video has come', () => packets.filter(({ track }) => track.type === 'video').length > 20);
  t.like(got.tracks, [{ codec: 'H265', width: 320 }, { codec: 'OPUS' }]);
  const known = new Set(media.frames.map(({ data }) => data.toString('hex')));
  for (const { track, data } of packets) if (track.type === 'video') t.true(known.has(data.toString('hex')));
});

test('a session is deleted on the server when the pull ends', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const { play } = await pulling(t);
  const { source } = await play(`${url.replace('http', 'whep')}/app/stream?direction=whep`);
  t.is(live.output.sessions.size, 1);
  source.close();
  await until('the viewer has gone', () => live.output.sessions.size === 0);
});

test("libdatachannel's stream comes too, with a token and over redirects", async (t) => {
  const { host, asked } = await serveSignalling(t, async ({ method, url, body }, response) => {
    if (method === 'DELETE') return void response.writeHead(200).end();
    if (url === '/moved') return void response.writeHead(307, { Location: '/whep' }).end();
    const peer = new PublisherPeer({ media: [video, audio], mids: ['0', '1'], types: { H264: 98, OPUS: 110 } });
    t.teardown(() => peer.close());
    accept(response, await peer.answerTo(body), 'one?x=1');
  });
  const { play } = await pulling(t);
  const { source, packets, got } = await play(`whep://the-token@${host}/moved`);
  await until('a second has come', () => packets.length >= 75);
  t.deepEqual(
    got.tracks.map(({ codec }) => codec),
    ['H264', 'OPUS'],
  );
  source.close();
  await until('the session is deleted', () => asked.length === 3);
  t.deepEqual(
    asked.map(({ method, url, authorization }) => [method, url, authorization]),
    [
      ['POST', '/moved', 'Bearer the-token'],
      ['POST', '/whep', 'Bearer the-token'],
      ['DELETE', '/one?x=1', 'Bearer the-token'],
    ],
  );
  t.regex(asked[0]?.body ?? '', /a=setup:actpass/);
  t.notRegex(asked[0]?.body ?? '', /a=ice-lite/);
});

test('servers that give no stream are told apart', async (t) => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const candidate = (address: string) => `a=candidate:1 1 UDP 1 ${address} ${silent.address().port} typ host`;
  const answerOf = (...lines: string[]): string =>
    offerOf(
      [
        { ...H264_VIDEO, types: [98], direction: 'sendonly', lines: ['a=rtpmap:98 H264/90000', ...lines] },
        { ...OPUS_AUDIO, types: [110], port: 0 },
      ],
      TRANSPORT.map((line) => line.replace('actpass', 'passive')),
    );
  const answers: Readonly<Record<string, (response: Parameters<typeof accept>[0]) => void>> = {
    '/401': (response) => response.writeHead(401, { 'Content-Type': 'text/plain' }).end('no such token: secret-one'),
    '/404': (response) => response.writeHead(404).end(),
    '/303': (response) => response.writeHead(303, { Location: '/404' }).end(),
    '/html': (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('hello'),
    '/none': (response) => accept(response, 'hello'),
    '/bare': (response) => accept(response, offerOf([H264_VIDEO], TRANSPORT.slice(2))),
    '/refused': (response) => accept(response, offerOf([{ ...H264_VIDEO, port: 0 }])),
    '/outside': (response) => accept(response, answerOf(candidate('127.0.0.2'))),
    '/link-local': (response) => accept(response, answerOf(candidate('169.254.169.254'))),
    '/silent': (response) => accept(response, answerOf(candidate('127.0.0.1'))),
    '/long': (response) => accept(response, `v=0\r\n${'a=x\r\n'.repeat(40_000)}`),
    '/closed': (response) => response.socket?.destroy(),
  };
  const { host, asked } = await serveSignalling(t, ({ url, method }, response) =>
    method === 'DELETE' ? void response.writeHead(200).end() : answers[url]?.(response),
  );
  const { open, pool } = await pulling(t, ['127.0.0.1']);
  for (const [path, reason] of [
    ['/401', /refused the offer \(401\): no such token: \.\.\.$/],
    ['/404', /refused the offer \(404\)$/],
    ['/303', /refused the offer \(303\)$/],
    ['/html', /answered with text\/html instead of SDP/],
    ['/none', /the server's answer is wrong: it does not begin with v=0/],
    ['/bare', /the server's answer is wrong/],
    ['/refused', /the server sends neither video nor audio in a codec that was offered/],
    ['/outside', /pulling from 127\.0\.0\.2:\d+ is not allowed: .* none of the networks of Modules\/Pull/],
    ['/link-local', /169\.254\.169\.254 is a link-local/],
    ['/long', /has more than \d+ bytes/],
    ['/closed', /without an answer/],
  ] as const)
    await t.throwsAsync(open(`whep://secret-one@${host}${path}`), { name: 'PullError', message: reason }, path);
  await t.throwsAsync(open('whep://127.0.0.2:80/x'), { name: 'PullError', message: /is not allowed/ });
  await t.throwsAsync(open(`wheps://${host}/x`), { name: 'PullError', message: /TLS/ });
  await t.throwsAsync(open('whep://a#b@c/d'), { name: 'PullError', message: /begins a fragment/ });
  await until('nothing is left', () => pool.workers[0]?.sessions === 0);
  await until('sessions are deleted', () => asked.some(({ method }) => method === 'DELETE'));

  await t.throwsAsync(open(`whep://${host}/silent`), {
    name: 'PullError',
    message: /ICE did not connect within 8 s: none of 127\.0\.0\.1:\d+ answered/,
  });
});

test('a pull over WHEP that is ended while it connects leaves nothing, here or on the server', async (t) => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const candidate = `a=candidate:1 1 UDP 1 127.0.0.1 ${silent.address().port} typ host`;
  const answer = offerOf(
    [{ ...H264_VIDEO, types: [98], direction: 'sendonly', lines: ['a=rtpmap:98 H264/90000', candidate] }],
    TRANSPORT.map((line) => line.replace('actpass', 'passive')),
  );
  let closed = 0;
  const { host, asked } = await serveSignalling(t, ({ url, method }, response) => {
    response.socket?.once('close', () => closed++);
    if (method === 'DELETE') return void response.writeHead(200).end();
    // the first offer is never answered
    if (url === '/silent') accept(response, answer);
  });
  const { open, pool } = await pulling(t);
  for (const [path, begun] of [
    ['/mute', () => Promise.resolve(asked.length === 1)],
    ['/silent', () => once(silent, 'message').then(() => true)],
  ] as const) {
    const stop = new AbortController();
    const opening = open(`whep://${host}${path}`, { signal: stop.signal });
    await until(`it waits for ${path}`, begun);
    stop.abort();
    await t.throwsAsync(opening, { name: 'PullError', message: /not wanted any more/ }, path);
    t.is(pool.workers[0]?.sessions, 0);
  }
  await until('the session is deleted', () => asked.at(-1)?.method === 'DELETE');
  await until('its connections are closed', () => closed === 3);
  const stop = new AbortController();
  stop.abort();
  await t.throwsAsync(open(`whep://${host}/mute`, { signal: stop.signal }), { name: 'PullError' });
  t.is(pool.workers[0]?.sessions, 0);
});

test('a server with another certificate than its answer says is not trusted', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [video, audio]);
  t.teardown(() => live.close());
  const { host } = await serveSignalling(t, async ({ body, method }, response) => {
    if (method === 'DELETE') return void response.writeHead(200).end();
    const headers = { 'content-type': 'application/sdp' };
    const answer = await fetch(`${url}/app/stream?direction=whep`, { method: 'POST', headers, body });
    accept(response, withOtherFingerprint(await answer.text()));
  });
  const { open } = await pulling(t);
  await t.throwsAsync(open(`whep://${host}/x`), { name: 'PullError', message: /DTLS/ });
});

test('without media workers nothing is pulled', async (t) => {
  const source = whepSource({ pool: () => undefined, guard: guardOf() });
  await t.throwsAsync(source('whep://127.0.0.1/x', { ...DEFAULTS, clock: new LocalClock() }), {
    message: /WebRTC is off/,
  });
});
