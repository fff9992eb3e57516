import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
import type { OutboundGuard } from '../../../../src/protocols/outbound/guard.ts';
import { ChunkStream, ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { statusInfo } from '../../../../src/protocols/rtmp/command.ts';
import { MessageType } from '../../../../src/protocols/rtmp/message.ts';
import { ServerConnection } from '../../../../src/protocols/rtmp/server-connection.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { PullError } from '../../../../src/providers/pull/error.ts';
import type { PullSource } from '../../../../src/providers/pull/source.ts';
import { rtmpSource } from '../../../../src/providers/rtmp-pull/source.ts';
import { until } from '../../../support/time/until.ts';

const LIMITS = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 16 };
const STREAM_ID = 1;
/** AAC of 48 kHz in stereo, and a frame of it. */
const AAC_CONFIG = Buffer.from('af001190', 'hex');
const AAC_FRAME = Buffer.from('af01210049900219002380', 'hex');

const guard = {
  addresses: async () => ['127.0.0.1'],
  error: (reason: string) => new PullError(reason),
} as unknown as OutboundGuard;
const options = (silenceMs?: number) => ({
  log: pino({ level: 'silent' }),
  clock: new LocalClock(),
  silenceMs,
  ignoresReports: false,
  signal: new AbortController().signal,
});

/** A server whose answer to `play` is that of the test, on a free port. */
async function serve(t: ExecutionContext, play: (wire: ServerConnection, socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    const write = (pieces: readonly Buffer[]): void => pieces.forEach((piece) => void socket.write(piece));
    const wire = new ServerConnection(LIMITS, write, {
      command: ({ name, transactionId }) => {
        if (name === 'connect') wire.call('_result', transactionId, {}, {});
        else if (name === 'createStream') wire.call('_result', transactionId, null, STREAM_ID);
        else if (name === 'play') play(wire, socket);
      },
      data: () => {},
      malformedData: () => {},
      audio: () => {},
      video: () => {},
    });
    socket.on('data', (data) => wire.receive(data));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => server.close());
  return `rtmp://127.0.0.1:${(server.address() as AddressInfo).port}/live/s`;
}

/** What a source brings. */
async function played(source: PullSource) {
  const brought = {
    tracks: [] as readonly Track[],
    packets: [] as Packet[],
    bytes: 0,
    ended: undefined as string | undefined,
  };
  await source.play({
    tracks: (tracks) => void (brought.tracks = tracks),
    packet: (packet) => void brought.packets.push(packet),
    received: (bytes) => void (brought.bytes += bytes),
    lost: () => {},
    trouble: () => {},
    end: (reason) => void (brought.ended = reason),
  });
  return brought;
}

const START = statusInfo('status', 'NetStream.Play.Start', '');

test('what comes with the start is kept until it is played', async (t) => {
  const frames = 20;
  let hangUp = (): void => {};
  const url = await serve(t, (wire, socket) => {
    const writer = new ChunkWriter();
    const audio = (time: number, body: Buffer): Buffer =>
      Buffer.concat(writer.message(ChunkStream.Audio, MessageType.Audio, STREAM_ID, time, body));
    socket.cork();
    wire.status(STREAM_ID, START);
    socket.write(audio(0, AAC_CONFIG));
    for (let frame = 0; frame < frames; frame++) socket.write(audio(Math.round((frame * 64) / 3), AAC_FRAME));
    socket.uncork();
    hangUp = () => socket.end();
  });
  const source = await rtmpSource(guard)(url, options());
  t.is(source.connection?.transport, 'TCP');
  const brought = await played(source);
  await until('all frames', () => brought.packets.length === frames);
  hangUp();
  await until('its end', () => brought.ended);
  t.is(brought.ended, 'the server closed the connection');
  t.like(brought.tracks[0], { type: 'audio', codec: 'AAC', samplerate: 48_000 });
  const [first] = brought.packets;
  t.deepEqual(
    brought.packets.map(({ dts }) => dts - (first?.dts ?? 0)),
    Array.from({ length: brought.packets.length }, (_, frame) => frame * 1024),
  );
});

test('a stream that is not there, or whose server has no RTMP, is an error with its reason', async (t) => {
  const open = rtmpSource(guard);
  const missing = await serve(t, (wire) =>
    wire.status(STREAM_ID, statusInfo('error', 'NetStream.Play.StreamNotFound', 'no s')),
  );
  await t.throwsAsync(open(missing, options()), { instanceOf: PullError, message: /"no s, NetStream/ });
  const closing = await serve(t, (_wire, socket) => socket.end());
  await t.throwsAsync(open(closing, options()), { instanceOf: PullError, message: 'the server closed the connection' });
  const garbage = await serve(t, (_wire, socket) => socket.write(Buffer.alloc(1000, 0xff)));
  await t.throwsAsync(open(garbage, options()), { instanceOf: PullError });
  await t.throwsAsync(open('rtmp://127.0.0.1/app', options()), { instanceOf: PullError, message: /not an RTMP URL/ });
});

test('a source that ends before it is played says why, one that is closed says nothing', async (t) => {
  const url = await serve(t, (wire, socket) => {
    wire.status(STREAM_ID, START);
    wire.status(STREAM_ID, statusInfo('status', 'NetStream.Play.UnpublishNotify', ''));
    socket.end();
  });
  const early = await rtmpSource(guard)(url, options());
  await t.throwsAsync(played(early), { instanceOf: PullError, message: /UnpublishNotify/ });
  const silent = await serve(t, (wire) => wire.status(STREAM_ID, START));
  const closed = await rtmpSource(guard)(silent, options(50));
  const brought = await played(closed);
  closed.close();
  const late = await played(await rtmpSource(guard)(silent, options(50)));
  await until('its end', () => late.ended);
  t.is(late.ended, 'no packet for 50 ms');
  t.is(brought.ended, undefined);
});
