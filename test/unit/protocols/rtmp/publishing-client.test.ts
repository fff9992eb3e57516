import test from 'ava';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import type { AmfObject, AmfValue } from '../../../../src/protocols/rtmp/amf-value.ts';
import { PublishingClient } from '../../../../src/protocols/rtmp/publishing-client.ts';
import { statusInfo, type Command } from '../../../../src/protocols/rtmp/command.ts';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import { HANDSHAKE_BYTES } from '../../../../src/protocols/rtmp/handshake.ts';
import { ServerConnection } from '../../../../src/protocols/rtmp/server-connection.ts';

const LIMITS = { messageBytes: 1 << 20, partialBytes: 1 << 20, chunkStreams: 16 };
const START = statusInfo('status', 'NetStream.Publish.Start', 'go');

interface Server {
  readonly wire: ServerConnection;
  readonly heard: (Command & { streamId: number })[];
  readonly media: { readonly kind: string; readonly time: number; readonly body: string }[];
  readonly data: AmfValue[][];
}

/** A client and a server, whose bytes go over one at a time where `single` says so. */
function connected(answer: (server: Server, command: Command, streamId: number) => void, single = false) {
  const told: string[] = [];
  const server = { heard: [], media: [], data: [] } as unknown as { -readonly [K in keyof Server]: Server[K] };
  const pending: (() => void)[] = [];
  const carry = (to: () => { receive(data: Buffer): void }) => (pieces: readonly Buffer[]) => {
    const bytes = Buffer.concat(pieces);
    const parts = single ? [...bytes].map((byte) => Buffer.of(byte)) : [bytes];
    for (const part of parts) pending.push(() => to().receive(part));
  };
  const media = (kind: string) => (payload: Buffer, time: number) =>
    void server.media.push({ kind, time, body: payload.toString('hex') });
  server.wire = new ServerConnection(
    LIMITS,
    carry(() => client),
    {
      command: (command, streamId) => {
        server.heard.push({ ...command, streamId });
        answer(server, command, streamId);
      },
      data: (values) => void server.data.push(values),
      malformedData: (error) => told.push(error.message),
      audio: media('audio'),
      video: media('video'),
    },
  );
  const client: PublishingClient = new PublishingClient(
    { app: 'live', tcUrl: 'rtmp://a/live', name: 'secret', fourCcs: { video: ['hvc1', 'av01'], audio: ['Opus'] } },
    carry(() => server.wire),
    {
      published: () => void told.push('published'),
      refused: () => {},
      reconnect: (tcUrl) => void told.push(`reconnect: ${tcUrl}`),
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

/** What servers do, with these properties in the answer to `connect`. */
function accept(properties: AmfObject) {
  return ({ wire }: Server, { name, transactionId }: Command, streamId: number): void => {
    if (name === 'connect') {
      wire.sendWindows();
      wire.call('_result', transactionId, properties, statusInfo('status', 'NetConnection.Connect.Success', ''));
    } else if (name === 'createStream') wire.call('_result', transactionId, null, 7);
    else if (name === 'publish') wire.status(streamId, START);
    else wire.call('_error', transactionId, null, statusInfo('error', 'NetConnection.Call.Failed', 'no such method'));
  };
}

for (const single of [false, true]) {
  test(`a stream is published${single ? ', byte by byte' : ''}, and ended`, (t) => {
    const { client, server, told, settle } = connected(accept({}), single);
    t.deepEqual(told, ['published']);
    t.deepEqual(
      server.heard.map(({ name, streamId, args }) => [name, streamId, args]),
      [
        ['connect', 0, []],
        ['releaseStream', 0, ['secret']],
        ['FCPublish', 0, ['secret']],
        ['createStream', 0, []],
        ['publish', 7, ['secret', 'live']],
      ],
    );
    t.like(server.heard[0]?.object, {
      app: 'live',
      tcUrl: 'rtmp://a/live',
      fourCcList: ['hvc1', 'av01', 'Opus'],
      videoFourCcInfoMap: { hvc1: 2, av01: 2 },
      capsEx: 1,
    });
    client.metadata({ width: 2 });
    client.data(7, encodeAmf0('onTextData', { text: 'hello' }));
    client.video(0, Buffer.of(0x17, 1, 0, 0, 0), Buffer.alloc(5000, 3));
    client.audio(0x1000005, Buffer.of(0xaf, 1), Buffer.of(9));
    settle();
    t.like(server.data[0], ['@setDataFrame', 'onMetaData']);
    t.like(server.data[1], ['onTextData', { text: 'hello' }]);
    t.deepEqual(server.media, [
      { kind: 'video', time: 0, body: `1701000000${'03'.repeat(5000)}` },
      { kind: 'audio', time: 0x1000005, body: 'af0109' },
    ]);
    client.unpublish();
    client.unpublish();
    settle();
    t.deepEqual(
      server.heard.slice(5).map(({ name, args }) => [name, args]),
      [
        ['FCUnpublish', ['secret']],
        ['deleteStream', [7]],
      ],
    );
  });
}

test('a codec may be sent when the server has said that it takes it, in either form', (t) => {
  const none = connected(accept({})).client;
  t.false(none.takes('hvc1'));
  const listed = connected(accept({ fourCcList: ['av01'] })).client;
  t.deepEqual([listed.takes('av01'), listed.takes('hvc1')], [true, false]);
  const mapped = connected(accept({ videoFourCcInfoMap: { hvc1: 4, av01: 2 }, audioFourCcInfoMap: { '*': 1 } })).client;
  t.deepEqual([mapped.takes('hvc1'), mapped.takes('Opus')], [true, true]);
  const encodes = connected(accept({ videoFourCcInfoMap: { av01: 2 } })).client;
  t.false(encodes.takes('av01'));
  const anyAudio = connected(accept({ videoFourCcInfoMap: { avc1: 1 }, audioFourCcInfoMap: { '*': 1 } })).client;
  t.deepEqual([anyAudio.takes('hvc1'), anyAudio.takes('Opus')], [false, true]);
});

test('a server may ask for another connection, while the stream is published', (t) => {
  const { server, told, settle } = connected(accept({}));
  const ask = (info: object): void => {
    server.wire.call('onStatus', 0, null, { level: 'status', code: 'NetConnection.Connect.ReconnectRequest', ...info });
    settle();
  };
  ask({ description: 'update' });
  ask({ tcUrl: '//192.0.2.0/realtimeapp' });
  ask({ tcUrl: 7 });
  ask({ level: 'warning' });
  t.deepEqual(told, [
    'published',
    'reconnect: undefined',
    'reconnect: //192.0.2.0/realtimeapp',
    'reconnect: undefined',
  ]);
  const early = connected((connection, command, streamId) => {
    if (command.name === 'createStream')
      connection.wire.call('onStatus', 0, null, { level: 'status', code: 'NetConnection.Connect.ReconnectRequest' });
    accept({})(connection, command, streamId);
  });
  t.deepEqual(early.told, ['published']);
});

test('a refusal to publish is read in either form', (t) => {
  const { told } = connected((server, command, streamId) => {
    if (command.name !== 'publish') return accept({})(server, command, streamId);
    server.wire.call('_error', command.transactionId, null, statusInfo('error', 'Rejected', 'not here'));
  });
  t.deepEqual(told, ['the server refused publish: "not here, Rejected"']);
});

test('a refusal is reported with its reason', (t) => {
  const refuse = (method: string) => (server: Server, command: Command, streamId: number) => {
    if (command.name !== method) return accept({})(server, command, streamId);
    const info = statusInfo('error', 'Rejected', 'not here');
    if (method === 'publish') server.wire.status(streamId, info);
    else server.wire.call('_error', command.transactionId, null, info);
  };
  t.deepEqual(connected(refuse('connect')).told, ['the server refused connect: "not here, Rejected"']);
  t.deepEqual(connected(refuse('createStream')).told, ['the server refused createStream: "not here, Rejected"']);
  t.deepEqual(connected(refuse('publish')).told, ['the server ended the stream: "not here, Rejected"']);
});

test('the end of a published stream is reported', (t) => {
  const { server, told, settle } = connected(accept({}));
  server.wire.status(7, statusInfo('error', 'NetStream.Publish.BadName', 'in use'));
  settle();
  t.deepEqual(told.slice(1), ['the server ended the stream: "in use, NetStream.Publish.BadName"']);
});

test('a server that does not speak RTMP, or sends too much of it, is rejected', (t) => {
  const make = () =>
    new PublishingClient({ app: '', tcUrl: '', name: '', fourCcs: { video: [], audio: [] } }, () => {}, {
      published: () => t.fail(),
      refused: () => t.fail(),
      reconnect: () => t.fail(),
      ended: () => {},
    });
  t.throws(() => make().receive(Buffer.from('HTTP/1.1 400 Bad Request')), { instanceOf: RtmpError });
  const long = make();
  const handshake = Buffer.alloc(1 + 2 * HANDSHAKE_BYTES);
  handshake[0] = 3;
  long.receive(handshake);
  const tooLong = Buffer.from('0300000010000014000000000000', 'hex');
  t.throws(() => long.receive(tooLong), { instanceOf: RtmpError });
});
