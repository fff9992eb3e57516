import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import type { InputStream } from '../../../../src/core/input-stream.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { kilnError } from '../../../../src/errors.ts';
import { codedPackets } from '../../../support/media/coded-packets.ts';
import { freePair } from '../../../support/network/ports.ts';
import { startPublisher, type PublisherOptions } from '../../../support/rtsp/publisher.ts';
import { RawPlayer } from '../../../support/rtsp/raw-player.ts';
import { shared } from '../../../support/runner/shared.ts';
import { until } from '../../../support/time/until.ts';
import { mutate } from '../../../soak/mutate.ts';
import { Random } from '../../../soak/random.ts';

const coded = shared(() => codedPackets({ video: { codec: 'H264', gop: 10 }, audio: 'AAC', seconds: 2 }));

/** A server with a stream `talk`, where clients may publish others. */
async function start(t: ExecutionContext, options: Partial<PublisherOptions> = {}) {
  const providers = {
    rtsp: {
      maxConnection: 0,
      timestampMode: 'Auto',
      packetSilenceTimeoutMs: 0,
      blockDuplicateStreamName: true,
      ...options.vhost?.providers?.rtsp,
    },
  } as const;
  const server = await startPublisher(t, {
    packets: coded(),
    ...options,
    vhost: { publishers: { rtsp: { maxConnection: 0 } } as never, ...options.vhost, providers },
  });
  const inputs: InputStream[] = [];
  const packets: Packet[] = [];
  server.registry.on('input', (input) => {
    inputs.push(input);
    input.read({ packet: (packet) => void packets.push(packet) });
  });
  return { ...server, inputs, packets };
}

type Server = Awaited<ReturnType<typeof start>>;

/** The description of `talk` as that of another stream, and its interleaved packets as a player got them. */
async function recorded(t: ExecutionContext, { port, output }: Server, path = '/app/cam') {
  const player = await RawPlayer.open(t, port);
  const described = await player.ask('DESCRIBE');
  for (const [i, url] of player.controls(described).entries())
    await player.setUp(url, `RTP/AVP/TCP;unicast;interleaved=${2 * i}-${2 * i + 1}`);
  player.tell('PLAY');
  await until('it is listed', () => output.sessions.size === 1);
  for (const packet of coded()) output.write(packet);
  await until('most of it', () => player.of(0).length > 15 && player.of(2).length > 15);
  await player.ask('TEARDOWN');
  const sdp = described.body.toString().replaceAll('/app/talk/', `${path}/`);
  return { sdp, video: [...player.of(0)], audio: [...player.of(2)], reports: [...player.of(1), ...player.of(3)] };
}

const SDP = { 'Content-Type': 'application/sdp' };
const record = (pair: string): string => `RTP/AVP/TCP;unicast;interleaved=${pair};mode=record`;

function send(socket: RawPlayer['socket'], channel: number, packet: Buffer): void {
  const head = Buffer.of(0x24, channel, 0, 0);
  head.writeUInt16BE(packet.length, 2);
  socket.write(Buffer.concat([head, packet]));
}

/** Announces a stream, and sets up its tracks over TCP. */
async function announce(t: ExecutionContext, { port }: Server, sdp: string, path = '/app/cam'): Promise<RawPlayer> {
  const client = await RawPlayer.open(t, port, path);
  t.is((await client.ask('ANNOUNCE', client.url, SDP, sdp)).status, 200);
  for (const [i, track] of [0, 1].entries())
    t.is((await client.setUp(`${client.url}/trackID=${track}`, record(`${2 * i}-${2 * i + 1}`))).status, 200);
  return client;
}

const PLAIN = [
  'v=0',
  'o=- 0 0 IN IP4 127.0.0.1',
  's=No Name',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  'a=control:streamid=0',
  'm=audio 0 RTP/AVP 97',
  'a=rtpmap:97 L16/44100/2',
  'a=control:streamid=1',
  '',
].join('\r\n');

