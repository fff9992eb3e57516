import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { kilnError } from '../../../../src/errors.ts';
import { codedPackets } from '../../../support/media/coded-packets.ts';
import { startPublisher, type PublisherOptions } from '../../../support/rtsp/publisher.ts';
import { freePair } from '../../../support/network/ports.ts';
import { RawPlayer } from '../../../support/rtsp/raw-player.ts';
import { shared } from '../../../support/runner/shared.ts';
import { until } from '../../../support/time/until.ts';

const coded = shared(() => codedPackets({ video: { codec: 'H264', gop: 10 }, audio: 'AAC', seconds: 2 }));

const start = (t: ExecutionContext, options: Partial<PublisherOptions> = {}) =>
  startPublisher(t, { packets: coded(), ...options });

const isVideo = ({ track }: Packet): boolean => track.type === 'video';
const sequenceOf = (packet: Buffer | undefined): number => packet?.readUInt16BE(2) ?? -1;
const timeOf = (packet: Buffer | undefined): number => packet?.readUInt32BE(4) ?? -1;

interface Info {
  readonly url: string;
  readonly seq: number;
  readonly rtptime: number;
}

function readInfo(field = ''): Info[] {
  return field.split(',').map((part) => {
    const { url = '', seq, rtptime } = Object.fromEntries(part.split(';').map((one) => one.split(/=(.*)/s, 2)));
    return { url, seq: Number(seq), rtptime: Number(rtptime) };
  });
}

test('a player gets a stream from the last key frame on, as RTP-Info says, with a report in front of each track', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port);
  const options = await player.ask('OPTIONS', '*');
  t.is(
    player.header(options, 'public'),
    'OPTIONS, DESCRIBE, PLAY, ANNOUNCE, RECORD, SETUP, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER',
  );
  const urls = await player.prepare();
  t.is(urls.length, 2);
  // the feed is there from DESCRIBE on
  const packets = coded();
  for (const packet of packets.slice(0, -1)) output.write(packet);
  t.is(output.sessions.size, 0);
  const play = await player.ask('PLAY');
  t.is(play.status, 200);
  const info = readInfo(player.header(play, 'rtp-info'));
  t.deepEqual(
    info.map(({ url }) => url),
    urls,
  );
  await until('media of both', () => player.of(0).length > 5 && player.of(2).length > 5);
  t.deepEqual(
    [0, 2].map((channel) => sequenceOf(player.of(channel)[0])),
    info.map(({ seq }) => seq),
  );
  for (const channel of [0, 2]) t.true(player.order.indexOf(`#${channel + 1}`) < player.order.indexOf(`#${channel}`));
  t.is((player.of(1)[0] as Buffer)[1], 200);
  // the first video packet has parameter sets, and the time of all tracks is one instant
  t.is((player.of(0)[0] as Buffer).readUInt8(12) & 31, 24);
  t.true(Math.abs((timeOf(player.of(0)[0]) - (info[0]?.rtptime ?? 0)) | 0) < 90_000);
  t.true(Math.abs((timeOf(player.of(2)[0]) - (info[1]?.rtptime ?? 0)) | 0) < 48_000);
  const [session] = output.sessions.values();
  t.is(session?.kind, 'rtsp');
  t.is(output.counters.publishers.rtsp, 1);
  t.true((session?.out.totalBytes ?? 0) > 0);
});

test('players share the packets of a stream, whatever their channels', async (t) => {
  const { port, output } = await start(t);
  const one = await RawPlayer.open(t, port);
  await one.prepare();
  const other = await RawPlayer.open(t, port);
  const [video = '', audio = ''] = other.controls(await other.ask('DESCRIBE'));
  const answers = [
    await other.setUp(video, 'RTP/AVP/TCP;unicast;interleaved=10-11'),
    // a pair that another track has: it gets a free one
    await other.setUp(audio, 'RTP/AVP/TCP;unicast;interleaved=10-11'),
  ];
  t.deepEqual(
    answers.map((answer) => /interleaved=([\d-]+)/.exec(other.header(answer, 'transport') ?? '')?.[1]),
    ['10-11', '0-1'],
  );
  for (const player of [one, other]) {
    player.tell('PLAY');
  }
  await until('both are listed', () => output.sessions.size === 2);
  for (const packet of coded()) output.write(packet);
  const count = (player: RawPlayer, channel: number) => player.of(channel).length;
  await until('all is there', () => count(one, 0) > 20 && count(one, 0) === count(other, 10));
  t.deepEqual(one.of(0), other.of(10));
  t.deepEqual(one.of(2), other.of(0));
});

