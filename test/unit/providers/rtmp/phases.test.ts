import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Access } from '../../../../src/access/access.ts';
import type { VirtualHostConfig } from '../../../../src/config/model.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { Source } from '../../../../src/core/source.ts';
import { kilnError } from '../../../../src/errors.ts';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import type { AmfObject } from '../../../../src/protocols/rtmp/amf-value.ts';
import { ChunkReader } from '../../../../src/protocols/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { decodeCommand, encodeCommand, type Command } from '../../../../src/protocols/rtmp/command.ts';
import { HANDSHAKE_BYTES } from '../../../../src/protocols/rtmp/handshake.ts';
import { encodeUserControl, MessageType, UserControl } from '../../../../src/protocols/rtmp/message.ts';
import { RtmpSession } from '../../../../src/providers/rtmp/session.ts';
import { h264 } from '../../../support/rtmp/flv-media.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const RTMP = {
  maxConnection: 0,
  timestampMode: 'Original',
  packetSilenceTimeoutMs: 0,
  firstMediaWaitTimeoutMs: 600_000,
  blockDuplicateStreamName: true,
  passthroughOutputProfile: false,
};
const ADDRESSES = { remoteAddress: '192.0.2.1', remotePort: 5, localAddress: '192.0.2.2', localPort: 1935 };
const LIMITS = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 64 };
/** Bytes of C0, C1 and C2. */
const HANDSHAKE = Buffer.concat([Buffer.of(3), Buffer.alloc(2 * HANDSHAKE_BYTES, 7)]);
const METADATA = encodeAmf0('@setDataFrame', 'onMetaData', { videocodecid: 7 });
const video = h264();

/** The server's end of a connection in memory, and the commands that were written to it. */
class MemorySocket extends Duplex {
  readonly answers: Command[] = [];
  /** The client does not read. */
  stuck = false;
  #handshake = 1 + 2 * HANDSHAKE_BYTES;
  readonly #reader = new ChunkReader(LIMITS, (message) => {
    if (message.type === MessageType.CommandAmf0) this.answers.push(decodeCommand(message));
  });

  setKeepAlive(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  /** Codes of all `onStatus`. */
  get codes(): unknown[] {
    return this.answers.filter(({ name }) => name === 'onStatus').map(({ args }) => (args[0] as AmfObject).code);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: unknown, done: () => void): void {
    const skipped = Math.min(this.#handshake, chunk.length);
    this.#handshake -= skipped;
    if (skipped < chunk.length) this.#reader.push(chunk.subarray(skipped));
    if (!this.stuck) done();
  }
}

/** A session whose admissions are answered by hand, in virtual time. */
function start(t: ExecutionContext) {
  virtualTime(t);
  const registry = new Registry();
  t.teardown(() => registry.close('the test is over'));
  const applications = [{ name: 'app', type: 'live', providers: { rtmp: RTMP }, publishers: {} }];
  const config = { name: 'default', host: { names: ['*'] }, applications };
  const vhost = registry.createVhost(config as unknown as VirtualHostConfig, true);
  const packets: Packet[] = [];
  registry.on('input', (input) => input.read({ packet: (packet) => void packets.push(packet) }));
  const asked: { readonly stream: string; admit(): void; reject(): void; readonly signal: AbortSignal }[] = [];
  const admitPublisher = ({ app, stream, signal }: { app: string; stream: string; signal: AbortSignal }) =>
    new Promise((resolve, reject) => {
      const publish = async (source: Source) =>
        vhost.application(app).publish(stream, source, { replace: false, maxConnections: 0 });
      const admit = (): void => resolve({ vhost, app, stream, config: RTMP, publish });
      asked.push({ stream, signal, admit, reject: () => reject(kilnError('accessDenied')) });
    });
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const socket = new MemorySocket();
  const publishing: boolean[] = [];
  const session = new RtmpSession(socket as unknown as Socket, ADDRESSES, {
    access: { duringHandshake: { checkProvider() {} }, admitPublisher } as unknown as Access,
    log,
    publishes: true,
    extended: true,
    secure: false,
    partial: { bytes: 0 },
    onPublishing: (isPublishing) => publishing.push(isPublishing),
    onPlaying: () => {},
    onClose: () => {},
  });
  const writer = new ChunkWriter();
  return {
    registry,
    vhost,
    socket,
    session,
    asked,
    packets,
    publishing,
    lines,
    /** Sends all of it in one piece. */
    async send(...pieces: readonly (Buffer | readonly Buffer[])[]): Promise<void> {
      socket.push(Buffer.concat(pieces.flat()));
      await turn();
    },
    command: (...args: Parameters<typeof encodeCommand>) =>
      writer.message(3, MessageType.CommandAmf0, 0, 0, encodeCommand(...args)),
    /** A command on a message stream. */
    on: (streamId: number, ...args: Parameters<typeof encodeCommand>) =>
      writer.message(3, MessageType.CommandAmf0, streamId, 0, encodeCommand(...args)),
    data: (body: Buffer) => writer.message(4, MessageType.DataAmf0, 1, 0, body),
    picture: (body: Buffer, time: number) => writer.message(6, MessageType.Video, 1, time, body),
    /** The reason for which the session was closed, and the level that it was logged with. */
    end: () => {
      const { msg, level } = lines.find((line) => String(line.msg).startsWith('RTMP session closed')) ?? {};
      return msg === undefined ? undefined : [String(msg).replace('RTMP session closed: ', ''), level];
    },
  };
}

type Started = ReturnType<typeof start>;

const connect = ({ command }: Started) => command('connect', 1, { app: 'app', tcUrl: 'rtmp://localhost/app' });
const publish = ({ on }: Started, name: string, streamId = 1) => on(streamId, 'publish', 0, null, name, 'live');

/** Waits for an admission, and answers it. */
async function admit(client: Started, stream: string): Promise<void> {
  const at = client.publishing.length;
  (await until('the admission', () => client.asked.find((one) => one.stream === stream))).admit();
  await until('it publishes', () => client.publishing.length > at);
}

/** From the handshake to a published stream. */
async function live(t: ExecutionContext): Promise<Started> {
  const client = start(t);
  await client.send(HANDSHAKE);
  await client.send(connect(client), publish(client, 'one'));
  await admit(client, 'one');
  return client;
}

const passed = async (milliseconds: number): Promise<void> => {
  const from = performance.now();
  await until('the time has passed', () => performance.now() > from + milliseconds);
};

test.serial('a client that does not complete the handshake is disconnected', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE.subarray(0, 2000));
  await until('its end', () => client.end());
  t.deepEqual(client.end(), ['did not finish the handshake within 10000 ms', 40]);
});