test('a client publishes over TCP: its stream has the frames as they were, and reports go back to it', async (t) => {
  const server = await start(t);
  const { sdp, video, audio, reports } = await recorded(t, server);
  const client = await announce(t, server, sdp);
  t.is(server.inputs.length, 0);
  t.is((await client.ask('RECORD')).status, 200);
  reports.forEach((report, i) => send(client.socket, i % 2 === 0 ? 1 : 3, report));
  for (let i = 0; i < Math.max(video.length, audio.length); i++) {
    for (const [channel, packet] of [
      [0, video[i]],
      [2, audio[i]],
    ] as const)
      if (packet !== undefined) send(client.socket, channel, packet);
  }
  await until('it is live', () => server.inputs.length === 1);
  const [input] = server.inputs as [InputStream];
  t.like(input.source, { type: 'Rtsp', kind: 'rtsp', url: `rtsp://127.0.0.1:${server.port}/app/cam` });
  t.is(input.source.connection, undefined);
  t.deepEqual(input.tracks.map(({ codec }) => codec).sort(), ['AAC', 'H264']);
  await until('it all came', () => server.packets.length > 60);
  const sent = coded().map(({ data }) => data.toString('hex'));
  for (const { data, track } of server.packets) if (track.type === 'audio') t.true(sent.includes(data.toString('hex')));
  t.true(input.counters.in.totalBytes > 1000);
  t.is(input.counters.lostPackets, 0);
  await until('a receiver report of each track', () => [1, 3].every((channel) => client.of(channel).length > 0));
  t.is((client.of(1)[0] as Buffer)[1], 201);
  // a pause changes nothing, and the client goes on when it likes
  t.is((await client.ask('PAUSE')).status, 200);
  t.is((await client.ask('RECORD')).status, 200);
  t.is((await client.ask('GET_PARAMETER')).status, 200);
  t.is((await client.ask('TEARDOWN', `${client.url}/trackID=0`)).status, 460);
  t.is((await client.ask('TEARDOWN')).status, 200);
  t.true(input.closed);
  // the connection can be used for another stream
  client.session = undefined;
  t.is((await client.ask('ANNOUNCE', client.url, SDP, sdp)).status, 200);
});

test('a client publishes over UDP, and only from its own ports', async (t) => {
  const server = await start(t, { udp: true });
  const { sdp, video, audio } = await recorded(t, server);
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  await client.ask('ANNOUNCE', client.url, SDP, sdp);
  const firsts = [freePair(), freePair()] as const;
  const sockets: Socket[] = [];
  for (const [track, first] of firsts.entries()) {
    const socket = createSocket('udp4');
    t.teardown(() => socket.close());
    sockets.push(socket);
    socket.bind(first, '127.0.0.1');
    await once(socket, 'listening');
    const transport = `RTP/AVP/UDP;unicast;client_port=${first}-${first + 1};mode=record`;
    const answer = await client.setUp(`${client.url}/trackID=${track}`, transport);
    t.is(
      client.header(answer, 'transport'),
      `RTP/AVP/UDP;unicast;client_port=${first}-${first + 1};server_port=${server.udpPort}-${server.udpPort + 1};mode=record`,
    );
  }
  // other clients cannot take the ports of this one, nor mix transports
  const other = await RawPlayer.open(t, server.port, '/app/other');
  await other.ask('ANNOUNCE', other.url, SDP, sdp.replaceAll('/cam/', '/other/'));
  const taken = `RTP/AVP;unicast;client_port=${firsts[0]}-${firsts[0] + 1};mode=record`;
  t.is((await other.setUp(`${other.url}/trackID=0`, taken)).status, 461);
  t.is((await client.setUp(`${client.url}/trackID=0`, record('0-1'))).status, 461);
  t.is((await client.ask('RECORD')).status, 200);
  const strange = createSocket('udp4');
  t.teardown(() => strange.close());
  for (const packet of video) strange.send(packet, server.udpPort, '127.0.0.1');
  let at = 0;
  await until('it is live', () => {
    // a few at a time, so that none is lost
    for (const end = at + 8; at < end; at++) {
      for (const [socket, packet] of [
        [sockets[0], video[at]],
        [sockets[1], audio[at]],
      ] as const)
        if (packet !== undefined) socket?.send(packet, server.udpPort, '127.0.0.1');
    }
    return server.packets.length > 40;
  });
  const expected = [...video, ...audio].reduce((sum, { length }) => sum + length, 0);
  t.true((server.inputs[0]?.counters.in.totalBytes ?? Infinity) <= expected);
  client.socket.destroy();
  await until('it has ended', () => server.inputs[0]?.closed === true);
});

for (const [title, end, reason] of [
  ['is kicked', ({ inputs }: Server) => inputs[0]?.close('kicked'), 'kicked'],
  ['closes the connection', (_: Server, client: RawPlayer) => client.socket.end(), 'the client closed the connection'],
  ['breaks the protocol', (_: Server, client: RawPlayer) => client.socket.write('\x00\x01\x02'), 'not RTSP'],
] as const)
  test(`a publisher that ${title} leaves no stream and no connection`, async (t) => {
    const server = await start(t);
    const { sdp, video, audio } = await recorded(t, server);
    const client = await announce(t, server, sdp);
    await client.ask('RECORD');
    for (const [i, packet] of video.entries()) {
      send(client.socket, 0, packet);
      if (audio[i] !== undefined) send(client.socket, 2, audio[i]);
    }
    await until('it is live', () => server.inputs.length === 1);
    end(server, client);
    await until('the stream has ended', () => server.inputs[0]?.closed === true);
    await until('the connection as well', () => client.closed);
    t.true(server.lines.some((line) => line.includes(reason)));
  });

