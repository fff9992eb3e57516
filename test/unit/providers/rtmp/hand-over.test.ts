import test, { type ExecutionContext } from 'ava';
import type { NodeRow } from '#cluster';
import { HandOver, hasSuccessor } from '../../../../src/providers/rtmp/hand-over.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { ServerConnection } from '../../../../src/protocols/rtmp/server-connection.ts';
import { statusInfo } from '../../../../src/protocols/rtmp/command.ts';
import { PictureClient } from '../../../support/rtmp/picture-client.ts';
import { OBS_PROPERTIES, RtmpClient } from '../../../support/rtmp/rtmp-client.ts';
import { startRtmp } from '../../../support/rtmp/rtmp-server.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

/** A publisher that can be asked to reconnect, and counts how often it was. */
class FakePublisher {
  asked: number[] = [];
  handsOver = false;
  leavesWhenAsked = false;
  gone = false;

  setHandsOver(handsOver: boolean): boolean {
    this.handsOver = handsOver;
    return !this.gone;
  }

  askToReconnect(): void {
    this.asked.push(performance.now());
    this.gone = this.leavesWhenAsked;
  }
}

function start(t: ExecutionContext, count: number) {
  virtualTime(t);
  const registry = new Registry();
  const others = { ready: true };
  const publishers = Array.from({ length: count }, () => new FakePublisher());
  const handOver = new HandOver({ registry, hasSuccessor: () => others.ready, publishers: () => publishers });
  t.teardown(() => handOver.close());
  return { registry, others, publishers };
}

test.serial(
  'a publisher on a draining node may be taken over at once, is asked to reconnect after a while, and again while it stays',
  async (t) => {
    const { registry, publishers } = start(t, 1);
    const [publisher] = publishers as [FakePublisher];
    const from = performance.now();
    registry.draining = true;
    t.true(publisher.handsOver);
    await until('it is asked three times', () => publisher.asked.length === 3);
    const [first = 0, second = 0, third = 0] = publisher.asked;
    t.deepEqual([first - from, second - first, third - second].map(Math.round), [3000, 5000, 5000]);
    registry.draining = false;
    t.false(publisher.handsOver);
    await until('another minute is over', () => performance.now() > third + 60_000);
    t.is(publisher.asked.length, 3);
  },
);

test.serial('publishers are not asked all at once, and those that have left are not asked again', async (t) => {
  const { registry, publishers } = start(t, 100);
  for (const publisher of publishers) publisher.leavesWhenAsked = true;
  registry.draining = true;
  await until('all are asked', () => publishers.every(({ asked }) => asked.length === 1));
  const times = publishers.map(({ asked }) => asked[0] as number);
  t.true(Math.max(...times) - Math.min(...times) >= 1900);
  await until('a later round', () => performance.now() > (times.at(-1) as number) + 12_000);
  t.true(publishers.every(({ asked }) => asked.length === 1));
});

test.serial('no publisher is asked to reconnect while there is no other node', async (t) => {
  const { registry, publishers, others } = start(t, 1);
  const [publisher] = publishers as [FakePublisher];
  others.ready = false;
  const from = performance.now();
  registry.draining = true;
  await until('some rounds are over', () => performance.now() > from + 20_000);
  t.deepEqual(publisher.asked, []);
  others.ready = true;
  await until('it is asked', () => publisher.asked.length === 1);
});

test.serial(
  'another node can be come to when it is ready, has begun to take publishers, and takes them by RTMP',
  (t) => {
    const self = { id: 'a', incarnation: '1' };
    const rtmp = { addresses: { rtmp: ['rtmp://b:1935'] } };
    const row: NodeRow = {
      id: 'b',
      incarnation: '1',
      load: 0,
      full: false,
      info: rtmp,
      address: undefined,
      state: 'ready',
      uptimeMs: 0,
      silentMs: 0,
    };
    const comesTo = (shape: Partial<NodeRow>): boolean => hasSuccessor({ self, nodes: () => [{ ...row, ...shape }] });
    t.true(comesTo({}));
    for (const state of ['draining', 'silent', 'lost'] as const) t.false(comesTo({ state }), state);
    t.false(comesTo({ id: 'a' }), 'itself');
    t.false(comesTo({ full: true, info: {} }), 'it is starting');
    t.false(comesTo({ info: { addresses: { srt: ['srt://b:9999'] } } }), 'it takes none by RTMP');
  },
);

test.serial('only clients that have announced it are asked to reconnect, and go on until they have', async (t) => {
  const server = await startRtmp({ hasSuccessor: true });
  t.teardown(() => server.close());
  const publish = (name: string, capsEx: number): Promise<RtmpClient> =>
    RtmpClient.publish(name, { port: server.port, properties: { ...OBS_PROPERTIES, capsEx } });
  const [able, unable] = await Promise.all([publish('able', 0b1001), publish('unable', 0b1110)]);
  t.teardown(() => [able, unable].forEach((client) => client.close()));
  const pictures = [able, unable].map((client) => PictureClient.of(client));
  t.teardown(() => pictures.forEach((picture) => picture.close()));
  await until('both are live', () => server.recordings.length === 2);
  const handsOver = (name: string) => server.recordings.find(({ input }) => input.name === name)?.input.handsOver;
  server.registry.draining = true;
  t.deepEqual([handsOver('able'), handsOver('unable')], [true, false]);
  const asked = (client: RtmpClient) =>
    client.heard.filter(({ args: [info] }) => /ReconnectRequest/.test(JSON.stringify(info)));
  await until('it is asked', () => asked(able).length > 0);
  t.like(asked(able)[0], { name: 'onStatus', transactionId: 0 });
  t.deepEqual(
    asked(able)[0]?.args.map((info) => ({ ...(info as object) })),
    [
      {
        level: 'status',
        code: 'NetConnection.Connect.ReconnectRequest',
        description: 'This server is about to stop',
      },
    ],
  );
  t.deepEqual(asked(unable), []);
  t.false(able.socket.closed || unable.socket.closed);
  server.registry.draining = false;
  t.false(handsOver('able'));
});

test.serial('a request is a command on message stream 0 without an object', (t) => {
  const sent: Buffer[] = [];
  const events = { command() {}, data() {}, malformedData() {}, audio() {}, video() {} };
  const wire = new ServerConnection(
    { messageBytes: 1024, partialBytes: 1024, chunkStreams: 4 },
    (pieces) => void sent.push(...pieces),
    events,
  );
  wire.call('onStatus', 0, null, statusInfo('status', 'NetConnection.Connect.ReconnectRequest', 'x'));
  const text = (value: string) =>
    `02${value.length.toString(16).padStart(4, '0')}${Buffer.from(value).toString('hex')}`;
  const entry = (name: string, value: string) =>
    `${name.length.toString(16).padStart(4, '0')}${Buffer.from(name).toString('hex')}${text(value)}`;
  const body = [
    text('onStatus'),
    '000000000000000000',
    '05',
    '03',
    entry('level', 'status'),
    entry('code', 'NetConnection.Connect.ReconnectRequest'),
    entry('description', 'x'),
    '000009',
  ].join('');
  // one chunk of type 0 on chunk stream 3
  const bytes = Buffer.concat(sent).toString('hex');
  const length = (body.length / 2).toString(16).padStart(6, '0');
  t.is(bytes, `03000000${length}1400000000${body}`);
});