test.serial('a client that publishes nothing after the handshake is disconnected', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE);
  await passed(12_000);
  await client.send(connect(client));
  t.is(client.end(), undefined);
  await until('its end', () => client.end());
  t.deepEqual(client.end(), ['published nothing within 20000 ms', 40]);
});

test.serial('a client may take as long as admission takes, and publish for as long as it wants', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE);
  await client.send(connect(client), publish(client, 'one'));
  await passed(60_000);
  await admit(client, 'one');
  await passed(60_000);
  t.is(client.end(), undefined);
  client.session.close('over');
  t.true(client.asked[0]?.signal.aborted);
});

test.serial('a client that publishes nothing more after its stream is disconnected', async (t) => {
  const client = await live(t);
  await passed(60_000);
  await client.send(client.on(1, 'closeStream', 0, null));
  t.deepEqual(client.publishing, [true, false]);
  t.is(client.socket.codes.at(-1), 'NetStream.Unpublish.Success');
  await until('its end', () => client.end());
  t.deepEqual(client.end(), ['published nothing within 20000 ms', 40]);
});

test.serial('a client may send as many bytes without publishing after its stream as before', async (t) => {
  const client = await live(t);
  const filler = () => client.picture(Buffer.alloc(60_000), 0);
  for (let i = 0; i < 10; i++) await client.send(filler());
  await client.send(client.command('FCUnpublish', 0, null, 'one'));
  for (let i = 0; i < 4; i++) await client.send(filler());
  t.is(client.end(), undefined);
  await client.send(filler());
  t.deepEqual(client.end(), ['more than 262144 bytes without publishing', 40]);
});

test.serial('only the message stream that is published, or none at all, ends by deleteStream', async (t) => {
  for (const id of [1, 'none']) {
    const client = await live(t);
    await client.send(client.command('deleteStream', 0, null, 2));
    t.deepEqual(client.publishing, [true]);
    await client.send(client.command('deleteStream', 0, null, id));
    t.deepEqual(client.publishing, [true, false]);
    t.is(client.end(), undefined);
  }
});

test.serial('a client connects once', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE);
  await client.send(connect(client), connect(client));
  t.deepEqual(client.end(), ['the client sent connect twice', 40]);
});

test.serial('a connection has a limit of message streams', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE);
  await client.send(connect(client), ...Array.from({ length: 256 }, () => client.command('createStream', 2, null)));
  t.is(client.socket.answers.at(-1)?.args[0], 256);
  await client.send(client.command('createStream', 2, null));
  t.deepEqual(client.end(), ['more than 256 streams on one connection', 40]);
});

