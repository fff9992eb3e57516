import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { writeSenderReport } from '../../../../src/protocols/rtp/rtcp.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { NALS, pictures, rtp } from '../../../support/media/camera-media.ts';
import { CAMERA_SDP, FakeCamera } from '../../../support/rtsp/fake-camera.ts';
import { openGuard, playRtsp } from '../../../support/rtsp/rtsp-player.ts';
import { standStill } from '../../../support/time/stand-still.ts';
import { until } from '../../../support/time/until.ts';
import { sent, videoOf } from '../../protocols/rtp/receive/support.ts';

/** Plays a camera and its picture and sound, until both are there. */
async function playing(t: ExecutionContext, camera: FakeCamera, user = '') {
  const played = await playRtsp(t, camera.url('live', user), { ignoresReports: true });
  for (const packet of pictures(2)) camera.media(0, packet);
  camera.media(2, rtp(8, 0, 0, Buffer.alloc(160, 0xd5)));
  await until('both are there', () => played.of('video').length === 2 && played.of('audio').length === 1);
  return played;
}

test('a camera is asked in order, and notified when there are no viewers any more', async (t) => {
  const camera = await FakeCamera.start(t);
  const played = await playing(t, camera);
  t.deepEqual(
    played.told[0]?.map(({ codec }) => codec),
    ['H264', 'PCMA'],
  );
  t.deepEqual(played.source.connection, {
    ...played.source.connection,
    transport: 'TCP',
    protocol: 'TCP',
    remotePort: camera.port,
  });
  t.true(played.bytes() > 500);
  played.source.close();
  await until('the end of the session', () => camera.methods().includes('TEARDOWN'));
  t.deepEqual(camera.methods(), ['OPTIONS', 'DESCRIBE', 'SETUP', 'SETUP', 'PLAY', 'TEARDOWN']);
  const [, , first, second, play, teardown] = camera.requests;
  t.is(first?.uri, `${camera.url()}/trackID=0`);
  t.is(first?.headers['transport'], 'RTP/AVP/TCP;unicast;interleaved=0-1');
  t.is(second?.headers['transport'], 'RTP/AVP/TCP;unicast;interleaved=2-3');
  t.is(second?.headers['session'], '12345678');
  t.like(play, { uri: `${camera.url()}/` });
  t.like(teardown, { headers: { session: '12345678', cseq: '6' } });
  t.deepEqual(played.ends, []);
});

test('packets of garbage, of other channels and payload types, and pieces are no matter', async (t) => {
  const camera = await FakeCamera.start(t);
  const played = await playing(t, camera);
  camera.media(0, Buffer.of(1, 2, 3));
  camera.media(0, rtp(99, 0, 0, Buffer.alloc(4)));
  camera.media(1, Buffer.from('no report'));
  camera.media(9, Buffer.alloc(100));
  camera.send(Buffer.from([1, 2, 3, 0x24, 77, 0, 1]));
  const [first, ...others] = pictures(1, 5).map((packet) =>
    Buffer.concat([Buffer.of(0x24, 0, packet.length >> 8, packet.length & 255), packet]),
  );
  camera.send((first as Buffer).subarray(0, 3));
  camera.send((first as Buffer).subarray(3));
  for (const other of others) camera.send(other);
  await until('the next picture', () => played.of('video').length === 3);
  t.deepEqual(played.ends, []);
});

test('Digest: a challenge is met, and met again when it is stale; a wrong password is not tried for long', async (t) => {
  let nonce = 1;
  const camera = await FakeCamera.start(t, {
    answer: ({ method, headers }) => {
      const given = headers['authorization'] ?? '';
      if (given.includes(`nonce="n${nonce}"`) && given.includes('username="user"')) return undefined;
      const stale = given.includes('nonce=') && given.includes('username="user"') ? ', stale=true' : '';
      if (method === 'PLAY' && nonce === 1) nonce = 2;
      return `401 Unauthorized\r\nWWW-Authenticate: Digest realm="cam", nonce="n${nonce}", qop="auth"${stale}\r\nWWW-Authenticate: Basic realm="cam"\r\n\r\n`;
    },
  });
  const played = await playRtsp(t, camera.url('live', 'user:pass@'));
  played.source.close();
  const asked = camera.methods().length;
  await t.throwsAsync(playRtsp(t, camera.url('live', 'other:pass@')), { message: /401/ });
  await t.throwsAsync(playRtsp(t, camera.url('live')), { message: /401/ });
  t.true(camera.methods().length - asked < 10);
  for (const { uri } of camera.requests) t.notRegex(uri, /pass/);
});

