import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { BlockList, createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { pino } from 'pino';
import { encodeAmf0 } from '../../../src/protocols/rtmp/amf0.ts';
import { SrtListener } from '../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../src/protocols/srt/runtime.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { readPushProgress } from '../../../src/pushing/progress.ts';
import { codedPackets, tracksOf, type Coded } from '../../support/media/coded-packets.ts';
import { publish } from '../../support/tasks/counting-task.ts';
import { dataTrack, eventPacket } from '../../support/media/packets.ts';
import { freePorts } from '../../support/network/ports.ts';
import {
  CODED,
  Feed,
  inState,
  PUSH_NAME,
  pushing,
  reportOf,
  startPush,
  videos,
} from '../../support/pushing/pushing.ts';
import { acceptPublisher, answerRtmp } from '../../support/rtmp/rtmp-answers.ts';
import { startRtmp } from '../../support/rtmp/rtmp-server.ts';
import { until } from '../../support/time/until.ts';

test('a push is begun with its stream, arrives whole from its first key frame on, and ends with it', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  await startPush(node, server.port);
  t.is(reportOf(node), undefined);
  const feed = new Feed(await publish(node, 'live'), CODED);
  feed.write(60);
  await inState(node, 'pushing');
  feed.write(400);
  const arrived = await until('it has arrived', () => {
    const [recording] = server.recordings;
    return recording !== undefined && videos(recording.packets).length >= 90 && recording;
  });
  const [first] = arrived.packets;
  t.true(first?.key);
  const sent = videos(feed.packets);
  const got = videos(arrived.packets);
  t.deepEqual(
    got.map(({ data }) => data),
    sent.slice(0, got.length).map(({ data }) => data),
  );
  const offset = (packets: readonly Packet[]) => packets.map(({ pts, dts }) => pts - dts);
  t.deepEqual(
    offset(got).map((ticks) => Math.round(ticks / 90)),
    offset(sent.slice(0, got.length)).map((ticks) => Math.round(ticks / 90)),
  );
  t.is(feed.output.sessions.size, 1);
  t.is(reportOf(node)?.sequence, 1);
  feed.output.input.close('over');
  await until('the stream has ended there', () => arrived.closed);
  await until('it waits', () => reportOf(node) === undefined);
  const kept = await until('what was sent is kept', () => {
    const progress = readPushProgress(node.tasks.definitions.get(PUSH_NAME)?.progress?.value);
    return progress.totalsentBytes > 0 && progress;
  });
  t.is(kept.totalsentBytes, kept.sentBytes);
  t.true(kept.finishTime >= kept.startTime);
});

test('data messages of a publisher are pushed on, from the first one on', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  await startPush(node, server.port);
  const feed = new Feed(await publish(node, 'live'), CODED);
  feed.write(50);
  await inState(node, 'pushing');
  feed.write(50);
  await until('media arrives', () => (server.recordings[0]?.packets.length ?? 0) > 0);
  const track = dataTrack({ codec: 'AMF' });
  const message = encodeAmf0('onTextData', { text: 'hello' });
  feed.output.setTracks([...feed.tracks, track]);
  feed.output.write(eventPacket(track, 2 * 90_000, message));
  feed.write(50);
  const arrived = () => server.recordings[0]?.packets.find(({ track: { codec } }) => codec === 'AMF');
  await until('the message arrives', () => arrived() !== undefined);
  t.deepEqual(arrived()?.data, message);
  t.false(node.lines.some((line) => line.includes('left out')));
});

test('the configuration of the video is not sent again when events begin', async (t) => {
  let configurations = 0;
  const messages: unknown[] = [];
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy());
    answerRtmp(socket, acceptPublisher, {
      // a key frame of AVC, AVCPacketType 0
      video: (tag) => void (tag.readUInt16BE() === 0x1700 && configurations++),
      data: ([name]) => void messages.push(name),
    });
  });
  server.listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const node = await pushing(t);
  await startPush(node, (server.address() as AddressInfo).port);
  const feed = new Feed(await publish(node, 'live'), CODED);
  feed.write(50);
  await inState(node, 'pushing');
  feed.write(50);
  await until('the video begins', () => configurations > 0);
  const track = dataTrack({ codec: 'AMF' });
  feed.output.setTracks([...feed.output.tracks, track]);
  feed.output.write(eventPacket(track, 2 * 90_000, encodeAmf0('onTextData', { text: 'hello' })));
  await until('the message arrives', () => messages.includes('onTextData'));
  t.is(configurations, 1);
  t.is(messages.length, 2, 'one onMetaData, and the message');
});