test('the media that ends with a BYE of each track ends the stream, and TEARDOWN is still answered', async (t) => {
  const server = await start(t);
  const { sdp, video, audio } = await recorded(t, server);
  const client = await announce(t, server, sdp);
  await client.ask('RECORD');
  for (const [i, packet] of video.entries()) {
    send(client.socket, 0, packet);
    if (audio[i] !== undefined) send(client.socket, 2, audio[i]);
  }
  await until('it is live', () => server.inputs.length === 1);
  for (const [channel, [packet]] of [
    [1, video],
    [3, audio],
  ] as const) {
    const bye = Buffer.of(0x81, 203, 0, 1, 0, 0, 0, 0);
    packet?.copy(bye, 4, 8, 12);
    send(client.socket, channel, bye);
  }
  t.is((await client.ask('TEARDOWN')).status, 200);
  t.true(server.inputs[0]?.closed);
});

test('tracks that are not supported are named, set up and left out', async (t) => {
  const server = await start(t);
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 200);
  t.is((await client.setUp(`${client.url}/streamid=1`, record('2-3'))).status, 200);
  // nothing that could be received
  t.is((await client.ask('RECORD')).status, 455);
  t.is((await client.setUp(`${client.url}/streamid=0`, record('0-1'))).status, 200);
  t.is((await client.ask('RECORD')).status, 200);
  t.true(server.lines.some((line) => line.includes('"encoding":"L16"') && line.includes('is ignored')));
});

test('the names of streams are given once, and the one that has it goes on', async (t) => {
  const server = await start(t);
  const { sdp } = await recorded(t, server, '/app/talk');
  const client = await announce(t, server, sdp, '/app/talk');
  t.is((await client.ask('RECORD')).status, 403);
  t.false(server.output.input.closed);
  t.true(server.lines.some((line) => line.includes('already')));
});

test('a stream of an application that allows it is taken over', async (t) => {
  const server = await start(t, { vhost: { providers: { rtsp: { blockDuplicateStreamName: false } as never } } });
  const { sdp } = await recorded(t, server, '/app/talk');
  const client = await announce(t, server, sdp, '/app/talk');
  t.is((await client.ask('RECORD')).status, 200);
  t.true(server.output.input.closed);
});

for (const [title, path, fields, body, status] of [
  ['a URL without a stream', '/app', SDP, PLAIN, 404],
  ['a URL with a playlist', '/app/cam/abr', SDP, PLAIN, 404],
  ['an application that is not there', '/none/cam', SDP, PLAIN, 404],
  ['a name that no stream may have', '/app/a%2Fb', SDP, PLAIN, 400],
  ['another description than SDP', '/app/cam', { 'Content-Type': 'application/mpeg4-iod' }, PLAIN, 415],
  ['no description', '/app/cam', {}, '', 415],
  ['a description without supported tracks', '/app/cam', SDP, PLAIN.replace('H264', 'THEORA'), 415],
  ['a description with too many lines', '/app/cam', SDP, `${PLAIN}${'a=x\r\n'.repeat(2000)}`, 415],
  ['an option that is not supported', '/app/cam', { ...SDP, Require: 'x' }, PLAIN, 551],
] as const)
  test(`the announcement of ${title} is answered by ${status}, and the connection stays`, async (t) => {
    const server = await start(t);
    const client = await RawPlayer.open(t, server.port, path);
    t.is((await client.ask('ANNOUNCE', client.url, fields, body)).status, status);
    t.is((await client.ask('OPTIONS')).status, 200);
    t.is(server.inputs.length, 0);
  });

test('requests that come too early or too late are rejected', async (t) => {
  const server = await start(t);
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  t.is((await client.ask('RECORD')).status, 455);
  t.is((await client.ask('TEARDOWN')).status, 454);
  t.is((await client.setUp(client.url, record('0-1'))).status, 455);
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 200);
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 455);
  t.is((await client.ask('RECORD')).status, 455);
  t.is((await client.ask('PAUSE')).status, 455);
  t.is((await client.setUp(`${client.url}/streamid=7`, record('0-1'))).status, 404);
  t.is((await client.setUp(`${client.url}/streamid=0`, '')).status, 461);
  const udp = 'RTP/AVP;unicast;client_port=5000-5001;mode=record';
  t.is((await client.setUp(`${client.url}/streamid=0`, udp)).status, 461);
  t.is((await client.setUp(`${client.url}/streamid=0`, record('0-1'))).status, 200);
  t.is((await client.ask('PAUSE')).status, 455);
  // one session publishes or plays
  t.is((await client.ask('DESCRIBE', client.url.replace('/cam', '/talk'))).status, 455);
  t.is((await client.ask('RECORD')).status, 200);
  t.is((await client.setUp(`${client.url}/streamid=1`, record('2-3'))).status, 455);
  client.session = 'another';
  t.is((await client.ask('TEARDOWN')).status, 454);
});