test('a player pauses, goes on at a key frame with another RTP-Info, and leaves', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port);
  await player.prepare();
  const packets = coded();
  for (const packet of packets.slice(0, 40)) output.write(packet);
  t.is((await player.ask('PLAY')).status, 200);
  await until('it plays', () => player.of(0).length > 0);
  t.is((await player.ask('PAUSE')).status, 200);
  const before = player.of(0).length;
  for (const packet of packets.slice(40)) output.write(packet);
  t.is((await player.ask('GET_PARAMETER')).status, 200);
  t.is(player.of(0).length, before);
  const again = await player.ask('PLAY');
  const [video] = readInfo(player.header(again, 'rtp-info'));
  await until('it goes on', () => player.of(0).length > before);
  t.is(sequenceOf(player.of(0)[before]), video?.seq ?? -2);
  t.is((await player.ask('TEARDOWN')).status, 200);
  t.is(output.sessions.size, 0);
  t.is((await player.ask('PLAY')).status, 454);
});

test('one connection plays time and again, and nothing is left of it', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port);
  // a listener for each of them would be a warning, and so a failure
  for (let round = 0; round < 20; round++) {
    await player.prepare();
    t.is((await player.ask('TEARDOWN')).status, 200);
    player.session = undefined;
  }
  await player.prepare();
  for (const packet of coded()) output.write(packet);
  t.is((await player.ask('PLAY')).status, 200);
  await until('it plays', () => player.of(0).length > 0);
});

test('the end of a stream is a BYE for each track, and the end of the connection', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port);
  await player.prepare();
  for (const packet of coded()) output.write(packet);
  await player.ask('PLAY');
  output.input.close('the publisher left');
  await until('it is closed', () => player.closed);
  for (const channel of [1, 3]) t.is((player.of(channel).at(-1) as Buffer)[9], 203);
  t.is(output.sessions.size, 0);
});

test('a player that leaves before the first frame does not play', async (t) => {
  const { port, output, lines } = await start(t);
  const player = await RawPlayer.open(t, port);
  await player.prepare();
  player.tell('PLAY');
  await until('it is listed', () => output.sessions.size === 1);
  player.socket.destroy();
  await until('its session has ended', () => output.sessions.size === 0);
  // the one that follows does: what the first waited for has come
  const next = await RawPlayer.open(t, port);
  await next.prepare();
  for (const packet of coded()) output.write(packet);
  t.is((await next.ask('PLAY')).status, 200);
  await until('it plays', () => next.of(0).length > 0);
  t.is(lines.filter((line) => line.includes('the RTSP viewer plays')).length, 1);
});

test('a kicked player is disconnected, and the id of its session is kept out', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port, '/app/talk?session=me');
  await player.prepare();
  for (const packet of coded()) output.write(packet);
  await player.ask('PLAY');
  output.sessions.get('me')?.kick();
  await until('it is closed', () => player.closed);
  const again = await RawPlayer.open(t, port, '/app/talk?session=me');
  t.is((await again.ask('DESCRIBE')).status, 403);
});

