import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { OutputStream } from '../../../../src/core/output-stream.ts';
import type { Track } from '../../../../src/core/track.ts';
import { decodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { encodeUserControl, MessageType, UserControl } from '../../../../src/protocols/rtmp/message.ts';
import { RtmpClient, type RtmpClientOptions } from '../../../support/rtmp/rtmp-client.ts';
import { audioTrack, packetAt, videoTrack } from '../../../support/rtmp/played-tracks.ts';
import { startRtmp, type RtmpSetup } from '../../../support/rtmp/rtmp-server.ts';
import { denied } from '../../../support/access/access.ts';
import { until } from '../../../support/time/until.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const HEVC = videoTrack({ codec: 'H265' });
const START = ['NetStream.Play.Reset', 'NetStream.Play.Start'];

/** A server with a live stream `talk`. */
async function setUp(t: ExecutionContext, tracks: readonly Track[] = [VIDEO, AUDIO], setup: RtmpSetup = {}) {
  const server = await startRtmp({ plays: true, ...setup });
  t.teardown(() => server.close());
  const application = server.registry.vhost('default').application('app');
  const input = application.publish('talk', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks(tracks);
  const output: OutputStream = application.addOutput(input, 'talk');
  output.setTracks(tracks);
  application.announce(output);
  const connect = async (options: Partial<RtmpClientOptions> = {}) => {
    const client = await RtmpClient.connect({ ...server, properties: {}, ...options });
    t.teardown(() => client.close());
    return client;
  };
  const write = (...packets: Packet[]): void => packets.forEach((packet) => output.write(packet));
  return { ...server, application, input, output, connect, write };
}

const heads = (client: RtmpClient, type: number = MessageType.Video) =>
  client.of(type).map(({ payload }) => payload.toString('hex', 0, 2));
const codes = (client: RtmpClient) => client.statuses().map(({ code }) => code);

test('a player gets statuses, metadata, configurations and media from the last key frame on', async (t) => {
  const { connect, write, output } = await setUp(t);
  write(packetAt(VIDEO, 0), packetAt(AUDIO, 0), packetAt(VIDEO, 1, false));
  const client = await connect();
  t.deepEqual(await client.play('talk'), START);
  await client.until('the cached media', () => client.of(MessageType.Video).length === 3);
  write(packetAt(VIDEO, 2, false));
  await client.until('what follows', () => client.of(MessageType.Video).length === 4);
  t.deepEqual(heads(client), ['1700', '1701', '2701', '2701']);
  t.deepEqual(heads(client, MessageType.Audio), ['af00', 'af01']);
  t.deepEqual(
    client.of(MessageType.Video).map(({ timestamp }) => timestamp),
    [0, 0, 40, 80],
  );
  const [access, metadata] = client.of(MessageType.DataAmf0).map(({ payload }) => decodeAmf0(payload));
  t.is(access?.[0], '|RtmpSampleAccess');
  t.is(metadata?.[0], 'onMetaData');
  t.like(metadata?.[1], { width: 64, height: 36, videocodecid: 7, audiocodecid: 10 });
  const [begin] = client.of(MessageType.UserControl);
  t.deepEqual(begin?.payload, encodeUserControl(UserControl.StreamBegin, client.streamId));
  t.is(output.sessions.size, 1);
  const [session] = output.sessions.values();
  t.like(session, { kind: 'rtmp', byPlaylist: false });
  client.close();
  await until('it is not counted', () => output.sessions.size === 0 && output.counters.publishers.rtmp === 0);
  t.is(output.readers, 1, 'the cache alone still reads');
});

test('gop=0: a player waits for the next key frame', async (t) => {
  const { connect, write, output } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  t.deepEqual(await client.play('talk?gop=0'), START);
  await until('it is counted', () => output.sessions.size === 1);
  write(packetAt(VIDEO, 1, false), packetAt(AUDIO, 1), packetAt(VIDEO, 2));
  await client.until('the key frame', () => client.of(MessageType.Video).length === 2);
  t.deepEqual(heads(client), ['1700', '1701']);
  t.is(client.of(MessageType.Audio).length, 1, 'the configuration alone');
});

test('a message stream other than the first one', async (t) => {
  const { connect, write } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.call('createStream', null);
  await client.play('talk');
  await client.until('media', () => client.of(MessageType.Video).length === 2);
  t.is(client.streamId, 2);
  t.true(client.of(MessageType.Video).every(({ streamId }) => streamId === 2));
});

test('a stream that is not there', async (t) => {
  const { connect, lines } = await setUp(t);
  for (const name of ['none', 'talk/none', '']) {
    const client = await connect();
    t.deepEqual(await client.play(name), ['NetStream.Play.StreamNotFound'], name);
    await client.ended();
  }
  t.true(lines.some(({ msg }) => /Could not find the stream: \[#default#app\/none\]/.test(String(msg))));
});

test('a viewer that guards reject', async (t) => {
  const { connect } = await setUp(t, undefined, {
    access: {
      guards: [
        () => async () => {
          throw denied();
        },
      ],
    },
  });
  t.deepEqual(await (await connect()).play('talk'), ['NetStream.Play.Failed']);
});

test('a session that a viewer has is refused to another', async (t) => {
  const { connect } = await setUp(t);
  const first = await connect();
  await first.play('talk?session=me');
  const second = await connect();
  t.deepEqual(await second.play('talk?session=me'), ['NetStream.Play.Failed']);
});

test('H.265 alone: only a client that takes it by Enhanced RTMP plays', async (t) => {
  const { connect, write } = await setUp(t, [HEVC]);
  write(packetAt(HEVC, 0));
  const old = await connect();
  t.deepEqual(await old.play('talk'), ['NetStream.Play.Failed']);
  t.is(old.statuses().at(-1)?.description, 'The player takes none of the codecs of the stream: H265');
  for (const properties of [
    { fourCcList: ['hvc1'] },
    { fourCcList: ['*'] },
    { videoFourCcInfoMap: { hvc1: 1 } },
    { videoFourCcInfoMap: { '*': 4 } },
  ]) {
    const client = await connect({ properties });
    t.deepEqual(await client.play('talk'), START);
    await client.until('media', () => client.of(MessageType.Video).length === 2);
    t.deepEqual(
      client.of(MessageType.Video).map(({ payload }) => payload.toString('latin1', 1, 5)),
      ['hvc1', 'hvc1'],
    );
  }
});

test('Enhanced RTMP that is off: a client that takes H.265 gets none', async (t) => {
  const { connect } = await setUp(t, [HEVC], { extended: false });
  const client = await connect({ properties: { fourCcList: ['hvc1'] } });
  t.deepEqual(await client.play('talk'), ['NetStream.Play.Failed']);
});

test('several tracks go to clients that announce them', async (t) => {
  const low = videoTrack({ id: 7, name: 'low', width: 32 });
  const { connect, write } = await setUp(t, [VIDEO, AUDIO, low]);
  write(packetAt(VIDEO, 0), packetAt(low, 0));
  const client = await connect({ properties: { fourCcList: ['avc1', 'mp4a'], capsEx: 2 } });
  await client.play('talk');
  await client.until('media', () => client.of(MessageType.Video).length === 4);
  t.deepEqual(
    client.of(MessageType.Video).map(({ payload }) => payload.toString('hex', 0, 7)),
    ['170000000001', '96006176633101', '17010000000000', '96016176633101'],
  );
  const metadata = decodeAmf0(client.of(MessageType.DataAmf0)[1]?.payload as Buffer);
  t.like(metadata[1], { width: 64, videoTrackIdInfoMap: { 1: { width: 32, codec: 'avc1' } } });
  const one = await connect({ properties: { fourCcList: ['avc1', 'mp4a'] } });
  await one.play('talk');
  await one.until('media', () => one.of(MessageType.Video).length === 2);
  t.deepEqual(heads(one), ['1700', '1701']);
});

test('another format in mid-stream is announced', async (t) => {
  const { connect, write, output, input } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  await client.until('media', () => client.of(MessageType.Video).length === 2);
  const wide = videoTrack({ width: 128, config: Buffer.of(2) });
  input.setTracks([wide, AUDIO]);
  output.setTracks([wide, AUDIO]);
  write(packetAt(wide, 1));
  await client.until('the new configuration', () => client.of(MessageType.Video).length === 4);
  t.deepEqual(heads(client), ['1700', '1701', '1700', '1701']);
  t.like(decodeAmf0(client.of(MessageType.DataAmf0).at(-1)?.payload as Buffer)[1], { width: 128 });
});

test('pause stops the media, and another goes on from a key frame', async (t) => {
  const { connect, write, output } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  await client.until('media', () => client.of(MessageType.Video).length === 2);
  client.command('pause', 0, null, true, 0);
  await client.until('it pauses', () => codes(client).at(-1) === 'NetStream.Pause.Notify');
  write(packetAt(VIDEO, 1, false), packetAt(VIDEO, 2));
  t.is(output.sessions.size, 1, 'it is still a viewer');
  client.command('pause', 0, null, false, 0);
  await client.until('it goes on', () => codes(client).at(-1) === 'NetStream.Unpause.Notify');
  await client.until('media again', () => client.of(MessageType.Video).length === 4);
  t.deepEqual(heads(client), ['1700', '1701', '1700', '1701']);
});

test('receiveVideo and receiveAudio leave out media; video goes on at a key frame', async (t) => {
  const { connect, write } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  await client.until('media', () => client.of(MessageType.Video).length === 2);
  const settled = () => client.call('getStreamLength', null, 'talk');
  client.command('receiveVideo', 0, null, false);
  await settled();
  write(packetAt(VIDEO, 1), packetAt(AUDIO, 1));
  client.command('receiveVideo', 0, null, true);
  client.command('receiveAudio', 0, null, false);
  await settled();
  write(packetAt(VIDEO, 2, false), packetAt(AUDIO, 2), packetAt(VIDEO, 3));
  await client.until('the key frame', () => client.of(MessageType.Video).length === 3);
  await settled();
  t.deepEqual(heads(client), ['1700', '1701', '1701']);
  t.is(client.of(MessageType.Video).at(-1)?.timestamp, 120);
  t.deepEqual(heads(client, MessageType.Audio), ['af00', 'af01']);
});

test('seek is refused, and the play goes on', async (t) => {
  const { connect, write } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  client.command('seek', 0, null, 1000);
  await client.until('an answer', () => codes(client).at(-1) === 'NetStream.Seek.Failed');
  write(packetAt(VIDEO, 1));
  await client.until('media', () => client.of(MessageType.Video).length === 3);
  t.is(client.statuses().at(-1)?.level, 'error');
});

test('a client plays one stream after the other', async (t) => {
  const { connect, write, output } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  client.command('deleteStream', 0, null, client.streamId);
  await until('it has left', () => output.sessions.size === 0);
  t.deepEqual(await client.play('talk'), START);
  await until('it is back', () => output.sessions.size === 1);
  client.command('closeStream', 0, null);
  await until('it has left again', () => output.sessions.size === 0);
});

test('play on another message stream of a connection that plays is refused', async (t) => {
  const { connect, output } = await setUp(t);
  const client = await connect();
  await client.play('talk');
  t.deepEqual(await client.play('talk'), ['NetStream.Play.Failed']);
  t.is(output.sessions.size, 1);
});

test('FCSubscribe is answered', async (t) => {
  const { connect } = await setUp(t);
  const client = await connect();
  client.command('FCSubscribe', 0, null, 'talk');
  await client.until('the answer', () => client.heard.some(({ name }) => name === 'onFCSubscribe'));
  client.command('FCUnsubscribe', 0, null, 'talk');
  await client.until('the answer', () => client.heard.some(({ name }) => name === 'onFCUnsubscribe'));
  const codesOf = (name: string) => client.heard.flatMap((one) => (one.name === name ? one.args : []));
  t.like(codesOf('onFCSubscribe'), [{ code: 'NetStream.Play.Start', description: 'talk' }]);
  t.like(codesOf('onFCUnsubscribe'), [{ code: 'NetStream.Play.Stop', description: 'talk' }]);
});

test('the end of the stream is announced, and the connection closed', async (t) => {
  const { connect, write, input } = await setUp(t);
  write(packetAt(VIDEO, 0));
  const client = await connect();
  await client.play('talk');
  input.close('the publisher left');
  await client.ended();
  t.is(codes(client).at(-1), 'NetStream.Play.UnpublishNotify');
  t.deepEqual(client.of(MessageType.UserControl).at(-1)?.payload, encodeUserControl(UserControl.StreamEof, 1));
});

test('a viewer that the API ends is told, and may not come back', async (t) => {
  const { connect, output } = await setUp(t);
  const client = await connect();
  await client.play('talk?session=me');
  output.sessions.get('me')?.kick();
  await client.ended();
  t.is(codes(client).at(-1), 'NetStream.Play.Failed');
  t.deepEqual(await (await connect()).play('talk?session=me'), ['NetStream.Play.Failed']);
});

test('a client that plays cannot publish, nor one that publishes play', async (t) => {
  const { connect, port } = await setUp(t);
  const client = await connect();
  await client.play('talk');
  client.command('publish', 0, null, 'mine', 'live');
  await client.until('a refusal', () => codes(client).at(-1) === 'NetStream.Publish.Failed');
  const publisher = await RtmpClient.publish('mine', { port });
  t.teardown(() => publisher.close());
  t.deepEqual(await publisher.play('talk'), ['NetStream.Play.Failed']);
});

test('a port for players alone refuses publishers', async (t) => {
  const { port } = await setUp(t, undefined, { publishes: false });
  await t.throwsAsync(RtmpClient.publish('mine', { port }), { message: /This port is for players/ });
});

test('an application without the publisher has no streams for players', async (t) => {
  const { connect } = await setUp(t);
  t.deepEqual(await (await connect({ app: 'closed' })).play('talk'), ['NetStream.Play.StreamNotFound']);
});

test('a slow player loses what is in front of a key frame, and nobody else does', async (t) => {
  const { connect, write, output } = await setUp(t, [VIDEO]);
  write(packetAt(VIDEO, 0));
  const [slow, quick] = [await connect(), await connect()];
  await slow.play('talk?session=slow');
  await quick.play('talk?session=quick');
  await until('both play', () => output.sessions.size === 2);
  slow.socket.pause();
  const bytes = 256 * 1024;
  let frame = 0;
  for (let round = 0; round < 60; round++) {
    for (let i = 0; i < 5; i++) write(packetAt(VIDEO, ++frame, i === 4, bytes));
    const sent = frame + 2;
    await quick.until('all of it', () => quick.of(MessageType.Video).length === sent);
    quick.messages.splice(
      0,
      quick.messages.length,
      ...quick.messages.map((m) => ({ ...m, payload: m.payload.subarray(0, 2) })),
    );
  }
  t.true(output.counters.droppedPackets > 0);
  slow.socket.resume();
  await slow.until('the last frame', () => slow.of(MessageType.Video).at(-1)?.timestamp === frame * 40);
  const videos = slow.of(MessageType.Video);
  const gap = videos.findIndex(({ timestamp }, i) => i > 2 && timestamp - (videos[i - 1]?.timestamp ?? 0) > 40);
  t.true(gap > 0);
  t.is(videos[gap]?.payload.toString('hex', 0, 2), '1701', 'it goes on with a key frame');
});

test('a player that pauses, goes on and does not read is not sent the last key frame again and again', async (t) => {
  const { connect, write, output } = await setUp(t, [VIDEO]);
  const bytes = 256 * 1024;
  const frames = 6;
  for (let frame = 0; frame < frames; frame++) write(packetAt(VIDEO, frame, frame === 0, bytes));
  const client = await connect();
  await client.play('talk?session=greedy');
  await client.until('the cached media', () => client.of(MessageType.Video).length > frames);
  const session = output.sessions.get('greedy');
  client.socket.pause();
  for (let round = 0; round < 100; round++) {
    client.command('pause', 0, null, true, 0);
    client.command('pause', 0, null, false, 0);
  }
  client.command('closeStream', 0, null);
  await until('it has left', () => output.sessions.size === 0);
  const starts = (session?.out.totalBytes ?? Infinity) / (frames * bytes);
  t.true(starts < 50, `${starts} times`);
});

test('a player that asks without end and does not read is disconnected', async (t) => {
  const { connect, output, lines } = await setUp(t);
  const client = await connect();
  await client.play('talk');
  client.socket.pause();
  await until('it is gone', () => {
    for (let i = 0; i < 500 && !client.socket.destroyed; i++) client.command('getStreamLength', 9, null, 'talk');
    return output.sessions.size === 0;
  });
  t.true(lines.some(({ msg }) => /does not read the answers/.test(String(msg))));
});