test('publishers need a password where the application has users', async (t) => {
  const seen: unknown[] = [];
  const guard = ({
    direction,
    protocol,
    client,
  }: {
    direction: string;
    protocol: string;
    client: { user?: unknown };
  }) => {
    seen.push([direction, protocol, client.user]);
    return {};
  };
  const server = await start(t, {
    vhost: { users: { user: [{ name: 'anna', password: 's3cret' }] } },
    access: { guards: [guard as never] },
  });
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  const basic = (text: string) => ({ ...SDP, Authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 401);
  t.is((await client.ask('ANNOUNCE', client.url, basic('anna:wrong'), PLAIN)).status, 401);
  t.deepEqual(seen, []);
  t.is((await client.ask('ANNOUNCE', client.url, basic('anna:s3cret'), PLAIN)).status, 200);
  t.deepEqual(seen, [['incoming', 'rtsp', 'anna']]);
});

test('a guard that denies a publisher is obeyed, and the query of a signed URL may be the password', async (t) => {
  const guard = ({ url }: { url: string }) => {
    if (!url.endsWith('?policy=eyJ9&signature=abc')) throw kilnError('accessDenied');
    return {};
  };
  const server = await start(t, { access: { guards: [guard as never] } });
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  const basic = (text: string) => ({ ...SDP, Authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 401);
  t.is((await client.ask('ANNOUNCE', client.url, basic('a:policy=eyJ9&signature=abd'), PLAIN)).status, 403);
  t.is((await client.ask('ANNOUNCE', client.url, basic('a:policy=eyJ9&signature=abc'), PLAIN)).status, 200);
});

test('a node that drains takes no publishers', async (t) => {
  const server = await start(t);
  server.registry.draining = true;
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 503);
});

test('an application without the module takes no publishers', async (t) => {
  const server = await startPublisher(t, { packets: coded(), vhost: { providers: {} } });
  const client = await RawPlayer.open(t, server.port, '/app/cam');
  t.is((await client.ask('ANNOUNCE', client.url, SDP, PLAIN)).status, 403);
});

test('broken descriptions, requests and packets are rejected or ignored, and never an internal error', async (t) => {
  const server = await start(t);
  const { sdp, video, audio } = await recorded(t, server);
  const random = new Random(7);
  let published = 0;
  for (let run = 0; run < 60; run++) {
    const path = `/app/fuzz${run}`;
    const client = await RawPlayer.open(t, server.port, path);
    const own = Buffer.from(sdp.replaceAll('/app/cam/', `${path}/`));
    const text = run % 2 === 0 ? own : mutate(own, random, own);
    client.socket.write(
      Buffer.concat([
        Buffer.from(
          `ANNOUNCE ${client.url} RTSP/1.0\r\nCSeq: 1\r\nContent-Type: application/sdp\r\nContent-Length: ${text.length}\r\n\r\n`,
        ),
        text,
      ]),
    );
    await until('an answer', () => client.responses.length > 0 || client.closed);
    if (client.responses[0]?.status !== 200) {
      client.socket.destroy();
      continue;
    }
    await client.setUp(`${client.url}/trackID=0`, record('0-1'));
    await client.setUp(`${client.url}/trackID=1`, record('2-3'));
    const { status } = await client.ask('RECORD');
    if (status === 200) published++;
    for (const [i, packet] of video.entries()) {
      const broken = random.chance(0.3) ? mutate(packet, random, packet).subarray(0, 65_535) : packet;
      send(client.socket, random.chance(0.05) ? random.below(256) : 0, broken);
      if (audio[i] !== undefined)
        send(client.socket, 2, audio[i].subarray(0, random.chance(0.2) ? random.below(40) : undefined));
    }
    client.socket.end();
    await until('it has ended', () => client.closed);
  }
  t.true(published > 25, `${published}`);
  t.deepEqual(
    server.lines.filter((line) => line.includes('"level":"error"')),
    [],
  );
  await until('all streams have ended', () => server.inputs.every(({ closed }) => closed));
});
