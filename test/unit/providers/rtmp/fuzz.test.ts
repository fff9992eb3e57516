import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { encodeCommand } from '../../../../src/protocols/rtmp/command.ts';
import { HANDSHAKE_BYTES } from '../../../../src/protocols/rtmp/handshake.ts';
import { encodeNumber, MessageType } from '../../../../src/protocols/rtmp/message.ts';
import { buildAudioTracks } from '../../../support/rtmp/flv-build.ts';
import { aac, h264 } from '../../../support/rtmp/flv-media.ts';
import { RtmpClient } from '../../../support/rtmp/rtmp-client.ts';
import { startRtmp } from '../../../support/rtmp/rtmp-server.ts';
import { until } from '../../../support/time/until.ts';
import { seeded } from '../../codecs/vectors.ts';

const SESSIONS = 300;
const PARALLEL = 20;

/** All bytes of a whole session that publishes `key`. */
function session(key: string): Buffer {
  const writer = new ChunkWriter();
  const [video, audio] = [h264(), aac()];
  const command = (...args: Parameters<typeof encodeCommand>) =>
    writer.message(3, MessageType.CommandAmf0, 0, 0, encodeCommand(...args));
  const second = (packet: 'config' | 'frame', data: Buffer) =>
    buildAudioTracks(packet, [
      { trackId: 1, codec: 'AAC', data },
      { trackId: 2, codec: 'OPUS', data },
    ]);
  const media = Array.from({ length: 12 }, (_, i) => [
    ...writer.message(6, MessageType.Video, 1, i * 40, video.frames[i % 2] as Buffer),
    ...writer.message(4, MessageType.Audio, 1, i * 21, audio.frames[i % 10] as Buffer),
    ...writer.message(4, MessageType.Audio, 1, i * 21, second('frame', Buffer.of(i))),
  ]);
  return Buffer.concat([
    Buffer.of(3),
    Buffer.alloc(2 * HANDSHAKE_BYTES, 7),
    ...command('connect', 1, { app: 'app', tcUrl: 'rtmp://127.0.0.1/app' }),
    ...command('createStream', 2, null),
    ...command('publish', 3, null, key, 'live'),
    ...writer.message(2, MessageType.SetChunkSize, 0, 0, encodeNumber(128)),
    ...writer.message(
      4,
      MessageType.DataAmf0,
      1,
      0,
      encodeAmf0('@setDataFrame', 'onMetaData', { videocodecid: 7, audiocodecid: 10 }),
    ),
    ...writer.message(6, MessageType.Video, 1, 0, video.config),
    ...writer.message(4, MessageType.Audio, 1, 0, audio.config),
    ...writer.message(4, MessageType.Audio, 1, 0, second('config', Buffer.of(0x11, 0x90))),
    ...media.flat(),
    ...command('deleteStream', 4, null, 1),
  ]);
}

/** The same session, broken in one of several ways. */
function broken(bytes: Buffer, random: () => number): Buffer {
  const pick = (below: number) => Math.floor(random() * below);
  const handshake = 1 + 2 * HANDSHAKE_BYTES;
  const copy = Buffer.from(bytes);
  switch (pick(5)) {
    case 0:
      return copy.subarray(0, pick(copy.length));
    case 1:
      for (let i = pick(20); i >= 0; i--) copy[handshake + pick(copy.length - handshake)] = pick(256);
      return copy;
    case 2:
      for (let i = handshake; i < copy.length; i++) copy[i] = pick(256);
      return copy;
    case 3: {
      const from = handshake + pick(copy.length - handshake);
      return Buffer.concat([copy.subarray(0, from), copy.subarray(from + pick(200))]);
    }
    default: {
      const from = handshake + pick(copy.length - handshake);
      return Buffer.concat([
        copy.subarray(0, from),
        Buffer.from(Array.from({ length: pick(300) }, () => pick(256))),
        copy.subarray(from),
      ]);
    }
  }
}

test('the server serves on after hundreds of broken sessions', async (t) => {
  const server = await startRtmp({ rtmp: { blockDuplicateStreamName: false } });
  t.teardown(() => server.close());
  const random = seeded(20_260);
  const one = async (index: number) => {
    const bytes = broken(session(`fuzz${index % 7}`), random);
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    for (let at = 0; at < bytes.length && !socket.destroyed;) {
      const piece = 1 + Math.floor(random() * 3000);
      socket.write(bytes.subarray(at, at + piece));
      at += piece;
    }
    socket.end();
    await closed;
  };
  for (let index = 0; index < SESSIONS; index += PARALLEL) {
    await Promise.all(Array.from({ length: PARALLEL }, (_, i) => one(index + i)));
  }
  await until('all sessions are gone', () => server.server.sessions === 0);
  t.is(server.lines.filter(({ msg }) => String(msg).startsWith('RTMP session closed')).length, SESSIONS);
  t.deepEqual(
    server.lines.filter(({ level }) => Number(level) >= 50),
    [],
  );
  t.is(server.registry.counters.providers.rtmp, 0);
  for (const { packets } of server.recordings) {
    const last = new Map<number, number>();
    for (const { track, dts, pts } of packets) {
      t.true(dts > (last.get(track.id) ?? -1) && pts >= dts);
      last.set(track.id, dts);
    }
  }

  const before = server.recordings.length;
  const client = await RtmpClient.publish('good', server);
  const [video, audio] = [h264(), aac()];
  client.video(video.config, 0);
  client.audio(audio.config, 0);
  client.video(video.frames[0] as Buffer, 0);
  await until('a good stream', () => server.recordings[before]?.packets.length === 1);
  client.close();
});

test('half-open clients do not pile up: the oldest that wait give way', async (t) => {
  const server = await startRtmp();
  t.teardown(() => server.close());
  const publisher = await RtmpClient.publish('live', server);
  const sockets = Array.from({ length: 560 }, () =>
    connect(server.port, '127.0.0.1')
      .on('error', () => {})
      .resume(),
  );
  t.teardown(() => {
    publisher.close();
    for (const socket of sockets) socket.destroy();
  });
  await until(
    'the oldest are gone',
    () => server.lines.filter(({ msg }) => String(msg).includes('wait to publish')).length >= 8,
  );
  await until('the rest stay', () => server.server.sessions <= 513);
  t.false(publisher.socket.destroyed);
});