test('an RTSP redirect is followed, not for ever, and not with the password', async (t) => {
  const target = await FakeCamera.start(t, {
    answer: ({ headers }) =>
      headers['authorization'] === undefined
        ? '401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"\r\n\r\n'
        : undefined,
  });
  let location = '';
  const camera = await FakeCamera.start(t, {
    answer: ({ method }) => (method === 'DESCRIBE' ? `302 Moved\r\nLocation: ${location}\r\n\r\n` : undefined),
  });
  location = target.url('other');
  await t.throwsAsync(playRtsp(t, camera.url('live', 'user:pass@')), { message: /401/ });
  location = target.url('other', 'own:word@');
  await playRtsp(t, camera.url('live'));
  t.is(target.requests.at(-1)?.uri, `${target.url('other')}/`);
  location = camera.url('again');
  await t.throwsAsync(playRtsp(t, camera.url('live')), { message: /redirects its clients too often/ });
  location = 'http://127.0.0.1/';
  await t.throwsAsync(playRtsp(t, camera.url('live')), { message: /not an RTSP URL/ });
  // a target passes the same guard
  location = 'rtsp://169.254.1.1/live';
  await t.throwsAsync(playRtsp(t, camera.url('live')), { message: /pulling from/ });
});

test('an RTSP redirect of a later request is followed, too', async (t) => {
  const target = await FakeCamera.start(t);
  for (const late of ['SETUP', 'PLAY']) {
    const camera = await FakeCamera.start(t, {
      answer: ({ method }) => (method === late ? `302 Moved\r\nLocation: ${target.url(late)}\r\n\r\n` : undefined),
    });
    const played = await playRtsp(t, camera.url('live'), { ignoresReports: true });
    t.is(target.requests.at(-1)?.uri, `${target.url(late)}/`);
    for (const packet of pictures(2)) target.media(0, packet);
    target.media(2, rtp(8, 0, 0, Buffer.alloc(160, 0xd5)));
    await until('both are there', () => played.of('video').length === 2 && played.of('audio').length === 1);
    t.deepEqual(played.ends, []);
    t.is(played.source.connection?.remotePort, target.port);
    if (late === 'PLAY') await until('the first session is given back', () => camera.methods().at(-1) === 'TEARDOWN');
    const round = await FakeCamera.start(t, {
      answer: ({ method }, { port }) =>
        method === late ? `302 Moved\r\nLocation: rtsp://127.0.0.1:${port}/\r\n\r\n` : undefined,
    });
    await t.throwsAsync(playRtsp(t, round.url()), { message: /redirects its clients too often/ });
  }
});

