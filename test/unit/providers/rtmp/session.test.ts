import { connect } from 'node:net';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { VirtualHost } from '../../../../src/config/elements/vhost.ts';
import type { VirtualHostConfig } from '../../../../src/config/model.ts';
import { readConfig } from '../../../../src/config/read.ts';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { isAmfObject, type AmfObject } from '../../../../src/protocols/rtmp/amf-value.ts';
import { ChunkStream } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import {
  encodeNumber,
  encodeUserControl,
  MessageType,
  UserControl,
  type RtmpMessage,
} from '../../../../src/protocols/rtmp/message.ts';
import { logStreams } from '../../../../src/server/stream-log.ts';
import { aac, h264 } from '../../../support/rtmp/flv-media.ts';
import { RtmpClient, type RtmpClientOptions } from '../../../support/rtmp/rtmp-client.ts';
import { startRtmp, type RtmpSetup } from '../../../support/rtmp/rtmp-server.ts';
import { until } from '../../../support/time/until.ts';

async function setUp(t: ExecutionContext, setup: RtmpSetup = {}) {
  const server = await startRtmp(setup);
  t.teardown(() => server.close());
  const clients: RtmpClient[] = [];
  t.teardown(() => clients.forEach((client) => client.close()));
  const keep = (client: RtmpClient) => {
    clients.push(client);
    return client;
  };
  return {
    ...server,
    open: async () => keep(await RtmpClient.open(server)),
    connect: async (options: Partial<RtmpClientOptions> = {}) =>
      keep(await RtmpClient.connect({ ...server, ...options })),
    publish: async (key = 'live', options: Partial<RtmpClientOptions> = {}) =>
      keep(await RtmpClient.publish(key, { ...server, ...options })),
    /** The reasons for which sessions were closed. */
    reasons: () => server.lines.map(({ msg }) => String(msg)).filter((msg) => msg.startsWith('RTMP session closed')),
  };
}

/** Two seconds of what OBS sends. */
function sendMedia(client: RtmpClient, start = 0): void {
  const [video, audio] = [h264(), aac()];
  client.metadata({
    videocodecid: 7,
    audiocodecid: 10,
    width: 66,
    height: 50,
    framerate: 25,
    videodatarate: 2500,
    audiodatarate: 160,
  });
  client.video(video.config, start);
  client.audio(audio.config, start);
  for (let i = 0; i < 50; i++) {
    client.video(video.frames[i % 2] as Buffer, start + i * 40);
    client.audio(audio.frames[i % 10] as Buffer, start + Math.round((i * 1024) / 48));
  }
}

test('an encoder that speaks like OBS becomes a stream with two tracks', async (t) => {
  const server = await setUp(t);
  const client = await server.publish('live?token=secret');
  sendMedia(client);
  const { recordings } = server;
  await until('all packets', () => recordings[0]?.packets.length === 100);
  const { input, packets, tracks } = recordings[0] as (typeof recordings)[number];
  t.is(input.name, 'live');
  t.is(tracks.length, 1);
  t.like(input.tracks[0], {
    id: 0,
    name: 'Video',
    codec: 'H264',
    width: 66,
    height: 50,
    framerate: 25,
    bitrate: 2_500_000,
    bypass: false,
  });
  t.like(input.tracks[1], { id: 1, name: 'Audio', codec: 'AAC', samplerate: 48_000, channels: 2, bitrate: 160_000 });
  const video = packets.filter(({ track }) => track.type === 'video');
  t.deepEqual(
    video.slice(0, 3).map(({ dts, key }) => [dts, key]),
    [
      [0, true],
      [3600, false],
      [7200, true],
    ],
  );
  const audio = packets.filter(({ track }) => track.type === 'audio');
  t.deepEqual(
    audio.map(({ dts }) => dts),
    Array.from({ length: 50 }, (_, i) => i * 1024),
  );
  t.true(input.counters.in.totalBytes > 5000);
  t.is(input.counters.providers.rtmp, 1);
  t.is(input.source.url, `rtmp://127.0.0.1:${server.port}/app/live`);
  t.deepEqual(input.source.connection?.(), {
    transport: 'TCP',
    protocol: 'TCP',
    localAddress: '127.0.0.1',
    localPort: server.port,
    remoteAddress: '127.0.0.1',
    remotePort: client.socket.localPort,
  });
  client.close();
  await until('the stream ends', () => recordings[0]?.closed !== undefined);
  await until('the session is gone', () => server.server.sessions === 0);
  t.false(server.lines.some((line) => JSON.stringify(line).includes('secret')));
});