test('a push is connected again, with a picture at once and the totals of before', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), CODED);
  await startPush(node, server.port);
  await until('it runs', () => reportOf(node));
  feed.write(150);
  await inState(node, 'pushing');
  const first = await until(
    'it has arrived',
    () => (server.recordings[0]?.packets.length ?? 0) > 0 && server.recordings[0],
  );
  const before = await until('it is counted', () => (reportOf(node)?.sentBytes ?? 0) > 0 && reportOf(node));
  first.input.end('disconnected');
  await inState(node, 'error');
  await until('it is connected again', () => reportOf(node)?.state === 'pushing' && reportOf(node)?.sequence === 2);
  // nothing is written meanwhile: what comes is of the cache
  const second = await until(
    'a picture came',
    () => (server.recordings[1]?.packets.length ?? 0) > 0 && server.recordings[1],
  );
  t.true(second.packets[0]?.key);
  const after = await until('it is counted', () => (reportOf(node)?.sentBytes ?? 0) > 0 && reportOf(node));
  t.true(after.totalsentBytes >= before.sentBytes + after.sentBytes);
  t.false(node.lines.join('').includes('very-secret-key'));
  t.true(node.lines.some((line) => line.includes('push.failed')));
});

test('a destination that is not there is tried again and again, until the push is stopped', async (t) => {
  const [port] = freePorts(1) as [number];
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), CODED);
  await startPush(node, port);
  await inState(node, 'error');
  feed.write(10);
  t.is(reportOf(node)?.sequence, 0);
  t.true(node.lines.some((line) => line.includes('refused the connection')));
  t.true(feed.output.watched, 'a stream that is pulled on demand is not unused meanwhile');
  t.true(await node.everywhere.remove(PUSH_NAME));
  t.is(reportOf(node), undefined);
  t.false(feed.output.watched);
});

test('codecs go as far as the server has said that it takes them', async (t) => {
  const coded: Coded = { video: { codec: 'H265' }, audio: 'OPUS', seconds: 1 };
  for (const extended of [true, false]) {
    const server = await startRtmp({ extended });
    t.teardown(() => server.close());
    const node = await pushing(t);
    const feed = new Feed(await publish(node, 'live'), coded);
    await startPush(node, server.port);
    if (extended) {
      await inState(node, 'pushing');
      feed.write(80);
      const codecs = await until('both tracks have arrived', () => {
        const tracks = server.recordings[0]?.input.tracks ?? [];
        return tracks.length === 2 && tracks.map(({ codec }) => codec);
      });
      t.deepEqual(codecs, ['H265', 'OPUS']);
    } else {
      await inState(node, 'error');
      const text = node.lines.join('');
      t.true(text.includes('the server does not take H265 by Enhanced RTMP'));
      t.true(text.includes('the stream has no track that can be pushed there'));
    }
  }
});

test('a codec that changes in mid-stream changes at the server, from a key frame on', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), CODED);
  await startPush(node, server.port);
  await inState(node, 'pushing');
  feed.write(150);
  const recording = await until('it has arrived', () => {
    const [first] = server.recordings;
    return first !== undefined && first.packets.length > 0 && first;
  });
  const next = codedPackets({ video: { codec: 'H265' }, audio: 'AAC', seconds: 1 });
  feed.output.setTracks(tracksOf(next));
  for (const packet of next) {
    const seconds = (10 * packet.track.timebase.den) / packet.track.timebase.num;
    feed.output.write({ ...packet, dts: packet.dts + seconds, pts: packet.pts + seconds });
  }
  const changed = await until('the new codec has arrived', () => {
    const found = videos(recording.packets).filter(({ track }) => track.codec === 'H265');
    return found.length > 10 && found;
  });
  t.true(changed[0]?.key);
  t.deepEqual(changed[0]?.data, videos(next)[0]?.data);
  t.is(server.recordings.length, 1);
  t.is(reportOf(node)?.sequence, 1);
});

test('a track that the server does not take is left out, as lists show', async (t) => {
  const server = await startRtmp({ extended: false });
  t.teardown(() => server.close());
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), { video: { codec: 'H265' }, audio: 'AAC', seconds: 1 });
  await startPush(node, server.port);
  const { warnings = [] } = await inState(node, 'pushing');
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^track 0 .* is left out: the server does not take H265 by Enhanced RTMP$/);
  feed.write(80);
  await until('audio has arrived', () => (server.recordings[0]?.packets.length ?? 0) > 0);
  t.deepEqual(
    server.recordings[0]?.input.tracks.map(({ codec }) => codec),
    ['AAC'],
  );
});