test('media goes to UDP ports of the client, and reports from there keep its session', async (t) => {
  const { port, udpPort, output } = await start(t, { udp: true });
  const player = await RawPlayer.open(t, port);
  const [video = '', audio = ''] = player.controls(await player.ask('DESCRIBE'));
  const ports = [freePair(), freePair()] as const;
  const got = new Map<number, { data: Buffer; from: number }[]>();
  for (const first of ports)
    for (const local of [first, first + 1]) {
      const socket = createSocket('udp4');
      t.teardown(() => socket.close());
      got.set(local, []);
      socket.on('message', (data, { port: from }) => got.get(local)?.push({ data, from }));
      socket.bind(local, '127.0.0.1');
      await once(socket, 'listening');
    }
  const transport = (first: number) => `RTP/AVP;unicast;client_port=${first}-${first + 1}`;
  const answer = await player.setUp(video, transport(ports[0]));
  t.regex(
    player.header(answer, 'transport') ?? '',
    new RegExp(`;server_port=${udpPort}-${udpPort + 1};ssrc=[0-9A-F]{8}$`),
  );
  t.is((await player.setUp(audio, 'RTP/AVP/TCP;unicast;interleaved=0-1')).status, 461);
  t.is((await player.setUp(audio, transport(ports[1]))).status, 200);
  for (const packet of coded()) output.write(packet);
  const play = await player.ask('PLAY');
  const [videoInfo] = readInfo(player.header(play, 'rtp-info'));
  await until('both tracks come', () => ports.every((first) => (got.get(first)?.length ?? 0) > 3));
  t.is(got.get(ports[0])?.[0]?.from, udpPort);
  t.is(sequenceOf(got.get(ports[0])?.[0]?.data), videoInfo?.seq ?? -2);
  t.is(got.get(ports[0] + 1)?.[0]?.from, udpPort + 1);
  output.input.close('the publisher left');
  await until('a BYE', () => got.get(ports[0] + 1)?.at(-1)?.data[9] === 203);
});

for (const [title, method, path, fields, status] of [
  ['a stream that is not there', 'DESCRIBE', '/app/none', {}, 404],
  ['an application that is not there', 'DESCRIBE', '/none/talk', {}, 404],
  ['a playlist that is not there', 'DESCRIBE', '/app/talk/none', {}, 404],
  ['a URL without a stream', 'DESCRIBE', '/app', {}, 404],
  ['a description in another format', 'DESCRIBE', '/app/talk', { Accept: 'application/mheg' }, 406],
  ['an option that is not supported', 'DESCRIBE', '/app/talk', { Require: 'www.onvif.org/ver20/backchannel' }, 551],
  ['a session that is not there', 'PLAY', '/app/talk', { Session: 'abc' }, 454],
  ['playing before a track is set up', 'PLAY', '/app/talk', {}, 455],
  ['a pause before that', 'PAUSE', '/app/talk', {}, 455],
  ['the end of no session', 'TEARDOWN', '/app/talk', {}, 454],
  ['all tracks in one SETUP', 'SETUP', '/app/talk', { Transport: 'RTP/AVP/TCP;interleaved=0-1' }, 459],
  ['a track that is not there', 'SETUP', '/app/talk/trackID=9', { Transport: 'RTP/AVP/TCP;interleaved=0-1' }, 404],
  ['multicast', 'SETUP', '/app/talk/trackID=0', { Transport: 'RTP/AVP;multicast;client_port=4000-4001' }, 461],
  ['UDP where there are no ports', 'SETUP', '/app/talk/trackID=0', { Transport: 'RTP/AVP;client_port=4000-4001' }, 461],
  ['a track without a transport', 'SETUP', '/app/talk/trackID=0', {}, 461],
  ['an unknown method', 'RECORDING', '/app/talk', {}, 501],
] as const)
  test(`${title} is answered by ${status}, and the connection stays`, async (t) => {
    const { port } = await start(t);
    const player = await RawPlayer.open(t, port, path);
    t.is((await player.ask(method, player.url, fields)).status, status);
    t.is((await player.ask('OPTIONS')).status, 200);
  });

test('parameters that a client sets are not understood, and an empty request keeps its session', async (t) => {
  const { port } = await start(t);
  const player = await RawPlayer.open(t, port);
  await player.prepare();
  t.is((await player.ask('SET_PARAMETER', player.url, {}, 'a: b\r\n')).status, 451);
  t.is((await player.ask('SET_PARAMETER')).status, 200);
  t.is((await player.ask('GET_PARAMETER', player.url, {}, 'packets_received\r\n')).status, 200);
});