test('a server without media in the connection gets UDP ports, and is heard alone', async (t) => {
  const heard: Buffer[] = [];
  const server = createSocket('udp4').on('message', (message) => heard.push(message));
  const stranger = createSocket('udp4');
  t.teardown(() => [server, stranger].forEach((socket) => socket.close()));
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const camera = await FakeCamera.start(t, {
    answer: ({ method, headers }) => {
      if (method !== 'SETUP') return undefined;
      const transport = headers['transport'] ?? '';
      return transport.includes('TCP')
        ? '461 Unsupported Transport\r\n\r\n'
        : `200 OK\r\nSession: 7\r\nTransport: ${transport};server_port=${port}-${port + 1}\r\n\r\n`;
    },
  });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  t.like(played.source.connection, { transport: 'UDP', protocol: 'UDP' });
  const [video, audio] = camera.requests
    .flatMap(({ headers }) => /client_port=(\d+)/.exec(headers['transport'] ?? '')?.[1] ?? [])
    .map(Number) as [number, number];
  await until('the ways are opened', () => heard.length === 2);
  const packets = pictures(3);
  const swapped = [packets[0], packets[2], packets[1], ...packets.slice(3)] as Buffer[];
  for (const packet of swapped) server.send(packet, video, '127.0.0.1');
  server.send(rtp(8, 0, 0, Buffer.alloc(160, 0xd5)), audio, '127.0.0.1');
  await until('both are there', () => played.of('video').length === 3 && played.of('audio').length === 1);
  stranger.send(pictures(1, 9)[0] as Buffer, video, '127.0.0.2');
  const more = pictures(1, 10);
  for (const packet of more) stranger.send(packet, video, '127.0.0.1');
  for (const packet of pictures(1, 3)) server.send(packet, video, '127.0.0.1');
  await until('the next picture', () => played.of('video').length >= 4);
  t.is(played.of('video').length, 4);
  // where the server says that its ports are those of a node, nothing is sent there
  await t.throwsAsync(playRtsp(t, camera.url(), {}, openGuard([port])), { message: /pulling from/ });
  t.is(heard.length, 2);
});

test('datagrams from where the server says, and not from elsewhere, which is counted', async (t) => {
  const [source, stranger] = [createSocket('udp4'), createSocket('udp4')];
  t.teardown(() => [source, stranger].forEach((socket) => socket.close()));
  source.bind(0, '127.0.0.2');
  stranger.bind(0, '127.0.0.3');
  await Promise.all([once(source, 'listening'), once(stranger, 'listening')]);
  const camera = await FakeCamera.start(t, {
    answer: ({ method, headers }) =>
      method === 'SETUP'
        ? `200 OK\r\nSession: 7\r\nTransport: ${headers['transport']};source=127.0.0.2\r\n\r\n`
        : undefined,
  });
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  const played = await playRtsp(t, camera.url('live?transport=udp'), { ignoresReports: true, log });
  const [video, audio] = camera.requests
    .flatMap(({ headers }) => /client_port=(\d+)/.exec(headers['transport'] ?? '')?.[1] ?? [])
    .map(Number) as [number, number];
  for (const packet of pictures(1, 9)) stranger.send(packet, video, '127.0.0.1');
  for (const packet of pictures(2)) source.send(packet, video, '127.0.0.1');
  source.send(rtp(8, 0, 0, Buffer.alloc(160, 0xd5)), audio, '127.0.0.1');
  await until('both are there', () => played.of('video').length === 2 && played.of('audio').length === 1);
  await until('strangers are counted', () => lines.some((line) => line.includes('do not come from the RTSP server')));
  t.deepEqual(played.ends, []);
});

test('UDP where the URL asks for it, without another try', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method }) => (method === 'SETUP' ? '461 Unsupported Transport\r\n\r\n' : undefined),
  });
  await t.throwsAsync(playRtsp(t, camera.url('live?transport=udp')), { message: /461/ });
  t.deepEqual(
    camera.requests.flatMap(({ headers }) => headers['transport']?.split(';')[0] ?? []),
    ['RTP/AVP', 'RTP/AVP'],
  );
  t.is(camera.requests[0]?.uri, camera.url('live'));
});

test('a track that is refused is left out, all of them are a refusal', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method, uri }) =>
      method === 'SETUP' && (uri.endsWith('1') || uri.includes('none')) ? '404 Not Found\r\n\r\n' : undefined,
  });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(1)) camera.media(0, packet);
  await until('the picture', () => played.told.length === 1);
  t.deepEqual(
    played.told[0]?.map(({ codec }) => codec),
    ['H264'],
  );
  await t.throwsAsync(playRtsp(t, camera.url('none')), { message: /404/ });
});