test('a server that does not answer is given up in time', async (t) => {
  const silent = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const node = await pushing(t, { connectionTimeout: 300 });
  new Feed(await publish(node, 'live'), CODED);
  await startPush(node, (silent.address() as { port: number }).port);
  await inState(node, 'error');
  t.true(node.lines.some((line) => line.includes('not connected within 300 ms')));
});

test('MPEG-TS goes over UDP in datagrams of seven packets', async (t) => {
  const receiver = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
  const datagrams: Buffer[] = [];
  receiver.on('message', (datagram) => void datagrams.push(datagram));
  receiver.bind(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.teardown(() => receiver.close());
  const node = await pushing(t);
  await startPush(node, 0, { protocol: 'mpegts', url: `udp://127.0.0.1:${receiver.address().port}` });
  const feed = new Feed(await publish(node, 'live'), CODED);
  await inState(node, 'pushing');
  feed.write(250);
  await until('it is sent', () => (reportOf(node)?.sentBytes ?? 0) > 0);
  feed.output.input.close('over');
  await until('it waits', () => reportOf(node) === undefined);
  const sent = readPushProgress(
    await until('it is kept', () => node.tasks.definitions.get(PUSH_NAME)?.progress?.value),
  );
  await until('all has arrived', () => Buffer.concat(datagrams).length >= sent.sentBytes);
  t.true(datagrams.slice(0, -1).every(({ length }) => length === 7 * 188));
  const packets = Buffer.concat(datagrams);
  for (let at = 0; at < packets.length; at += 188) t.is(packets[at], 0x47);
});

test('an SRT listener that is not there is an error, and the call is made again when it is', async (t) => {
  const [port] = freePorts(1) as [number];
  const node = await pushing(t, { connectionTimeout: 1000 });
  await startPush(node, 0, { protocol: 'srt', url: `srt://127.0.0.1:${port}?latency=50&streamid=called` });
  const feed = new Feed(await publish(node, 'live'), CODED);
  feed.write(150);
  await inState(node, 'error');
  const runtime = SrtRuntime.open(pino({ level: 'silent' }));
  const calls: string[] = [];
  let bytes = 0;
  const listener = new SrtListener(runtime, {
    host: '127.0.0.1',
    port,
    log: pino({ level: 'silent' }),
    options: [],
    refuse: () => undefined,
    connection: (connection) => {
      calls.push(connection.streamId);
      connection.handlers = { data: (data) => void (bytes += data.length), close: () => connection.close() };
      connection.read();
    },
  });
  t.teardown(async () => {
    await node.everywhere.remove(PUSH_NAME);
    await listener.close();
    await runtime.close();
  });
  await inState(node, 'pushing');
  const sent = await until(
    'the cache was sent',
    () => (reportOf(node)?.sentBytes ?? 0) > 0 && reportOf(node)?.sentBytes,
  );
  await until('it has arrived', () => bytes >= sent);
  t.deepEqual(calls, ['called']);
  t.true(await node.everywhere.remove(PUSH_NAME));
});

test('MPEG-TS goes to a multicast group that the configuration allows, with the size and the TTL of the URL', async (t) => {
  const receiver = createSocket({ type: 'udp4', reuseAddr: true, recvBufferSize: 4 * 1024 * 1024 });
  const sizes = new Set<number>();
  receiver.on('message', (datagram) => void sizes.add(datagram.length));
  receiver.bind(0, '239.255.77.1');
  await once(receiver, 'listening');
  receiver.addMembership('239.255.77.1', '127.0.0.1');
  t.teardown(() => receiver.close());
  const networks = new BlockList();
  networks.addSubnet('239.255.0.0', 16);
  const node = await pushing(t, {}, { networks, element: 'Modules/Push' });
  const { port } = receiver.address();
  const url = `udp://239.255.77.1:${port}?pkt_size=600&ttl=3&localaddr=127.0.0.1`;
  await startPush(node, 0, { protocol: 'mpegts', url });
  const feed = new Feed(await publish(node, 'live'), CODED);
  await inState(node, 'pushing');
  feed.write(150);
  await until('datagrams arrive', () => sizes.size > 0);
  t.deepEqual([...sizes], [3 * 188]);
});

test('a destination that the system does not send to is an error with its reason', async (t) => {
  const node = await pushing(t);
  await startPush(node, 0, { protocol: 'mpegts', url: 'udp://127.255.255.255:4000' });
  new Feed(await publish(node, 'live'), CODED);
  const { reason } = await inState(node, 'error');
  t.is(reason, 'the system does not send to 127.255.255.255:4000: EACCES');
});