test('one track of several is played, and only all of them together', async (t) => {
  const { port, output } = await start(t);
  const player = await RawPlayer.open(t, port);
  const [video = '', audio = ''] = await player.prepare();
  t.is((await player.ask('PLAY', video)).status, 460);
  t.is((await player.ask('TEARDOWN', video)).status, 200);
  for (const packet of coded()) output.write(packet);
  t.is((await player.ask('PLAY', audio)).status, 200);
  for (const packet of coded()) output.write(packet);
  await until('audio comes', () => player.of(2).length > 0);
  t.is(player.of(0).length, 0);
  t.is((await player.setUp(video)).status, 455);
});

test('a slow player loses frames up to a key frame, its queue is bounded, and others miss nothing', async (t) => {
  const packets = coded();
  const { port, output } = await start(t);
  const slow = await RawPlayer.open(t, port);
  const quick = await RawPlayer.open(t, port);
  for (const player of [slow, quick]) {
    await player.prepare();
    player.tell('PLAY');
  }
  await until('both are listed', () => output.sessions.size === 2);
  for (const packet of packets.slice(0, 5)) output.write(packet);
  await until('the slow one plays', () => slow.of(0).length > 0);
  slow.socket.pause();
  const last = packets.at(-1) as Packet;
  const seconds = last.dts / last.track.timebase.den;
  const large = Buffer.alloc(200_000, 0x41);
  large.writeUInt32BE(large.length - 4, 0);
  const [first] = packets.filter(isVideo);
  const offset = timeOf(quick.of(0)[0]) - (first?.pts ?? 0);
  let frames = 0;
  for (let round = 1; round < 12; round++) {
    for (const packet of packets) {
      const { track } = packet;
      const shift = Math.round(round * seconds * track.timebase.den);
      const pts = packet.pts + shift;
      output.write({
        ...packet,
        dts: packet.dts + shift,
        pts,
        ...(isVideo(packet) && !packet.key && { data: large }),
      });
      if (!isVideo(packet) || ++frames % 4 > 0) continue;
      await until('the quick one has it', () => timeOf(quick.of(0).at(-1)) === (pts + offset) >>> 0);
    }
  }
  const [queue] = [...output.queues].filter(({ kind }) => kind === 'rtsp');
  t.true((queue?.dropped ?? 0) > 0);
  const gaps = (player: RawPlayer): number =>
    player.of(0).filter((packet, i, all) => i > 0 && ((sequenceOf(packet) - sequenceOf(all[i - 1])) & 0xffff) !== 1)
      .length;
  t.is(gaps(quick), 0);
  slow.socket.resume();
  await until('it goes on after a gap', () => gaps(slow) > 0);
  t.false(slow.closed);
});