test('data messages of either encoding become events at the time of the media, malformed ones do no harm', async (t) => {
  const { publish, recordings } = await setUp(t);
  const client = await publish();
  const data = (type: number, body: Buffer) => client.message(ChunkStream.Audio, type, 0, body);
  data(MessageType.DataAmf0, encodeAmf0('onTextData', { text: 'before the media' }));
  sendMedia(client);
  await until('the stream is there', () => (recordings[0]?.packets.length ?? 0) >= 100);
  data(MessageType.DataAmf0, encodeAmf0('onTextData', { text: 'one' }));
  data(MessageType.DataAmf0, Buffer.concat([encodeAmf0('onTextData'), Buffer.of(3, 0, 99)]));
  data(MessageType.DataAmf3, Buffer.concat([Buffer.of(0), encodeAmf0('onCuePoint', { name: 'two' })]));
  const events = () => recordings[0]?.packets.filter(({ track }) => track.type === 'data') ?? [];
  await until('both have come', () => events().length >= 2);
  t.deepEqual(
    events().map(({ data: body }) => body),
    [encodeAmf0('onTextData', { text: 'one' }), encodeAmf0('onCuePoint', { name: 'two' })],
  );
  t.true(events().every(({ pts }) => pts > 90_000));
});

test('the answers of connect and publish are those that encoders wait for', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  const answer = client.heard.find(({ name }) => name === '_result');
  t.true(answer !== undefined && 'fmsVer' in answer.object);
  t.like(answer?.args[0], { code: 'NetConnection.Connect.Success', level: 'status', objectEncoding: 0 });
  t.true((answer?.object.fourCcList as string[]).includes('hvc1'));
  // several tracks, modifiers and nanoseconds (CapsExMask), and CanForward for each codec
  t.is(answer?.object.capsEx, 0x01 | 0x02 | 0x04 | 0x08);
  t.like(answer?.object.videoFourCcInfoMap, { avc1: 4, hvc1: 4, av01: 4, vp09: 4, vp08: 4 });
  t.like(answer?.object.audioFourCcInfoMap, { mp4a: 4, Opus: 4, '.mp3': 4 });
  t.deepEqual(client.messages.map(({ type }) => type).slice(0, 2), [
    MessageType.WindowAckSize,
    MessageType.SetPeerBandwidth,
  ]);
  await client.publish('live');
  const named = client.heard.find(({ name }) => name === 'onFCPublish');
  t.like(named?.args[0], { code: 'NetStream.Publish.Start', description: 'live' });
  t.like(client.statuses()[0], { code: 'NetStream.Publish.Start', level: 'status' });
  t.true(
    client.messages.some(
      ({ type, payload }) => type === MessageType.UserControl && payload.readUInt16BE(0) === UserControl.StreamBegin,
    ),
  );
});

test('Enhanced RTMP is neither offered nor taken when it is off', async (t) => {
  const server = await setUp(t, { extended: false });
  const client = await server.publish();
  t.false('fourCcList' in (client.heard.find(({ name }) => name === '_result')?.object ?? {}));
  client.video(Buffer.from('90687663310102', 'hex'), 0);
  await client.ended();
  t.regex(server.reasons()[0] ?? '', /Enhanced RTMP, which is off/);
});

