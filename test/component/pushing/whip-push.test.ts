import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { CODED, Feed, inState, pushing, reportOf, startPush } from '../../support/pushing/pushing.ts';
import { publish } from '../../support/tasks/counting-task.ts';
import { until } from '../../support/time/until.ts';
import { callingPool } from '../../support/webrtc/calling-pool.ts';
import { H264_VIDEO, offerOf, OPUS_AUDIO, TRANSPORT } from '../../support/webrtc/offers.ts';
import { ViewerPeer } from '../../support/webrtc/viewer-peer.ts';
import { startWebrtc } from '../../support/webrtc/webrtc-server.ts';
import {
  accept,
  serveSignalling,
  withOtherFingerprint,
  type SignallingAnswer,
} from '../../support/webrtc/whep-server.ts';

const SECRET = 'very-secret-key';
const SOUNDING = { ...CODED, audio: 'OPUS', seconds: 20 } as const;

// takes datagrams, and answers none
const silent = createSocket('udp4').bind(0, '127.0.0.1');
await once(silent, 'listening');
silent.unref();

/** Begins a push of a stream that flows in real time. */
async function live(t: ExecutionContext, url: string, coded: ConstructorParameters<typeof Feed>[1] = SOUNDING) {
  const pool = await callingPool(t);
  const node = await pushing(t, {}, undefined, pool);
  await startPush(node, 0, { protocol: 'whip', url, streamKey: SECRET });
  const feed = new Feed(await publish(node, 'live'), coded);
  feed.write(40);
  const timer = setInterval(() => feed.write(7), 100);
  t.teardown(() => clearInterval(timer));
  return { node, feed, pool };
}

const failed = (node: Awaited<ReturnType<typeof live>>['node'], reason: RegExp) =>
  until('it failed', () => reason.test(reportOf(node)?.reason ?? ''));

test('a Kiln takes a push from its first key frame on, and its end', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const application = registry.vhost('default').application('app');
  const { node, pool } = await live(t, `${url.replace('http', 'whip')}/app/copy?direction=whip`);
  await inState(node, 'pushing');
  const input = await until('the stream is there', () => application.stream('copy'));
  await until('its tracks are known', () => input.tracks.length === 2);
  t.deepEqual(
    input.tracks.map(({ codec }) => codec),
    ['H264', 'OPUS'],
  );
  let packets = 0;
  input.read({ packet: () => void packets++ });
  await until('packets come', () => packets > 50);
  await until('bytes are counted', () => (reportOf(node)?.sentBytes ?? 0) > 10_000);
  t.is(reportOf(node)?.sequence, 1);
  await node.tasks.close();
  await until('the stream has ended', () => application.stream('copy') === undefined);
  t.is(pool.workers[0]?.sessions, 0);
  t.false(node.lines.join('').includes(SECRET));
});

test('libdatachannel takes a push', async (t) => {
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  const { host, asked } = await serveSignalling(t, async ({ method, body }, response) => {
    if (method === 'DELETE') response.writeHead(200).end();
    else accept(response, await peer.answerTo(body));
  });
  const { node } = await live(t, `whip://${host}/endpoint`);
  await inState(node, 'pushing');
  await peer.until(() => peer.frames().length >= 25 && peer.packets.audio.length >= 25);
  t.is(asked[0]?.authorization, `Bearer ${SECRET}`);
  t.regex(asked[0]?.body ?? '', /a=sendonly/);
  t.regex(asked[0]?.body ?? '', /a=ssrc:\d+ cname:/);
});

test('tracks that WebRTC does not carry are left out', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const application = registry.vhost('default').application('app');
  const { node } = await live(t, `${url.replace('http', 'whip')}/app/copy?direction=whip`, { ...CODED, seconds: 20 });
  await inState(node, 'pushing');
  const input = await until('the stream is there', () => application.stream('copy'));
  await until('its track is known', () => input.tracks.length === 1);
  t.regex(reportOf(node)?.warnings?.join() ?? '', /WebRTC does not carry AAC/);
});

