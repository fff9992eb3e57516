import test from 'ava';
import { parse } from 'sdp-transform';
import { LiveStream } from '../support/server/live-stream.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc, type WebrtcServerOptions } from '../support/webrtc/webrtc-server.ts';

const video = await h264();
const audio = await opus();

async function start(t: import('ava').ExecutionContext, options: WebrtcServerOptions = {}) {
  const server = await startWebrtc(t, options);
  const live = new LiveStream(server.registry, [video, audio]);
  t.teardown(() => live.close());
  const open = async (path = '/app/stream') => {
    const client = await SignallingClient.open(`ws://127.0.0.1:${server.port}${path}`);
    t.teardown(() => client.socket.terminate());
    return client;
  };
  return { ...server, live, open };
}

/** Answers the offer with libdatachannel and waits for media. */
async function play(t: import('ava').ExecutionContext, client: SignallingClient) {
  client.send({ command: 'request_offer' });
  const offer = await client.command('offer');
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  const sdp = await peer.answerTo(offer?.sdp?.sdp ?? '');
  client.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  client.send({
    command: 'candidate',
    id: offer?.id,
    peer_id: 0,
    candidates: [{ candidate: 'candidate:1 1 UDP 1 10.0.0.1 9 typ host', sdpMLineIndex: 0 }],
  });
  return { offer, peer, id: offer?.id as number };
}

test.serial('the signalling of OvenMediaEngine: offers, plays, notifies and stops', async (t) => {
  const { live, open } = await start(t);
  const client = await open();
  const { offer, peer, id } = await play(t, client);
  t.like(offer, { command: 'offer', peer_id: 0, code: 200, sdp: { type: 'offer' } });
  t.true(Number.isInteger(id) && id >= 1 && id <= 2 ** 31 - 1);
  t.false('iceServers' in (offer ?? {}));
  t.regex(offer?.candidates?.[0]?.candidate ?? '', /^candidate:\S+ 1 UDP \d+ 127\.0\.0\.1 \d+ typ host$/);
  t.like(offer?.candidates?.[0], { sdpMLineIndex: 0, sdpMid: '0' });
  const sdp = parse(offer?.sdp?.sdp ?? '');
  t.deepEqual(
    sdp.media.map(({ type, payloads, direction, setup }) => [type, String(payloads), direction, setup]),
    [
      ['video', '98', 'sendonly', 'actpass'],
      ['audio', '110', 'sendonly', 'actpass'],
    ],
  );
  t.is(sdp.media[0]?.fmtp[0]?.config, 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f');
  t.deepEqual(sdp.groups, [{ type: 'BUNDLE', mids: '0 1' }]);

  await peer.until(() => peer.frames().length >= 20 && peer.packets.audio.length >= 20);
  t.true(peer.packets.video.every(({ payloadType }) => payloadType === 98));
  // the mid extension, under the identifier of the offer
  const mid = sdp.media[0]?.ext?.find(({ uri }) => uri.endsWith('sdes:mid'))?.value as number;
  t.is(peer.packets.video[0]?.extensions.get(mid)?.toString(), '0');
  const playlist = await client.next(({ type }) => type === 'playlist');
  t.like(playlist, { command: 'notification', message: { file_name: 'webrtc_default', auto: true } });
  t.like(playlist?.message?.renditions?.[0], {
    name: 'default',
    video_track: { video: { codec: 'H264', width: 320, height: 180 } },
    audio_track: { audio: { codec: 'OPUS' } },
  });
  client.send({ command: 'change_rendition', id, rendition_name: 'default', auto: false });
  const changed = await client.next(({ type }) => type === 'rendition_changed');
  t.deepEqual(changed?.message, { rendition_name: 'default', auto: false });
  client.send({ command: 'stop', id });
  await client.end();
  t.is(live.output.sessions.size, 0);
});

test.serial('a rendition without picture stops the picture and another brings it back', async (t) => {
  const { live, open } = await start(t);
  live.output.addPlaylist({
    name: 'choice',
    fileName: 'choice',
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: true,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: false,
    },
    renditions: [
      { name: 'both', videoVariantName: 'video', audioVariantName: 'audio' },
      { name: 'sound', audioVariantName: 'audio' },
      { name: 'nothing', videoVariantName: 'absent' },
    ],
  });
  const client = await open('/app/stream/choice');
  const { peer, id } = await play(t, client);
  await peer.until(() => peer.frames().length >= 5);
  const playlist = await client.next(({ type }) => type === 'playlist');
  t.deepEqual(
    playlist?.message?.renditions?.map(({ name }) => name),
    ['both', 'sound'],
  );
  client.send({ command: 'change_rendition', id, rendition_name: 'sound', auto: false });
  await client.next(({ message }) => message?.rendition_name === 'sound');
  await peer.soundAlone();
  const stopped = peer.frames().length;
  client.send({ command: 'change_rendition', id, rendition_name: 'both', auto: false });
  await peer.until(() => peer.frames().length > stopped + 30);
  t.is(live.output.sessions.size, 1);
});