for (const digest of [0, 1] as const) {
  test(`a handshake with a digest of scheme ${digest}`, async (t) => {
    const server = await setUp(t);
    const client = await server.publish('live', { digest });
    sendMedia(client);
    await until('all packets', () => server.recordings[0]?.packets.length === 100);
    t.deepEqual(server.reasons(), []);
  });
}

for (const chunkSize of [1, 128, 60_000]) {
  test(`chunks of ${chunkSize} bytes`, async (t) => {
    const server = await setUp(t);
    const client = await server.publish('live', { chunkSize });
    sendMedia(client);
    await until('all packets', () => server.recordings[0]?.packets.length === 100);
    t.deepEqual(server.reasons(), []);
  });
}

test('commands of AMF3 encoding', async (t) => {
  const server = await setUp(t);
  const client = await server.open();
  const connectBody = Buffer.concat([
    Buffer.of(0),
    encodeAmf0('connect', 1),
    Buffer.from('110a0b0107617070060761707001', 'hex'),
  ]);
  client.message(ChunkStream.Command, MessageType.CommandAmf3, 0, connectBody);
  await client.until('answer', () => client.heard.some(({ name }) => name === '_result'));
  client.message(
    ChunkStream.Command,
    MessageType.CommandAmf3,
    0,
    Buffer.concat([Buffer.of(0), encodeAmf0('createStream', 2, null)]),
  );
  await client.until('stream', () =>
    client.heard.some(({ name, transactionId }) => name === '_result' && transactionId === 2),
  );
  client.message(
    ChunkStream.Command,
    MessageType.CommandAmf3,
    0,
    Buffer.concat([Buffer.of(0), encodeAmf0('publish', 3, null, 'live', 'live')]),
  );
  await client.until('status', () => client.statuses().length > 0);
  t.is(client.statuses()[0]?.code, 'NetStream.Publish.Start');
});

test('pings are answered and bytes acknowledged', async (t) => {
  const server = await setUp(t);
  const client = await server.publish();
  client.message(ChunkStream.Control, MessageType.WindowAckSize, 0, encodeNumber(5000));
  client.message(ChunkStream.Control, MessageType.UserControl, 0, encodeUserControl(UserControl.PingRequest, 77));
  sendMedia(client);
  const pong = encodeUserControl(UserControl.PingResponse, 77);
  await client.until('pong', () => client.messages.some(({ payload }) => payload.equals(pong)));
  const acknowledged = (): RtmpMessage | undefined =>
    client.messages.find(({ type }) => type === MessageType.Acknowledgement);
  await client.until('acknowledgement', () => acknowledged() !== undefined);
  t.true((acknowledged()?.payload.readUInt32BE() as number) >= 5000);
});

test('commands that ask for answers get them, unknown ones an error', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  t.is((await client.call('_checkbw', null)).name, '_result');
  t.deepEqual((await client.call('getStreamLength', null, 'live')).args, [0]);
  await t.throwsAsync(client.call('toString', null), {
    message: /NetConnection.Call.Failed: Method not found: toString/,
  });
  await t.throwsAsync(client.call('makeCoffee', null), { message: /Method not found: makeCoffee/ });
  await client.publish('live');
});

test('an aggregate message is taken apart', async (t) => {
  const server = await setUp(t);
  const client = await server.publish();
  const [video, audio] = [h264(), aac()];
  const part = (type: number, time: number, body: Buffer) => {
    const head = Buffer.alloc(11);
    head[0] = type;
    head.writeUIntBE(body.length, 1, 3);
    head.writeUIntBE(time, 4, 3);
    return Buffer.concat([head, body, encodeNumber(body.length + 11)]);
  };
  client.message(
    ChunkStream.Video,
    MessageType.Aggregate,
    1000,
    Buffer.concat([
      part(9, 50, video.config),
      part(8, 50, audio.config),
      part(9, 50, video.frames[0] as Buffer),
      part(8, 50, audio.frames[0] as Buffer),
      part(9, 90, video.frames[1] as Buffer),
    ]),
  );
  await until('packets', () => server.recordings[0]?.packets.length === 3);
  t.deepEqual(
    server.recordings[0]?.packets.map(({ dts }) => dts),
    [0, 0, 3600],
  );
});