test('a push whose tracks change is made again', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const application = registry.vhost('default').application('app');
  const { node, feed } = await live(t, `${url.replace('http', 'whip')}/app/copy?direction=whip`);
  await inState(node, 'pushing');
  await until('the stream is there', () => application.stream('copy'));
  feed.output.setTracks(feed.tracks.filter(({ type }) => type === 'video'));
  await until('another connection', () => reportOf(node)?.sequence === 2);
  t.regex(node.lines.join(''), /the tracks have changed/);
});

const ANSWER = offerOf(
  [
    {
      ...H264_VIDEO,
      types: [98],
      lines: ['a=rtpmap:98 H264/90000', `a=candidate:1 1 UDP 1 127.0.0.1 ${silent.address().port} typ host`],
    },
    { ...OPUS_AUDIO, types: [110], lines: ['a=rtpmap:110 opus/48000/2'] },
  ],
  TRANSPORT.map((line) => line.replace('actpass', 'passive')),
);

const refusals: readonly [name: string, answer: SignallingAnswer, reason: RegExp][] = [
  [
    'refuses the token',
    (_, response) => void response.writeHead(401, { 'Content-Type': 'text/plain' }).end(`unknown token ${SECRET}`),
    /refused the offer \(401\): unknown token \.\.\.$/,
  ],
  ['never answers', () => {}, /it did not answer in time/],
  ['leaves', (_, response) => void response.socket?.destroy(), /without an answer/],
  [
    'takes no media',
    (_, response) => accept(response, offerOf([{ ...H264_VIDEO, port: 0 }])),
    /does not take H264 or OPUS/,
  ],
  ['is not at its address', (_, response) => accept(response, ANSWER), /ICE did not connect within 8 s/],
  [
    'is no WHIP',
    (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>'),
    /text\/html instead of SDP/,
  ],
];

for (const [name, answer, reason] of refusals)
  test(`a server that ${name} is reported, and asked again`, async (t) => {
    const { host, asked } = await serveSignalling(t, answer);
    const { node } = await live(t, `whip://${host}/endpoint`);
    await failed(node, reason);
    await until('it is asked again', () => asked.filter(({ method }) => method === 'POST').length >= 2);
    t.false(node.lines.some((line) => line.includes('push.started')));
    t.is(reportOf(node)?.sequence, 0);
    t.false(node.lines.join('').includes(SECRET));
  });

test('a server that takes the video alone is pushed to', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const application = registry.vhost('default').application('app');
  const { host } = await serveSignalling(t, async ({ method, body }, response) => {
    if (method === 'DELETE') return void response.writeHead(200).end();
    const headers = { 'content-type': 'application/sdp' };
    const answer = await fetch(`${url}/app/copy?direction=whip`, { method: 'POST', headers, body });
    accept(response, (await answer.text()).replace(/^m=audio \d+/m, 'm=audio 0'));
  });
  const { node } = await live(t, `whip://${host}/endpoint`);
  await inState(node, 'pushing');
  const input = await until('the stream is there', () => application.stream('copy'));
  let videos = 0;
  input.read({ packet: ({ track }) => void (videos += Number(track.type === 'video')) });
  await until('video comes', () => videos > 50);
  await until('the log names what is left out', () =>
    /not pushed: the server does not take OPUS/.test(node.lines.join('')),
  );
  t.is(reportOf(node)?.sequence, 1);
});

test('a server with another certificate than its answer says is not trusted', async (t) => {
  const { url } = await startWebrtc(t);
  const { host } = await serveSignalling(t, async ({ method, body }, response) => {
    if (method === 'DELETE') return void response.writeHead(200).end();
    const headers = { 'content-type': 'application/sdp' };
    const answer = await fetch(`${url}/app/copy?direction=whip`, { method: 'POST', headers, body });
    accept(response, withOtherFingerprint(await answer.text()));
  });
  const { node } = await live(t, `whip://${host}/endpoint`);
  await failed(node, /DTLS/);
  t.is(reportOf(node)?.sequence, 0);
});

test('without media workers nothing is pushed', async (t) => {
  const node = await pushing(t);
  await startPush(node, 0, { protocol: 'whip', url: 'whip://127.0.0.1/x', streamKey: '' });
  new Feed(await publish(node, 'live'), SOUNDING).write(40);
  await failed(node, /WebRTC is off/);
  t.is(reportOf(node)?.sequence, 0);
});