test('channels and a session other than asked for, and answers without a number', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method, uri }) => {
      if (method === 'SETUP')
        return `200 OK\r\nSession: abc;timeout=2\r\nTransport: RTP/AVP/TCP;unicast;interleaved=${uri.endsWith('0') ? '10-11' : '12-13'}\r\n\r\n`;
      if (method === 'GET_PARAMETER') return '501 Not Implemented\r\n\r\n';
      return method === 'PLAY' ? 'RTSP/1.0 200 OK\r\n\r\n' : undefined;
    },
  });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  for (const packet of pictures(1)) camera.media(10, packet);
  camera.media(12, rtp(8, 0, 0, Buffer.alloc(160, 0xd5)));
  await until('both are there', () => played.told[0]?.length === 2);
  // twice within the server's timeout, in the way that it knows
  await until('signs of life', () => camera.methods().slice(5, 7).join() === 'GET_PARAMETER,OPTIONS');
  t.is(camera.requests.at(-1)?.headers['session'], 'abc');
});

test('requests of an RTSP server are answered', async (t) => {
  const camera = await FakeCamera.start(t);
  const played = await playing(t, camera);
  let answers = '';
  camera.sockets[0]?.on('data', (bytes: Buffer) => (answers += bytes.toString('latin1')));
  camera.send('OPTIONS * RTSP/1.0\r\nCSeq: 100\r\n\r\n');
  camera.send('ANNOUNCE rtsp://x/ RTSP/1.0\r\nCSeq: 101\r\nContent-Length: 2\r\n\r\nxx');
  await until('both answers', () =>
    /RTSP\/1\.0 200 OK\r\nCSeq: 100[\s\S]*RTSP\/1\.0 501 Not Implemented\r\nCSeq: 101/.test(answers),
  );
  camera.send('TEARDOWN rtsp://x/ RTSP/1.0\r\nCSeq: 102\r\n\r\n');
  await until('the end', () => played.ends.length === 1);
  t.deepEqual(played.ends, ['the server ended the stream']);
});

test('an RTSP stream ends when the server hangs up, sends anything but RTSP, leaves, or is silent', async (t) => {
  const hungUp = await FakeCamera.start(t);
  const one = await playing(t, hungUp);
  hungUp.sockets[0]?.end();
  await until('the end', () => one.ends.length > 0);

  const garbage = await FakeCamera.start(t);
  const two = await playing(t, garbage);
  garbage.send(Buffer.alloc(600_000, 1));
  await until('the end', () => two.ends.length > 0);

  const leaving = await FakeCamera.start(t);
  const three = await playing(t, leaving);
  leaving.media(1, Buffer.from('81cb000100000060', 'hex'));
  leaving.media(3, Buffer.from('81cb000100000008', 'hex'));
  await until('the end', () => three.ends.length > 0);

  const silent = await FakeCamera.start(t);
  const four = await playRtsp(t, silent.url(), { silenceMs: 300 });
  await until('the end', () => four.ends.length > 0);
  t.deepEqual(
    [one, two, three, four].map(({ ends }) => ends),
    [
      ['the server closed the connection'],
      ['it received data that is not RTSP'],
      ['the source has gone'],
      ['no packet for 300 ms'],
    ],
  );
});

test('an answer that says to go on is not the answer', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ headers }, { sockets }) => {
      sockets.at(-1)?.write(`RTSP/1.0 100 Continue\r\nCSeq: ${headers['cseq']}\r\n\r\n`);
      return undefined;
    },
  });
  const played = await playing(t, camera);
  t.deepEqual(played.ends, []);
});

test.serial('an answer that came while this process stood still came in time', async (t) => {
  const camera = await FakeCamera.start(t, {
    answer: ({ method }) => {
      if (method === 'DESCRIBE') standStill(3500);
      return undefined;
    },
  });
  const played = await playing(t, camera);
  t.deepEqual(played.ends, []);
});