const REFUSALS: readonly (readonly [string, Partial<RtmpClientOptions>, RtmpSetup, RegExp])[] = [
  [
    'an application that is not there',
    { app: 'nothing' },
    {},
    /Connect.Rejected: Could not find the application: \[default\/nothing\]/,
  ],
  ['an application without RTMP', { app: 'closed' }, {}, /Connect.Rejected: RTMP is not enabled: \[#default#closed\]/],
  [
    'a host name that no virtual host has',
    { host: 'elsewhere.test' },
    { hostNames: ['live.test'] },
    /virtual host: \[elsewhere.test\]/,
  ],
];

for (const [name, options, setup, message] of REFUSALS) {
  test(`an RTMP session is rejected: ${name}`, async (t) => {
    const server = await setUp(t, setup);
    await t.throwsAsync(server.connect(options), { message });
    await until('the session is gone', () => server.server.sessions === 0);
    t.is(server.reasons().length, 1);
  });
}

test('refuse everyone where access is controlled', async (t) => {
  const enables = { providers: 'srt, RTMP', publishers: '' };
  const server = await setUp(t, { signedPolicy: { enables } as RtmpSetup['signedPolicy'] });
  await t.throwsAsync(server.publish('live'), { message: /Publish.Rejected: Access denied/ });
  await until('the session is gone', () => server.server.sessions === 0);
});

test('the virtual host is chosen by the host of the URL', async (t) => {
  const server = await setUp(t, { hostNames: ['live.test'] });
  await server.publish('live', { host: 'LIVE.test' });
  t.is(server.server.sessions, 1);
});

test('an application is made of the template for a publisher, not for a client that only connects or is rejected', async (t) => {
  const server = await setUp(t);
  const reading = readConfig(VirtualHost, {
    name: 'on-demand',
    host: { names: ['demand.test'] },
    applications: [{ name: '*', type: 'live', providers: { rtmp: {} } }],
  });
  if (!reading.ok) return t.fail();
  server.registry.deleteVhost('default', 'another comes');
  const vhost = server.registry.createVhost(reading.config as VirtualHostConfig, false);
  const client = await server.connect({ host: 'demand.test', app: 'new' });
  t.deepEqual([...vhost.applications.keys()], []);
  await t.throwsAsync(server.publish('a/b\u0000', { host: 'demand.test', app: 'other' }));
  t.deepEqual([...vhost.applications.keys()], []);
  await client.publish('live');
  t.deepEqual([...vhost.applications.keys()], ['new']);
});

test('a name that is taken is refused', async (t) => {
  const server = await setUp(t);
  await server.publish('live');
  await t.throwsAsync(server.publish('live'), { message: 'NetStream.Publish.BadName: Stream already exists' });
  await server.publish('other');
  t.is(server.recordings.length, 0);
});

test('a name that is taken changes hands where duplicates are not blocked', async (t) => {
  const server = await setUp(t, { rtmp: { blockDuplicateStreamName: false } });
  const first = await server.publish('live');
  sendMedia(first);
  await until('the first stream', () => server.recordings.length === 1);
  const second = await server.publish('live');
  sendMedia(second);
  await first.ended();
  t.like(first.statuses().at(-1), { level: 'error', code: 'NetStream.Publish.Failed' });
  await until('the second stream', () => server.recordings[1]?.packets.length === 100);
  t.truthy(server.recordings[0]?.closed);
  t.is(server.recordings[1]?.closed, undefined);
});

test('publishers of an application are limited', async (t) => {
  const server = await setUp(t, { rtmp: { maxConnection: 1 } });
  const first = await server.publish('one');
  await t.throwsAsync(server.publish('two'), { message: /NetStream.Publish.Failed: Too many connections: at most 1/ });
  first.close();
  await until('the session is gone', () => server.server.sessions === 0);
  await server.publish('two');
});

test('past the output profiles a stream is put out under its own name as it comes, unless that is taken', async (t) => {
  const server = await setUp(t, { rtmp: { passthroughOutputProfile: true } });
  const application = server.registry.vhost('default').application('app');
  sendMedia(await server.publish('live'));
  const { input } = await until('the stream', () => server.recordings[0]);
  const output = await until('what is put out', () => application.output('live'));
  t.true(input.isPassthrough);
  t.deepEqual(
    output.tracks,
    input.tracks.map((track) => ({ ...track, source: track.id, bypass: true })),
  );
  t.deepEqual(output.playlists, []);
  application.addOutput(input, 'taken');
  const second = await server.publish('taken');
  sendMedia(second);
  await second.ended();
  t.like(second.statuses().at(-1), {
    level: 'error',
    code: 'NetStream.Publish.Failed',
    description: 'Stream already exists',
  });
  t.false(input.closed);
});

test('a key that is no name is refused', async (t) => {
  const server = await setUp(t);
  await t.throwsAsync(server.publish('a/b?c=secret'), {
    message: 'NetStream.Publish.BadName: Invalid stream name: [a/b]',
  });
});

test('playing is refused in so many words', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  client.command('play', 0, null, 'live');
  await client.until('refusal', () => client.statuses().length > 0);
  t.like(client.statuses()[0], { level: 'error', code: 'NetStream.Play.Failed' });
  await client.ended();
});

test('a stream that is deleted elsewhere notifies its publisher and disconnects it', async (t) => {
  const server = await setUp(t);
  const client = await server.publish();
  sendMedia(client);
  await until('the stream', () => server.recordings.length === 1);
  server.recordings[0]?.input.close('deleted by the API');
  await client.ended();
  t.like(client.statuses().at(-1), { code: 'NetStream.Publish.Failed', description: 'deleted by the API' });
  t.is(server.reasons().length, 1);
});

test('an encoder may end its stream and publish again on the same connection', async (t) => {
  const server = await setUp(t);
  const client = await server.publish('one');
  sendMedia(client);
  await until('the stream', () => server.recordings[0]?.packets.length === 100);
  client.command('FCUnpublish', 9, null, 'one');
  client.command('deleteStream', 10, null, client.streamId);
  await until('its end', () => server.recordings[0]?.closed !== undefined);
  await client.until('word of its end', () =>
    client.statuses().some(({ code }) => code === 'NetStream.Unpublish.Success'),
  );
  await client.publish('two');
  sendMedia(client);
  await until('the other stream', () => server.recordings[1]?.packets.length === 100);
  t.is(server.server.sessions, 1);
});

test('a connection that does nothing but publish and unpublish is ended', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  client.streamId = 1;
  for (let i = 0; i < 300; i++) {
    client.command('publish', 0, null, 'live', 'live');
    client.command('FCUnpublish', 0, null, 'live');
  }
  await client.ended();
  t.deepEqual(server.reasons(), ['RTMP session closed: more than 256 streams on one connection']);
});

