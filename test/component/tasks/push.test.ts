import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import { StartCaches } from '../../../src/core/start-caches.ts';
import type { OutputStream } from '../../../src/core/stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { OutboundGuard } from '../../../src/protocols/outbound/guard.ts';
import { PushError } from '../../../src/tasks/push/error.ts';
import { ipCarrier } from '../../../src/tasks/push/ip-carriers.ts';
import { PushKind } from '../../../src/tasks/push/kind.ts';
import { readPushProgress, type PushReport } from '../../../src/tasks/push/progress.ts';
import { rtmpSink } from '../../../src/tasks/push/rtmp-sink.ts';
import { tsSink } from '../../../src/tasks/push/ts-sink.ts';
import { SrtListener } from '../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../src/protocols/srt/runtime.ts';
import { SrtCarriers } from '../../../src/tasks/push/srt-carrier.ts';
import { keepStarts } from '../../../src/tasks/push/starts.ts';
import { pushSpecJson, type PushSpec } from '../../../src/tasks/push/spec.ts';
import { openAlone } from '../../support/cluster.ts';
import { codedPackets, tracksOf, type Coded } from '../../support/coded-packets.ts';
import { publish } from '../../support/counting-task.ts';
import { openTasks } from '../../support/fake-task.ts';
import { startRtmp } from '../../support/rtmp-server.ts';
import { freePorts } from '../../support/ports.ts';
import { until } from '../../support/until.ts';

const NAME = { kind: 'push', vhost: 'default', app: 'app', id: 'one' };
const KEPT = { persistent: true, withinMs: 5000 };

/** A node that pushes, whose log is kept. */
async function pushing(t: ExecutionContext, push: object = {}) {
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const guard = new OutboundGuard({
    action: 'pushing to',
    error: (reason) => new PushError(reason),
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
  });
  const srt = new SrtCarriers(guard, log);
  const caches = new StartCaches(new Registry(), 'pushed');
  const kind = new PushKind({
    sinks: { rtmp: rtmpSink(guard), mpegts: tsSink(ipCarrier(guard)), srt: tsSink(srt.open) },
    caches,
    log,
  });
  const publishers = { push: { connectionTimeout: 5000, sendTimeout: 2000, ...push } } as never;
  const node = openTasks(await openAlone(), kind, { publishers });
  const undo = keepStarts(node.registry, node.tasks.definitions, caches);
  t.teardown(async () => {
    undo();
    caches.close();
    await node.tasks.close();
    await srt.close();
    await node.cluster.close();
  });
  return { ...node, lines };
}

const videos = (packets: readonly Packet[]) => packets.filter(({ track }) => track.type === 'video');

type Node = Awaited<ReturnType<typeof pushing>>;

/** Plays coded packets on an output stream, some at once. */
class Feed {
  readonly packets: readonly Packet[];
  readonly output: OutputStream;
  #at = 0;

  constructor(output: OutputStream, coded: Coded) {
    this.packets = codedPackets(coded);
    this.output = output;
    output.setTracks(this.tracks);
  }

  get tracks(): readonly Track[] {
    return tracksOf(this.packets);
  }

  write(count: number): void {
    for (const packet of this.packets.slice(this.#at, this.#at + count)) this.output.write(packet);
    this.#at += count;
  }
}

const CODED: Coded = { video: { codec: 'H264', rate: 25, gop: 25 }, audio: 'AAC', seconds: 4 };

function push(node: Node, port: number, more: Partial<PushSpec> = {}): Promise<void> {
  const spec = {
    stream: { name: 'live', trackIds: [], variantNames: [] },
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${port}/app`,
    streamKey: 'very-secret-key',
    createdTime: Date.now(),
    ...more,
  };
  return node.everywhere.create(NAME, pushSpecJson(spec), KEPT);
}

const reportOf = (node: Node) => node.tasks.reports('push', 'default', 'app').get('one') as PushReport | undefined;
const inState = (node: Node, state: PushReport['state']) =>
  until(`the push is ${state}`, () => {
    const report = reportOf(node);
    return report?.state === state && report;
  });

test('a push is begun with its stream, arrives whole from its first key frame on, and ends with it', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  await push(node, server.port);
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
    const progress = readPushProgress(node.tasks.definitions.get(NAME)?.progress?.value);
    return progress.totalsentBytes > 0 && progress;
  });
  t.is(kept.totalsentBytes, kept.sentBytes);
  t.true(kept.finishTime >= kept.startTime);
});

test('a push is connected again, with a picture at once and the totals of before', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), CODED);
  await push(node, server.port);
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
  const server = await startRtmp();
  const { port } = server;
  await server.close();
  const node = await pushing(t);
  const feed = new Feed(await publish(node, 'live'), CODED);
  await push(node, port);
  await inState(node, 'error');
  feed.write(10);
  t.is(reportOf(node)?.sequence, 0);
  t.true(node.lines.some((line) => line.includes('refused the connection')));
  t.true(await node.everywhere.remove(NAME));
  t.is(reportOf(node), undefined);
});

test('codecs go as far as the server has said that it takes them', async (t) => {
  const coded: Coded = { video: { codec: 'H265' }, audio: 'OPUS', seconds: 1 };
  for (const extended of [true, false]) {
    const server = await startRtmp({ extended });
    t.teardown(() => server.close());
    const node = await pushing(t);
    const feed = new Feed(await publish(node, 'live'), coded);
    await push(node, server.port);
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

test('a server that does not answer is given up in time', async (t) => {
  const silent = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const node = await pushing(t, { connectionTimeout: 300 });
  new Feed(await publish(node, 'live'), CODED);
  await push(node, (silent.address() as { port: number }).port);
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
  await push(node, 0, { protocol: 'mpegts', url: `udp://127.0.0.1:${receiver.address().port}` });
  const feed = new Feed(await publish(node, 'live'), CODED);
  await inState(node, 'pushing');
  feed.write(250);
  await until('it is sent', () => (reportOf(node)?.sentBytes ?? 0) > 0);
  feed.output.input.close('over');
  await until('it waits', () => reportOf(node) === undefined);
  const sent = readPushProgress(await until('it is kept', () => node.tasks.definitions.get(NAME)?.progress?.value));
  await until('all has arrived', () => Buffer.concat(datagrams).length >= sent.sentBytes);
  t.true(datagrams.slice(0, -1).every(({ length }) => length === 7 * 188));
  const packets = Buffer.concat(datagrams);
  for (let at = 0; at < packets.length; at += 188) t.is(packets[at], 0x47);
});

test('an SRT listener that is not there is an error, and the call is made again when it is', async (t) => {
  const [port] = (await freePorts(1)) as [number];
  const node = await pushing(t, { connectionTimeout: 1000 });
  await push(node, 0, { protocol: 'srt', url: `srt://127.0.0.1:${port}?latency=50&streamid=called` });
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
    await node.everywhere.remove(NAME);
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
  t.true(await node.everywhere.remove(NAME));
});
