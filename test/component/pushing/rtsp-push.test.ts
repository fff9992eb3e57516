import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { freePorts } from '../../support/network/ports.ts';
import { codecsOf, probe } from '../../support/media/probe.ts';
import { CODED, Feed, inState, pushing, reportOf, startPush } from '../../support/pushing/pushing.ts';
import { FakeCamera, type CameraScript } from '../../support/rtsp/fake-camera.ts';
import { startGst } from '../../support/rtsp/gst-rtsp.ts';
import { publish } from '../../support/tasks/counting-task.ts';
import { until } from '../../support/time/until.ts';

/** Begins a push of a stream that has frames already. @param flow begins the others, in real time */
async function live(t: ExecutionContext, url: string, push: object = {}) {
  const node = await pushing(t, push);
  await startPush(node, 0, { protocol: 'rtsp', url, streamKey: '' });
  const feed = new Feed(await publish(node, 'live'), { ...CODED, seconds: 20 });
  feed.write(40);
  const flow = (): void => {
    const timer = setInterval(() => feed.write(7), 100);
    t.teardown(() => clearInterval(timer));
  };
  return { node, feed, flow };
}

async function folderOf(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rtsp-push-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Waits until some seconds are written to a file, which is not there at first. */
const grows = (file: string) =>
  until('some of it is written', async () => {
    const size = existsSync(file) ? (await stat(file)).size : 0;
    return size > 20_000;
  });

test('ffmpeg receives a push from its first key frame on, and its end', async (t) => {
  const [port] = freePorts(1) as [number];
  const url = `rtsp://127.0.0.1:${port}/live/key`;
  const file = join(await folderOf(t), 'got.mkv');
  // it cannot copy the first frames of B-frames out of RTP, which have no decode times
  const child = spawn(
    'ffmpeg',
    [...'-v error -rtsp_flags listen -i'.split(' '), url, ...'-c:v ffv1 -c:a flac -flush_packets 1'.split(' '), file],
    { stdio: 'ignore' },
  );
  t.teardown(() => void child.kill('SIGKILL'));
  const over = once(child, 'exit');
  const { node, feed, flow } = await live(t, url);
  await inState(node, 'pushing');
  flow();
  await grows(file);
  feed.output.input.close('over');
  t.deepEqual(await over, [0, null]);
  const found = await probe(file);
  t.deepEqual(codecsOf(found), ['ffv1', 'flac']);
  t.regex(found.packets.find(({ codec_type: type }) => type === 'video')?.flags ?? '', /^K/);
});

test("GStreamer's server takes a push, and asks for a password", async (t) => {
  const file = join(await folderOf(t), 'got.mkv');
  const server = await startGst(t, {
    records: true,
    mounts: {
      '/live':
        `( rtph264depay name=depay0 ! h264parse ! mux. rtpmp4gdepay name=depay1 ! aacparse ! mux. ` +
        `matroskamux name=mux streamable=true ! filesink location=${file} buffer-mode=unbuffered )`,
    },
    auth: { user: 'me', password: 'my secret', method: 'digest' },
  });
  const { node, flow } = await live(t, server.url('/live', 'me:my%20secret@'));
  await inState(node, 'pushing');
  flow();
  await grows(file);
  t.deepEqual(codecsOf(await probe(file)), ['aac', 'h264']);
  t.is(reportOf(node)?.sequence, 1);
  t.false(node.lines.join('').includes('secret'));
});

const refusals: readonly [name: string, answer: CameraScript['answer'], reason: RegExp][] = [
  [
    'an announcement',
    ({ method }) => (method === 'ANNOUNCE' ? '403 Forbidden\r\n\r\n' : undefined),
    /refused ANNOUNCE \(403\)/,
  ],
  [
    'a track',
    ({ method }) => (method === 'SETUP' ? '461 Unsupported Transport\r\n\r\n' : undefined),
    /refused SETUP \(461\)/,
  ],
  [
    'the recording',
    ({ method }) => (method === 'RECORD' ? '455 Not Now\r\n\r\n' : undefined),
    /refused RECORD \(455\)/,
  ],
  [
    'the user',
    ({ method }) =>
      method === 'ANNOUNCE' ? '401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"\r\n\r\n' : undefined,
    /credentials/,
  ],
  [
    'channels',
    ({ method }) =>
      method === 'SETUP' ? '200 OK\r\nSession: 1\r\nTransport: RTP/AVP/TCP;interleaved=8-9\r\n\r\n' : undefined,
    /transport for a track that was not offered/,
  ],
  ['to answer', ({ method }) => (method === 'ANNOUNCE' ? '' : undefined), /no answer to ANNOUNCE/],
];

for (const [name, answer, reason] of refusals)
  test(`a server that refuses ${name} is reported, and asked again`, async (t) => {
    const server = await FakeCamera.start(t, { answer });
    const { node } = await live(t, server.url());
    await until('it failed', () => reason.test(reportOf(node)?.reason ?? ''));
    await until('it is asked again', () => server.methods().filter((method) => method === 'OPTIONS').length >= 2);
    t.false(node.lines.some((line) => line.includes('push.started')));
    t.is(reportOf(node)?.sequence, 0);
  });

test('a server that sends its publishers elsewhere is followed', async (t) => {
  const there = await FakeCamera.start(t);
  const here = await FakeCamera.start(t, {
    answer: ({ method }) =>
      method === 'ANNOUNCE' ? `302 Moved\r\nLocation: ${there.url('moved')}\r\n\r\n` : undefined,
  });
  const { node } = await live(t, here.url());
  await inState(node, 'pushing');
  t.deepEqual(there.methods().slice(0, 5), ['OPTIONS', 'ANNOUNCE', 'SETUP', 'SETUP', 'RECORD']);
  t.like(there.requests[1], { uri: there.url('moved') });
  t.like(there.requests[3], { uri: `${there.url('moved')}/trackID=1` });
  t.is(there.requests[3]?.headers['transport'], 'RTP/AVP/TCP;unicast;interleaved=2-3;mode=record');
});

test('a server that reads nothing, or leaves, ends its connection, and another one is made', async (t) => {
  const server = await FakeCamera.start(t);
  const { node, feed } = await live(t, server.url(), { sendTimeout: 500 });
  await inState(node, 'pushing');
  server.sockets[0]?.destroy();
  await until('the push goes on', () => reportOf(node)?.sequence === 2);
  t.is(server.methods().filter((method) => method === 'RECORD').length, 2);
  server.sockets.at(-1)?.pause();
  const key = feed.packets.find((packet) => packet.track.type === 'video' && packet.key === true) as Packet;
  // one NAL unit, of a slice of a key frame
  const data = Buffer.alloc(500_000, 0x65);
  data.writeUInt32BE(data.length - 4);
  const more = setInterval(() => feed.output.write({ ...key, data }), 20);
  t.teardown(() => clearInterval(more));
  await until('it failed', () => /took nothing for 500 ms|too slow/.test(reportOf(node)?.reason ?? ''));
});

test('a stream whose tracks change is announced anew', async (t) => {
  const server = await FakeCamera.start(t);
  const { node, feed } = await live(t, server.url());
  await inState(node, 'pushing');
  feed.output.setTracks(feed.tracks.filter(({ type }) => type === 'video'));
  await until('it is announced again', () => server.methods().filter((method) => method === 'ANNOUNCE').length === 2);
  await inState(node, 'pushing');
  t.true(server.methods().includes('TEARDOWN'));
  t.is(server.methods().filter((method) => method === 'SETUP').length, 3);
});

test('a push that ends while it is sent elsewhere leaves no connection', async (t) => {
  const there = await FakeCamera.start(t, { answer: () => '' });
  const here = await FakeCamera.start(t, {
    answer: ({ method }) =>
      method === 'ANNOUNCE' ? `302 Moved\r\nLocation: ${there.url('moved')}\r\n\r\n` : undefined,
  });
  const { node, feed } = await live(t, here.url());
  await until('the other server is asked', () => there.requests.length === 1);
  feed.output.input.close('over');
  await until('the push has ended', () => reportOf(node) === undefined);
  there.send('RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n');
  await until('its connection is closed', () => there.sockets[0]?.closed);
  t.deepEqual(there.methods(), ['OPTIONS']);
});