test('a server that does not answer, or describes nothing, is a failure', async (t) => {
  const mute = await FakeCamera.start(t, { answer: ({ method }) => (method === 'DESCRIBE' ? '' : undefined) });
  const nothing = await FakeCamera.start(t, { sdp: 'v=0\r\nm=application 0 RTP/AVP 107\r\n' });
  const refusing = await FakeCamera.start(t, {
    answer: ({ method }) => (method === 'PLAY' ? '455 Method Not Valid In This State\r\n\r\n' : undefined),
  });
  await Promise.all([
    t.throwsAsync(playRtsp(t, mute.url()), { message: /no answer to DESCRIBE/ }),
    t.throwsAsync(playRtsp(t, nothing.url()), {
      message: /no track in a supported codec, only application of payload type 107$/,
    }),
    t.throwsAsync(playRtsp(t, refusing.url()), { message: /455/ }),
    t.throwsAsync(playRtsp(t, 'rtsp://127.0.0.1:1/live'), { message: /refused the connection/ }),
  ]);
  await until('the session is given back', () => refusing.methods().at(-1) === 'TEARDOWN');
});

test('reports align audio and video, unless they are ignored', async (t) => {
  for (const [ignoresReports, apart] of [
    [false, 1],
    [true, 0],
  ] as const) {
    const camera = await FakeCamera.start(t);
    const played = await playRtsp(t, camera.url(), { ignoresReports });
    const report = (ssrc: number, rtpTime: number) =>
      writeSenderReport({ ssrc, wallMs: 1_700_000_000_000, rtpTime, packets: 0, octets: 0, cname: 'x' });
    // the sound that comes with a picture is of a second later
    camera.media(1, report(96, 0));
    camera.media(3, report(8, 8000));
    for (const packet of pictures(1)) camera.media(0, packet);
    camera.media(2, rtp(8, 0, 16_000, Buffer.alloc(160, 0xd5)));
    camera.media(2, rtp(8, 1, 16_160, Buffer.alloc(160, 0xd5)));
    await until('both are there', () => played.of('video').length === 1 && played.of('audio').length === 2);
    const [picture, sound] = [played.of('video')[0]?.pts ?? NaN, played.of('audio')[0]?.pts ?? NaN];
    const distance = sound / 8000 - picture / 90_000;
    t.true(Math.abs(distance - apart) < 0.4, `${distance}`);
  }
});

test('the description has what decoders need: nothing in the packets is waited for', async (t) => {
  const [sps, pps] = [7, 8].map((type) => NALS.find((nal) => ((nal[0] as number) & 31) === type)?.toString('base64'));
  const sdp = CAMERA_SDP.replace('packetization-mode=1', `packetization-mode=1;sprop-parameter-sets=${sps},${pps}`);
  const camera = await FakeCamera.start(t, { sdp });
  const played = await playRtsp(t, camera.url(), { ignoresReports: true });
  const idr = joinNals(NALS.filter((nal) => ((nal[0] as number) & 31) === 5));
  for (const { payload, marker } of sent([{ track: videoOf('H264'), key: false, data: idr }]))
    camera.media(0, rtp(96, 0, 0, payload, marker));
  camera.media(2, rtp(8, 0, 0, Buffer.alloc(160, 0xd5)));
  await until('the picture', () => played.of('video').length === 1);
  t.true(played.of('video')[0]?.data.equals(idr));
});

test("times of the first connection are the camera's own where they are kept", async (t) => {
  const camera = await FakeCamera.start(t);
  const clock = new LocalClock(true);
  const first = await playRtsp(t, camera.url(), { ignoresReports: true, clock });
  for (const packet of pictures(2, 100)) camera.media(0, packet);
  await until('pictures', () => first.of('video').length === 2);
  t.deepEqual(
    first.of('video').map(({ dts }) => dts),
    [360_000, 363_600],
  );
  first.source.close();
  await until('the end of the session', () => camera.methods().includes('TEARDOWN'));
  const second = await playRtsp(t, camera.url(), { ignoresReports: true, clock });
  for (const packet of pictures(1)) camera.media(0, packet);
  await until('another picture', () => second.of('video').length === 1);
  t.true((second.packets[0]?.dts ?? 0) > 363_600);
});