test('users of the application are asked for name and password', async (t) => {
  const seen: (string | undefined)[] = [];
  const { port, lines } = await start(t, {
    vhost: { users: { user: [{ name: 'anna', password: 's3cret:1' }] } },
    access: {
      guards: [
        ({ client, url }) => {
          seen.push(client.user);
          t.notRegex(url, /s3cret/);
          return {};
        },
      ],
    },
  });
  const player = await RawPlayer.open(t, port);
  const challenge = await player.ask('DESCRIBE');
  t.is(challenge.status, 401);
  const challenges = challenge.headers.get('www-authenticate') ?? [];
  t.deepEqual(
    challenges.map((one) => one.replace(/nonce="[^"]+"/, 'nonce')),
    [
      'Digest realm="Kiln", qop="auth", nonce, algorithm=SHA-256',
      'Digest realm="Kiln", qop="auth", nonce, algorithm=MD5',
      'Basic realm="Kiln"',
    ],
  );
  const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  t.is((await player.ask('DESCRIBE', player.url, basic('anna:wrong'))).status, 401);
  t.is((await player.ask('DESCRIBE', player.url, basic('eva:s3cret:1'))).status, 401);
  t.deepEqual(seen, []);
  t.is((await player.ask('DESCRIBE', player.url, basic('anna:s3cret:1'))).status, 200);
  t.deepEqual(seen, ['anna']);
  // the connection is known from now on
  t.is((await player.setUp(`${player.url}/trackID=0`)).status, 200);
  t.true(lines.some((line) => /its credentials are not those of a user/.test(line)));
  t.false(lines.some((line) => line.includes('s3cret')));
});

test('a client that guesses passwords is disconnected', async (t) => {
  const { port } = await start(t, { vhost: { users: { user: [{ name: 'anna', password: 'x' }] } } });
  const player = await RawPlayer.open(t, port);
  const wrong = { Authorization: `Basic ${Buffer.from('anna:y').toString('base64')}` };
  for (let i = 0; i < 5 && !player.closed; i++) player.tell('DESCRIBE', player.url, wrong);
  await until('it is disconnected', () => player.closed);
  t.true(player.responses.length <= 5);
});

for (const [title, bytes] of [
  ['data that is not RTSP', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['TLS', Buffer.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3)],
  ['a header without an end', `OPTIONS * RTSP/1.0\r\nX: ${'a'.repeat(20_000)}`],
  ['a body that is too long', 'ANNOUNCE rtsp://a/b/c RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 999999999\r\n\r\n'],
  ['a length that is none', 'OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: -1\r\n\r\n'],
  ['another version', 'OPTIONS * RTSP/2.0\r\nCSeq: 1\r\n\r\n'],
  ['an answer', 'RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n'],
  ['a flood of requests', 'DESCRIBE rtsp://127.0.0.1/app/none RTSP/1.0\r\nCSeq: 1\r\n\r\n'.repeat(100)],
] as const)
  test(`${title} ends the connection, with the reason in the log`, async (t) => {
    const { port, lines, output } = await start(t);
    const player = await RawPlayer.open(t, port);
    player.socket.write(bytes);
    await until('it is closed', () => player.closed);
    t.true(lines.some((line) => line.includes('RTSP session closed: ')));
    t.is(output.sessions.size, 0);
  });

test('packets on channels that were never set up are ignored', async (t) => {
  const { port } = await start(t);
  const player = await RawPlayer.open(t, port);
  player.socket.write(Buffer.concat(Array.from({ length: 100 }, (_, i) => Buffer.of(0x24, i, 0, 2, 1, 2))));
  t.is((await player.ask('OPTIONS')).status, 200);
});

test('a client that leaves during its admission, or closes one half, leaves nothing', async (t) => {
  let admit = (): void => {};
  const { port, output } = await start(t, {
    access: { guards: [() => () => new Promise((resolve) => (admit = () => resolve({})))] },
  });
  const gone = await RawPlayer.open(t, port);
  gone.tell('DESCRIBE');
  await until('it asks', () => admit.length === 0 && String(admit).includes('resolve'));
  gone.socket.destroy();
  admit();
  const half = await RawPlayer.open(t, port);
  half.tell('DESCRIBE');
  half.socket.end();
  await until('it is closed', () => half.closed);
  t.is(output.sessions.size, 0);
  t.is(output.readers, 0);
});

test('feeds end with their players', async (t) => {
  const { port, output } = await start(t);
  const before = output.readers;
  for (let i = 0; i < 5; i++) {
    const player = await RawPlayer.open(t, port);
    await player.prepare();
    if (i % 2 === 0) player.tell('PLAY');
    t.is(output.readers, before + 1);
    player.socket.destroy();
    await until('it has left', () => output.readers === before);
  }
  t.is(output.sessions.size, 0);
});

test('the query of a signed URL comes as a password, for which a client without one is asked', async (t) => {
  const urls: string[] = [];
  const { port } = await start(t, {
    access: {
      guards: [
        ({ url }) => {
          urls.push(url);
          if (!url.endsWith('?policy=eyJ9&signature=abc')) throw kilnError('accessDenied');
          return {};
        },
      ],
    },
  });
  const player = await RawPlayer.open(t, port);
  const challenge = await player.ask('DESCRIBE');
  t.is(challenge.status, 401);
  t.deepEqual(challenge.headers.get('www-authenticate'), ['Basic realm="Kiln"']);
  const password = (text: string) => ({ Authorization: `Basic ${Buffer.from(`me:${text}`).toString('base64')}` });
  t.is((await player.ask('DESCRIBE', player.url, password('policy=eyJ9&signature=abd'))).status, 403);
  t.is((await player.ask('DESCRIBE', player.url, password('policy=eyJ9&signature=abc'))).status, 200);
  t.is(urls.at(-1), `rtsp://127.0.0.1:${port}/app/talk?policy=eyJ9&signature=abc`);
});