test('a connection may create as many streams as it may publish', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  const created = await Promise.all(Array.from({ length: 100 }, () => client.call('createStream', null)));
  t.deepEqual(
    created.map(({ args }) => args[0]),
    created.map((_, i) => i + 1),
  );
});

test('log lines after the end of a stream no longer name it', async (t) => {
  const server = await setUp(t);
  const client = await server.publish('one');
  client.command('FCUnpublish', 9, null, 'one');
  await until('its end', () => server.lines.some(({ msg }) => msg === 'the publisher has unpublished the stream'));
  client.close();
  await until('the end', () => server.reasons().length === 1);
  t.like(server.lines.at(-2), { msg: 'the publisher has unpublished the stream', app: 'app', stream: 'one' });
  t.is(server.lines.at(-1)?.app, 'app');
  t.is(server.lines.at(-1)?.stream, undefined);
});

test('the end of a published stream is the only information about the end of its client', async (t) => {
  for (const ends of ['with the connection', 'before the connection', 'without media']) {
    const server = await setUp(t);
    logStreams(server.registry, server.log);
    const client = await server.publish();
    if (ends !== 'without media') {
      sendMedia(client);
      await until('the stream', () => server.recordings[0]?.packets.length === 100);
    }
    if (ends === 'before the connection') {
      client.command('FCUnpublish', 0, null, 'live');
      await until('its end', () => server.recordings[0]?.closed !== undefined);
    }
    client.close();
    await until('the session is gone', () => server.server.sessions === 0);
    const lines = server.lines.filter(({ level }) => Number(level) >= 30).map(({ msg }) => String(msg));
    const expected = ends === 'without media' ? [/^RTMP session closed: /] : [/^published/, /^ended after /];
    t.is(lines.length, expected.length, lines.join('; '));
    for (const [at, line] of lines.entries()) t.regex(line, expected[at] as RegExp);
    t.is(server.reasons().length, 1);
  }
});

