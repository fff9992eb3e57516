import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import type { PullSource, SourceSink } from '../../../../src/providers/pull/source.ts';
import { rtspSource } from '../../../../src/providers/rtsp-pull/source.ts';
import { pictures, rtp, SILENCE } from '../../../support/media/camera-media.ts';
import { FakeCamera, type CameraScript } from '../../../support/rtsp/fake-camera.ts';
import { openGuard, playRtsp, type Played } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

const bothAre = (played: Played) =>
  until('both are there', () => played.of('video').length === 2 && played.of('audio').length === 1);

test('channels that a server chooses are those of its tracks, in whatever order', async (t) => {
  for (const [video, audio, told] of [
    [2, 4, 'shifted by one track'],
    [2, 0, 'swapped'],
    [4, 6, 'shifted by two'],
    [0, 4, 'of the second alone'],
    [252, 254, 'the last'],
  ] as const) {
    const camera = await FakeCamera.start(t, {
      answer: ({ method, uri }) => {
        const channel = uri.endsWith('0') ? video : audio;
        const transport = `RTP/AVP/TCP;unicast;interleaved=${channel}-${channel + 1}`;
        return method === 'SETUP' ? `200 OK\r\nSession: 1\r\nTransport: ${transport}\r\n\r\n` : undefined;
      },
    });
    const played = await playRtsp(t, camera.url(), { ignoresReports: true });
    for (const packet of pictures(2)) camera.media(video, packet);
    camera.media(audio, rtp(8, 0, 0, SILENCE));
    await t.notThrowsAsync(bothAre(played), told);
  }
});

test('a server that gives the same channels twice means those that were asked for', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method }) =>
      method === 'SETUP' ? '200 OK\r\nSession: 1\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n' : undefined,
  });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(2)) camera.media(0, packet);
  camera.media(2, rtp(8, 0, 0, SILENCE));
  await t.notThrowsAsync(bothAre(played));
});

/** A source that is not played yet. */
const opened = (url: string, guard = openGuard()): Promise<PullSource> =>
  rtspSource(guard)(url, {
    log: pino({ level: 'silent' }),
    clock: new LocalClock(),
    silenceMs: undefined,
    ignoresReports: false,
    signal: new AbortController().signal,
  });
const unexpected = (): never => {
  throw new Error('it has not played');
};
const UNUSED: SourceSink = {
  ...{ tracks: unexpected, packet: unexpected, lost: unexpected, trouble: unexpected, end: unexpected },
  received: () => {},
};

/** A camera that sends by UDP alone, and says so in a way of its own. */
async function datagramCamera(t: ExecutionContext, overTcp: (tcp: string) => string) {
  const server = createSocket('udp4');
  t.teardown(() => server.close());
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const answer: CameraScript['answer'] = ({ method, headers }) => {
    if (method !== 'SETUP') return undefined;
    const asked = headers['transport'] ?? '';
    if (asked.includes('TCP')) return overTcp(`server_port=${port}-${port + 1}`);
    return `200 OK\r\nSession: 7\r\nTransport: ${asked};server_port=${port}-${port + 1}\r\n\r\n`;
  };
  return { server, camera: await FakeCamera.start(t, { answer }) };
}

test('a server that does not send in the connection, whatever it answers, is asked for UDP', async (t) => {
  for (const overTcp of [
    (ports: string) => `200 OK\r\nSession: 9\r\nTransport: RTP/AVP;unicast;${ports}\r\n\r\n`,
    ...[400, 404, 406, 500, 501].map((status) => () => `${status} No\r\n\r\n`),
  ]) {
    const { server, camera } = await datagramCamera(t, overTcp);
    const played = await playRtsp(t, camera.url(), { ignoresReports: true });
    t.like(played.source.connection, { transport: 'UDP' });
    const [video, audio] = camera.requests
      .flatMap(({ headers }) => /client_port=(\d+)/.exec(headers['transport'] ?? '')?.[1] ?? [])
      .map(Number) as [number, number];
    for (const packet of pictures(2)) server.send(packet, video, '127.0.0.1');
    server.send(rtp(8, 0, 0, SILENCE), audio, '127.0.0.1');
    await bothAre(played);
    played.source.close();
  }
});

test('an RTSP track that neither transport can carry is rejected with both reasons, and over one transport with that', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method, headers }) => {
      if (method !== 'SETUP') return undefined;
      return headers['transport']?.includes('TCP') ? '400 Bad Request\r\n\r\n' : '404 Not Found\r\n\r\n';
    },
  });
  await t.throwsAsync(playRtsp(t, camera.url()), {
    message:
      'the server refused a track over UDP (404): Not Found; before that, the server refused a track over TCP (400): Bad Request',
  });
  await t.throwsAsync(playRtsp(t, camera.url('live?transport=tcp')), {
    message: 'the server refused a track over TCP (400): Bad Request',
  });
  const other = await FakeCamera.start(t, {
    answer: ({ method }) =>
      method === 'SETUP'
        ? '200 OK\r\nSession: 1\r\nTransport: RTP/AVP;unicast;server_port=6000-6001\r\n\r\n'
        : undefined,
  });
  await t.throwsAsync(playRtsp(t, other.url('live?transport=tcp')), {
    message: 'the server chose a transport for a track that was not offered (RTP/AVP)',
  });
});

test('a pull that ends while addresses for UDP are checked gives its ports back at once', async (t) => {
  const { camera } = await datagramCamera(t, () => '461 Unsupported Transport\r\n\r\n');
  const guard = openGuard();
  const checked = Promise.withResolvers<AbortSignal | undefined>();
  const addresses = guard.addresses.bind(guard);
  guard.addresses = async (host, port, transport, signal) => {
    if (transport !== 'udp' || signal === undefined) return await addresses(host, port, transport, signal);
    checked.resolve(signal);
    // a name server that never answers
    await once(signal, 'abort');
    throw guard.unwanted();
  };
  const source = await opened(camera.url(), guard);
  const playing = source.play(UNUSED);
  await checked.promise;
  const port = Number(/client_port=(\d+)/.exec(camera.requests.at(-1)?.headers['transport'] ?? '')?.[1]);
  t.true(port > 0);
  source.close();
  await t.throwsAsync(playing, { instanceOf: Error });
  for (const one of [port, port + 1]) {
    const socket = createSocket('udp4').bind(one, '127.0.0.1');
    await once(socket, 'listening');
    socket.close();
  }
});

test('a pull that ends while another server is asked closes that connection', async (t) => {
  const other = await FakeCamera.start(t, { answer: () => '' });
  const camera = await FakeCamera.start(t, {
    answer: ({ method }) => (method === 'SETUP' ? `302 Moved\r\nLocation: ${other.url()}\r\n\r\n` : undefined),
  });
  const source = await opened(camera.url());
  const playing = source.play(UNUSED);
  await until('the other is asked', () => other.requests.length === 1);
  const gone = once(other.sockets[0] as Socket, 'close');
  source.close();
  await t.throwsAsync(playing, { instanceOf: Error });
  await gone;
  t.is(other.requests.length, 1);
});