test.serial('a client that does not read the answers is disconnected', async (t) => {
  const client = await live(t);
  client.socket.stuck = true;
  const ping = new ChunkWriter().message(
    2,
    MessageType.UserControl,
    0,
    0,
    encodeUserControl(UserControl.PingRequest, 1),
  );
  for (let i = 0; i < 100 && client.end() === undefined; i++)
    await client.send(...Array.from({ length: 200 }, () => ping));
  t.deepEqual(client.end(), ['the client does not read the answers', 40]);
  t.deepEqual(client.publishing, [true, false]);
});

test.serial('messages that are read together with publish take effect in their order after admission', async (t) => {
  const client = start(t);
  const { data, picture, command, packets } = client;
  await client.send(HANDSHAKE);
  await client.send(
    connect(client),
    publish(client, 'one'),
    data(METADATA),
    data(Buffer.of(0xff)),
    picture(video.config, 0),
    picture(video.frames[0] as Buffer, 40),
    publish(client, 'second', 2),
    command('createStream', 7, null),
  );
  t.deepEqual(packets, []);
  t.is(client.socket.answers.at(-1)?.name, 'onBWDone');
  await admit(client, 'one');
  t.deepEqual(
    packets.map(({ dts }) => dts),
    [3600],
  );
  t.deepEqual(client.socket.codes, ['NetStream.Publish.Start', 'NetStream.Publish.Failed']);
  t.is(client.socket.answers.at(-1)?.transactionId, 7);
  await until('the fault', () => client.lines.some(({ msg }) => String(msg).startsWith('malformed data message: ')));
  t.is(client.asked.length, 1);
});

test.serial('streams that follow each other faster than they are admitted lose nothing that was sent', async (t) => {
  const client = start(t);
  const { data, picture, command, packets } = client;
  const media = (time: number) =>
    [data(METADATA), picture(video.config, time), picture(video.frames[0] as Buffer, time)].flat();
  await client.send(HANDSHAKE);
  await client.send(
    connect(client),
    publish(client, 'one'),
    media(40),
    command('FCUnpublish', 0, null, 'one'),
    publish(client, 'two'),
    media(80),
  );
  await client.send(picture(video.frames[1] as Buffer, 120), command('FCUnpublish', 0, null, 'two'));
  await client.send(publish(client, 'three'), media(160));
  for (const stream of ['one', 'two', 'three']) await admit(client, stream);
  t.deepEqual(
    packets.map(({ dts }) => dts / 90),
    [40, 80, 120, 160],
  );
  t.deepEqual(client.publishing, [true, false, true, false, true]);
  t.is(client.end(), undefined);
});

test.serial('a client that is rejected gets no answer to anything it sent after publish', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE);
  await client.send(connect(client), publish(client, 'one'), publish(client, 'two'));
  await client.send(publish(client, 'three'));
  client.asked[0]?.reject();
  await until('its end', () => client.end());
  t.deepEqual(client.end(), ['refused: Access denied', 20]);
  t.deepEqual(client.socket.codes, ['NetStream.Publish.Rejected']);
  t.deepEqual([client.asked.length, client.publishing], [1, []]);
});

test.serial('a stream whose publisher has left before the admission ends at once', async (t) => {
  const client = start(t);
  const ends: string[] = [];
  client.registry.on('created', (input) => input.once('close', (reason) => ends.push(reason)));
  await client.send(HANDSHAKE);
  await client.send(connect(client), publish(client, 'one'));
  client.socket.push(null);
  await until('its end', () => client.end());
  t.deepEqual(client.end(), ['the client closed the connection', 30]);
  client.asked[0]?.admit();
  await until('the end of its stream', () => ends.length === 1);
  t.deepEqual([ends, client.publishing, client.socket.codes], [['the publisher left'], [], []]);
});

test.serial('only a published stream can be handed over', async (t) => {
  const client = start(t);
  const properties = { app: 'app', tcUrl: 'rtmp://localhost/app', capsEx: 1 };
  await client.send(HANDSHAKE);
  t.false(client.session.setHandsOver(true));
  await client.send(client.command('connect', 1, properties), publish(client, 'one'));
  t.false(client.session.setHandsOver(true));
  await admit(client, 'one');
  t.true(client.session.setHandsOver(true));
  await client.send(client.command('FCUnpublish', 0, null, 'one'));
  t.false(client.session.setHandsOver(true));
  client.session.close('over');
  t.false(client.session.setHandsOver(true));
});

test.serial('a client that publishes in the read that completes its handshake is not taken for idle', async (t) => {
  const client = start(t);
  await client.send(HANDSHAKE, connect(client), publish(client, 'one'));
  await admit(client, 'one');
  await passed(60_000);
  t.is(client.end(), undefined);
});