test('a second stream on a connection that publishes is refused, the first goes on', async (t) => {
  const server = await setUp(t);
  const client = await server.publish('one');
  await t.throwsAsync(client.publish('two'), { message: /already publishing/ });
  sendMedia(client);
  await until('the stream', () => server.recordings[0]?.packets.length === 100);
  t.is(server.recordings[0]?.input.name, 'one');
});

test('faults of media are logged with the stream they belong to', async (t) => {
  const server = await setUp(t);
  const client = await server.publish('broken');
  client.video(Buffer.from([0x91, ...Buffer.from('nope'), 0]), 0);
  client.close();
  await until('the fault', () => server.lines.some(({ msg }) => /"nope" is not supported/.test(String(msg))));
  t.like(
    server.lines.find(({ msg }) => /"nope"/.test(String(msg))),
    { app: 'app', stream: 'broken', count: 1 },
  );
});

test('a malformed data message is counted and the publisher goes on, a malformed command ends it', async (t) => {
  const server = await setUp(t);
  const client = await server.publish();
  sendMedia(client);
  const { recordings } = server;
  await until('all packets', () => recordings[0]?.packets.length === 100);
  for (const [type, body] of [
    [MessageType.DataAmf0, '02000a6f6e4d65746144617461 08 00000001 0005 77696474'],
    [MessageType.DataAmf0, 'ff'],
    [MessageType.DataAmf3, '00 11 ff'],
  ] as const)
    client.message(ChunkStream.Audio, type, 2000, Buffer.from(body.replaceAll(' ', ''), 'hex'));
  sendMedia(client, 2000);
  await until('all packets', () => recordings[0]?.packets.length === 200);
  const told = () => server.lines.filter(({ msg }) => String(msg).startsWith('malformed data message: '));
  await until('the faults', () => told().length === 3);
  t.like(told()[0], { app: 'app', stream: 'live', count: 1 });
  t.deepEqual(server.reasons(), []);
  client.message(ChunkStream.Command, MessageType.CommandAmf0, 0, Buffer.of(0xff));
  await client.ended();
  t.regex(server.reasons()[0] ?? '', /unknown AMF0 marker 0xff/);
});

test('a malformed data message of a client that publishes nothing ends the session', async (t) => {
  const server = await setUp(t);
  const client = await server.connect();
  client.message(ChunkStream.Audio, MessageType.DataAmf0, 0, Buffer.of(0xff));
  await client.ended();
  t.regex(server.reasons()[0] ?? '', /unknown AMF0 marker 0xff/);
});