test.serial('a player that goes away without a word leaves nothing behind', async (t) => {
  const { live, open, pool } = await start(t);
  const client = await open();
  await play(t, client);
  t.is(live.output.sessions.size, 1);
  client.socket.terminate();
  await until('the session ends', () => live.output.sessions.size === 0);
  t.is(
    pool.workers.reduce((sum, { sessions }) => sum + sessions, 0),
    0,
  );
});

test.serial('the session of the query is the session of the API, and only one', async (t) => {
  const { live, open } = await start(t);
  const client = await open('/app/stream?session=somebody');
  await play(t, client);
  t.deepEqual([...live.output.sessions.keys()], ['somebody']);
  const second = await open('/app/stream?session=somebody');
  second.send({ command: 'request_offer' });
  t.deepEqual(await second.next(({ error }) => error !== undefined), { code: 404, error: 'Cannot create offer' });
  await second.end();
  live.output.sessions.get('somebody')?.kick();
  await client.end();
  const third = await open('/app/stream?session=somebody');
  third.send({ command: 'request_offer' });
  t.deepEqual(await third.next(({ error }) => error !== undefined), { code: 403, error: 'Forbidden' });
});

test.serial('ICE servers, TCP candidates and retransmissions are offered where they are configured', async (t) => {
  const { open } = await start(t, {
    webrtc: { rtx: true },
    ice: [
      { address: '127.0.0.1', protocol: 'udp' },
      { address: '127.0.0.1', protocol: 'tcp' },
    ],
    iceServers: [
      { urls: ['turn:turn.example.com:3478?transport=tcp'], userName: 'u', credential: 'c', lifetime: 60_000 },
    ],
  });
  const offerAt = async (path: string) => {
    const client = await open(path);
    client.send({ command: 'request_offer' });
    return client.command('offer');
  };
  const both = await offerAt('/app/stream');
  t.deepEqual(both?.iceServers, [
    { urls: ['turn:turn.example.com:3478?transport=tcp'], username: 'u', credential: 'c' },
  ]);
  t.deepEqual(both?.ice_servers, [
    { urls: ['turn:turn.example.com:3478?transport=tcp'], user_name: 'u', credential: 'c' },
  ]);
  const kinds = (offer: typeof both) => offer?.candidates?.map(({ candidate }) => candidate.split(' ')[2]);
  t.deepEqual(kinds(both), ['UDP', 'TCP']);
  t.deepEqual(kinds(await offerAt('/app/stream?transport=tcp')), ['TCP']);
  t.deepEqual(kinds(await offerAt('/app/stream?transport=udp')), ['UDP']);
  const [section] = parse(both?.sdp?.sdp ?? '').media;
  t.is(section?.payloads, '98 99');
  t.like(
    section?.fmtp.find(({ payload }) => payload === 99),
    { config: 'apt=98' },
  );
  t.is(section?.ssrcGroups?.[0]?.semantics, 'FID');
});

const REFUSALS: readonly [string, object | string, number, string][] = [
  ['an unknown command', { command: 'dance' }, 400, 'Unknown command: dance'],
  ['no command', {}, 400, 'Unknown command: '],
  ['no JSON', '{"command":', 400, 'Invalid message'],
  ['a list', '[1]', 400, 'Invalid message'],
  ['null', 'null', 400, 'Invalid message'],
  ['another id', { command: 'stop', id: 0 }, 400, 'Invalid ID'],
  ['no id', { command: 'change_rendition' }, 400, 'Invalid ID'],
  ['no SDP', { command: 'answer', id: 'ID' }, 400, 'There is no SDP'],
  ['SDP that is no object', { command: 'answer', id: 'ID', sdp: 'v=0' }, 400, 'There is no SDP'],
  ['an offer', { command: 'answer', id: 'ID', sdp: { type: 'offer', sdp: 'v=0' } }, 400, 'Invalid SDP type'],
  [
    'SDP that is no text',
    { command: 'answer', id: 'ID', sdp: { type: 'answer', sdp: 1 } },
    400,
    'SDP must be a string',
  ],
  [
    'SDP that is none',
    { command: 'answer', id: 'ID', sdp: { type: 'answer', sdp: 'v=1' } },
    400,
    'Could not parse SDP',
  ],
  ['no candidates', { command: 'candidate', id: 'ID' }, 400, 'There is no candidate list'],
  ['candidates that are no list', { command: 'candidate', id: 'ID', candidates: {} }, 400, 'Candidates must be array'],
  [
    'a candidate that is none',
    { command: 'candidate', id: 'ID', candidates: [{ candidate: 'x' }] },
    400,
    'Invalid candidate: x',
  ],
];

