import test from 'ava';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import type { AmfValue } from '../../../../src/protocols/rtmp/amf-value.ts';
import { ChunkStream, ChunkWriter } from '../../../../src/protocols/rtmp/chunk-writer.ts';
import { statusInfo, type Command } from '../../../../src/protocols/rtmp/command.ts';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import { HANDSHAKE_BYTES } from '../../../../src/protocols/rtmp/handshake.ts';
import { encodeUserControl, MessageType, UserControl } from '../../../../src/protocols/rtmp/message.ts';
import { PlayingClient } from '../../../../src/protocols/rtmp/playing-client.ts';
import { ServerConnection } from '../../../../src/protocols/rtmp/server-connection.ts';

const LIMITS = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 16 };
const START = statusInfo('status', 'NetStream.Play.Start', 'go');
const STREAM_ID = 7;

interface Server {
  readonly wire: ServerConnection;
  readonly heard: (Command & { streamId: number })[];
  /** Sends a message of the stream. */
  send(type: number, time: number, body: Buffer): void;
}

/** A client and a server, whose bytes go over one at a time where `single` says so. */
function connected(answer: (server: Server, command: Command, streamId: number) => void, single = false) {
  const told: string[] = [];
  const pending: (() => void)[] = [];
  const carry = (to: () => { receive(data: Buffer): void }) => (pieces: readonly Buffer[]) => {
    const bytes = Buffer.concat(pieces);
    const parts = single ? [...bytes].map((byte) => Buffer.of(byte)) : [bytes];
    for (const part of parts) pending.push(() => to().receive(part));
  };
  const writer = new ChunkWriter();
  const heard: Server['heard'] = [];
  const wire: ServerConnection = new ServerConnection(
    LIMITS,
    carry(() => client),
    {
      command: (command, streamId) => {
        heard.push({ ...command, streamId });
        answer(server, command, streamId);
      },
      data: () => {},
      malformedData: () => {},
      audio: () => {},
      video: () => {},
    },
  );
  const server: Server = {
    wire,
    heard,
    send: (type, time, body) =>
      carry(() => client)(
        writer.message(ChunkStream.Video, type, type === MessageType.UserControl ? 0 : STREAM_ID, time, body),
      ),
  };
  const media = (kind: string) => (payload: Buffer, time: number) =>
    void told.push(`${kind} ${time} ${payload.toString('hex')}`);
  const client: PlayingClient = new PlayingClient(
    { app: 'live', tcUrl: 'rtmp://a/live', name: 's?k=v', fourCcs: { video: ['hvc1'], audio: ['Opus'] } },
    carry(() => wire),
    {
      playing: () => void told.push('playing'),
      refused: (description) => void told.push(`refused: ${description}`),
      audio: media('audio'),
      video: media('video'),
      data: (values: AmfValue[]) => void told.push(JSON.stringify(values)),
      malformedData: (error) => void told.push(`malformed: ${error.message}`),
      ended: (reason) => void told.push(reason),
    },
  );
  const settle = (): void => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) next();
  };
  client.open();
  settle();
  return { client, server, told, settle };
}

/** What servers do until they begin the stream with `status`. */
function accept(status = START) {
  return ({ wire }: Server, { name, transactionId }: Command, streamId: number): void => {
    if (name === 'connect') {
      wire.sendWindows();
      wire.call('_result', transactionId, {}, statusInfo('status', 'NetConnection.Connect.Success', ''));
      wire.call('onBWDone', 0, null);
    } else if (name === 'createStream') wire.call('_result', transactionId, null, STREAM_ID);
    else if (name === 'play') wire.status(streamId, status);
  };
}