test('silence longer than is allowed ends the session', async (t) => {
  const server = await setUp(t, { rtmp: { packetSilenceTimeoutMs: 200 } });
  const client = await server.publish();
  sendMedia(client);
  await client.ended();
  t.regex(server.reasons()[0] ?? '', /no packet for 200 ms/);
  t.is(server.recordings[0]?.packets.length, 100);
});

test('a publisher that never sends media is dropped', async (t) => {
  const server = await setUp(t, { rtmp: { firstMediaWaitTimeoutMs: 100 } });
  const client = await server.publish();
  client.metadata({ videocodecid: 7 });
  await client.ended();
  t.regex(server.reasons()[0] ?? '', /no playable audio or video within 100 ms/);
  t.is(server.recordings.length, 0);
});

test('the server closes every session with it', async (t) => {
  const server = await setUp(t);
  const [publisher, idle] = [await server.publish(), await server.connect()];
  await server.server.close();
  await Promise.all([publisher.ended(), idle.ended()]);
  await until('no session', () => server.server.sessions === 0);
  t.deepEqual([publisher.socket.destroyed, idle.socket.destroyed], [true, true]);
});

const MISBEHAVIOUR: readonly (readonly [string, (client: RtmpClient) => void, RegExp])[] = [
  ['a command before connect', (client) => client.command('createStream', 1, null), /createStream before connect/],
  [
    'a message that is too long before publishing',
    (client) => client.send([Buffer.from('0600000001000109000000000000', 'hex')]),
    /message of 65537 bytes/,
  ],
  [
    'a body that is no AMF',
    (client) => client.message(ChunkStream.Command, MessageType.CommandAmf0, 0, Buffer.of(0x1f)),
    /unknown AMF0 marker/,
  ],
  [
    'endless data without publishing',
    (client) => {
      for (let i = 0; i < 300; i++) client.message(ChunkStream.Video, MessageType.Video, 0, Buffer.alloc(1000));
    },
    /bytes without publishing/,
  ],
];

for (const [name, misbehave, reason] of MISBEHAVIOUR) {
  test(`${name} ends the session, and the log says why once`, async (t) => {
    const server = await setUp(t);
    const client = await server.open();
    misbehave(client);
    await client.ended();
    t.is(server.reasons().length, 1);
    t.regex(server.reasons()[0] ?? '', reason);
  });
}

test('unfinished messages of all sessions together are limited; the session with the most ends, and gives back what it held', async (t) => {
  const server = await setUp(t, { rtmp: { firstMediaWaitTimeoutMs: 60_000 } });
  const length = 8 * 1024 * 1024;
  // The beginning of a video message of 8 MiB.
  const begin = (client: RtmpClient) => {
    const header = Buffer.alloc(12);
    header[0] = 6;
    header.writeUIntBE(length, 4, 3);
    header[7] = MessageType.Video;
    header.writeUInt32LE(1, 8);
    client.send([Buffer.concat([header, Buffer.alloc(128)])]);
  };
  const hold = async (name: string) => begin(await server.publish(name));
  for (let i = 0; i < 32; i++) await hold(`s${i}`);
  t.deepEqual(server.reasons(), []);
  await hold('one more');
  await until('a session has ended', () => server.reasons().length === 1);
  t.regex(server.reasons()[0] ?? '', /too many unfinished messages/);
  const small = await server.publish('small');
  sendMedia(small);
  await until('another one publishes all the same', () => server.recordings.some(({ packets }) => packets.length > 0));
});

test('bytes that are no RTMP end the session', async (t) => {
  const server = await setUp(t);
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await once(socket, 'close');
  t.regex(server.reasons()[0] ?? '', /version 71/);
});

test('the connect object may hold anything', async (t) => {
  const server = await setUp(t);
  const client = await server.connect({
    properties: {
      app: 'app',
      audioCodecs: 3575,
      pageUrl: undefined,
      nested: { deep: [1, null] },
      when: new Date(0),
    } as AmfObject,
  });
  t.true(client.heard.some(({ args }) => isAmfObject(args[0])));
});