test.serial('every fault has its message, and ends the connection and its session', async (t) => {
  const { live, open } = await start(t);
  for (const [what, message, code, error] of REFUSALS) {
    const client = await open();
    client.send({ command: 'request_offer' });
    const offer = await client.command('offer');
    client.send(typeof message === 'string' ? message : JSON.stringify(message).replace('"ID"', `${offer?.id}`));
    t.deepEqual(await client.next((received) => received.error !== undefined), { code, error }, what);
    await client.end();
    t.is(live.output.sessions.size, 0, what);
  }
});

test.serial('a WebRTC client that publishes, names no live stream or lacks authorization gets no offer', async (t) => {
  const { open } = await start(t);
  for (const path of ['/app/stream?direction=send', '/app/other', '/none/stream', '/off/stream', '/app/stream/other']) {
    const client = await open(path);
    client.send({ command: 'request_offer' });
    t.deepEqual(
      await client.next(({ error }) => error !== undefined),
      { code: 404, error: 'Cannot create offer' },
      path,
    );
    await client.end();
  }
  const guarded = await start(t, {
    vhost: {
      signedPolicy: {
        policyQueryKeyName: 'p',
        signatureQueryKeyName: 's',
        secretKey: 'k',
        enables: { publishers: 'webrtc' },
      },
    },
  });
  const client = await guarded.open();
  client.send({ command: 'request_offer' });
  t.deepEqual(await client.next(({ error }) => error !== undefined), { code: 404, error: 'Cannot create offer' });
});

test.serial('other paths are no signalling; large messages and floods end their own connection alone', async (t) => {
  const { open, port, live } = await start(t);
  for (const path of ['/', '/app', '/app/stream/a/b', '/app//x', '/%zz/stream']) {
    await t.throwsAsync(SignallingClient.open(`ws://127.0.0.1:${port}${path}`), { message: /404/ }, path);
  }
  const viewer = await open();
  const { peer } = await play(t, viewer);
  const large = await open();
  large.send(JSON.stringify({ command: 'request_offer', filler: 'x'.repeat(200_000) }));
  await large.end();
  const flood = await open();
  for (let i = 0; i < 1000; i++) flood.send({ command: 'candidate', candidates: [] });
  await flood.end();
  t.is(live.output.sessions.size, 1);
  await peer.until(() => peer.frames().length >= 5);
  t.false(viewer.closed);
});

test.serial('random messages never do harm', async (t) => {
  const { open, live } = await start(t);
  let seed = 4711;
  const random = (below: number) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % below;
  const values = [
    undefined,
    null,
    true,
    0,
    -1,
    1e99,
    '',
    'x',
    [],
    {},
    [[]],
    { type: 'answer', sdp: 'v=0\r\n' },
    '\u0000',
    [null],
  ];
  const commands = ['request_offer', 'answer', 'candidate', 'change_rendition', 'stop', 'offer', null, 1, {}];
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  for (let round = 0; round < 60; round++) {
    const client = await open(`/app/stream?session=fuzz${round}`);
    client.send({ command: 'request_offer' });
    const offer = await client.command('offer');
    for (let n = random(4); n >= 0; n--) {
      client.send(
        JSON.stringify({
          command: pick(commands),
          id: pick([offer?.id, ...values]),
          sdp: pick(values),
          candidates: pick(values),
          rendition_name: pick(values),
          auto: pick(values),
        }),
      );
    }
    client.socket.close();
    await client.end();
  }
  await until('all sessions end', () => live.output.sessions.size === 0);
  const client = await open();
  const { peer } = await play(t, client);
  await peer.until(() => peer.frames().length >= 5);
  t.is(live.output.sessions.size, 1);
});

for (const when of ['before the answer comes', 'while it is worked on']) {
  test.serial(`a media worker that dies after its offer, ${when}: the player is notified to ask again`, async (t) => {
    const { pool, open } = await start(t);
    const client = await open();
    client.send({ command: 'request_offer' });
    const offer = await client.command('offer');
    const sdp = await new ViewerPeer().answerTo(offer?.sdp?.sdp ?? '');
    const answer = { command: 'answer', id: offer?.id, sdp: { type: 'answer', sdp } };
    const worker = pool.workers.find(({ sessions }) => sessions > 0);
    const pid = worker?.pid as number;
    if (when === 'before the answer comes') {
      process.kill(pid, 'SIGKILL');
      await client.command('stop');
      client.send(answer);
    } else {
      process.kill(pid, 'SIGSTOP');
      client.send(answer);
      // answered behind the message in front of it
      let isAnswered = false;
      client.socket.once('pong', () => (isAnswered = true)).ping();
      await until('it is answered', () => isAnswered);
      process.kill(pid, 'SIGKILL');
    }
    t.deepEqual(await client.command('stop'), { command: 'stop', id: offer?.id, peer_id: 0 } as object);
    client.send({ command: 'request_offer' });
    const again = await client.next(
      ({ command, id, error }) => (command === 'offer' && id !== offer?.id) || error !== undefined,
    );
    t.is(again?.command, 'offer');
  });
}