for (const single of [false, true]) {
  test(`a stream is played${single ? ', byte by byte' : ''}: audio, video, data and aggregates`, (t) => {
    const { server, told, settle } = connected(accept(), single);
    t.deepEqual(told, ['playing']);
    t.deepEqual(
      server.heard.map(({ name, streamId, args }) => [name, streamId, ...args]),
      [
        ['connect', 0],
        ['createStream', 0],
        ['play', STREAM_ID, 's?k=v'],
      ],
    );
    t.like(server.heard[0]?.object, {
      app: 'live',
      tcUrl: 'rtmp://a/live',
      fpad: false,
      fourCcList: ['hvc1', 'Opus'],
      videoFourCcInfoMap: { hvc1: 1 },
      audioFourCcInfoMap: { Opus: 1 },
    });
    server.send(MessageType.DataAmf0, 0, encodeAmf0('onMetaData', { width: 16 }));
    server.send(MessageType.Video, 40, Buffer.from('17010000', 'hex'));
    server.send(MessageType.Audio, 41, Buffer.from('af01', 'hex'));
    server.send(MessageType.DataAmf0, 42, Buffer.from('02', 'hex'));
    // tags of 50 and 53 ms, in an aggregate of 90 ms
    const aggregate = '0800000200003200000000af010000000d0900000100003500000000170000000c';
    server.send(MessageType.Aggregate, 90, Buffer.from(aggregate, 'hex'));
    settle();
    t.deepEqual(told.slice(1, 4), ['["onMetaData",{"width":16}]', 'video 40 17010000', 'audio 41 af01']);
    t.regex(told[4] ?? '', /^malformed: /);
    t.deepEqual(told.slice(5), ['audio 90 af01', 'video 93 17']);
  });
}

test('media without a status begin the stream, too', (t) => {
  const { server, told, settle } = connected(accept(statusInfo('status', 'NetStream.Play.Reset', '')));
  t.deepEqual(told, []);
  server.send(MessageType.Audio, 0, Buffer.from('af01', 'hex'));
  settle();
  t.deepEqual(told, ['playing', 'audio 0 af01']);
});

test('a stream that the server does not have, or ends, is over, and the reason is told', (t) => {
  const missing = statusInfo('error', 'NetStream.Play.StreamNotFound', 'no such stream');
  t.deepEqual(connected(accept(missing)).told, [
    'the server ended the stream: "no such stream, NetStream.Play.StreamNotFound"',
  ]);
  for (const code of ['NetStream.Play.UnpublishNotify', 'NetStream.Play.Stop']) {
    const { server, told, settle } = connected(accept());
    server.wire.status(STREAM_ID, statusInfo('status', code, ''));
    settle();
    t.deepEqual(told, ['playing', `the server ended the stream: "${code}"`]);
  }
  const { server, told, settle } = connected(accept());
  server.send(MessageType.UserControl, 0, encodeUserControl(UserControl.StreamEof, STREAM_ID));
  settle();
  t.deepEqual(told, ['playing', 'the server ended the stream']);
});

test('a refusal is told with its description', (t) => {
  const { told } = connected(({ wire }, { name, transactionId }) => {
    const info = statusInfo('error', 'NetConnection.Connect.Rejected', 'no such application');
    if (name === 'connect') wire.call('_error', transactionId, null, info);
  });
  t.deepEqual(told, [
    'refused: no such application',
    'the server refused connect: "no such application, NetConnection.Connect.Rejected"',
  ]);
});

test('a server of a stream to play that does not speak RTMP, or sends too much of it, is rejected', (t) => {
  const nothing = { playing() {}, refused() {}, audio() {}, video() {}, data() {}, malformedData() {}, ended() {} };
  const target = { app: 'a', tcUrl: 'rtmp://a/a', name: 's', fourCcs: { video: [], audio: [] } };
  const http = new PlayingClient(target, () => {}, nothing);
  http.open();
  t.throws(() => http.receive(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')), { instanceOf: RtmpError });
  const large = new PlayingClient(target, () => {}, nothing);
  large.open();
  large.receive(Buffer.concat([Buffer.of(3), Buffer.alloc(2 * HANDSHAKE_BYTES)]));
  // a message of 16 MiB
  t.throws(() => large.receive(Buffer.from('04000000ffffff0901000000', 'hex')), { instanceOf: RtmpError });
});
