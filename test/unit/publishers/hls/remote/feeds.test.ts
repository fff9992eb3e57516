import test, { type ExecutionContext } from 'ava';
import { writeFrame } from '../../../../../src/peers/peer-frames.ts';
import { Random } from '../../../../soak/random.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const LLHLS = { segmentCount: 6, chunkDuration: 0.5 };
const FEED = '/llhls-feed';

/** A stream of node `a`, which `b` knows of, and the chunklist of its picture for a player of `b`. */
async function live(t: ExecutionContext, segmentDuration = 2) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { llhls: { ...LLHLS, segmentDuration } });
  const [a, b] = await Promise.all([open('a'), open('b')]);
  const { input, output } = await a.goLive([videoTrack(), audioTrack()]);
  await untilKnown(b, a);
  const advance = feeder(output, 30 * segmentDuration);
  advance(7.2);
  return { a, b, input, output, advance, url: (await b.children())[1] as string };
}

const sibling = (url: string, name: string): string => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const hintOf = (list: string): string => /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(list)?.[1] ?? 'none';

/** The number of the part that a hint names, and of its segment. */
function placeOf(hint: string): string {
  const [, msn = '', part = ''] = /^part_\d+_(\d+)_(\d+)_/.exec(hint) ?? [];
  return `_HLS_msn=${msn}&_HLS_part=${part}`;
}

/** A player that asks for each next part, as soon as the playlist hints at it, and for the playlist that lists it. */
async function player(node: LlhlsNode, url: string) {
  let { body: list } = await node.get(url);
  return {
    /** @param bring brings the stream on by a part, when both are waited for */
    next: async (bring: () => void) => {
      const hint = hintOf(list);
      const calls = node.asked.length;
      const both = Promise.all([node.get(sibling(url, hint)), node.get(`${url}?${placeOf(hint)}`)]);
      await until('it waits', () => node.fedBy.size > 0 || node.asked.length > calls);
      bring();
      const [part, answer] = await both;
      list = answer.body;
      return { hint, part, answer };
    },
  };
}

/** A player of the other node has got some parts, and gets the next ones without a call. */
async function playing(t: ExecutionContext, segmentDuration = 2) {
  const there = await live(t, segmentDuration);
  const { b, url, advance } = there;
  const viewer = await player(b, url);
  let at = 7.2;
  const next = () => viewer.next(() => advance((at += 0.5)));
  await next();
  await until('parts are sent', async () => {
    const calls = b.asked.length;
    await next();
    return b.asked.length === calls;
  });
  return { ...there, next };
}

test('chunklists and parts come without calls, with the bytes of the owner', async (t) => {
  const { a, b, url, next } = await playing(t);
  const calls = b.asked.length;
  for (let part = 0; part < 12; part++) {
    const { hint, part: answer, answer: list } = await next();
    t.is(answer.statusCode, 200, hint);
    t.deepEqual(answer.rawPayload, (await a.get(sibling(url, hint))).rawPayload, hint);
    t.is(list.body, (await a.get(url)).body);
  }
  t.is(b.asked.length, calls, b.asked.slice(calls).join(' '));
  t.deepEqual([...b.fedBy.keys()], ['a']);
});

test('a player of whole segments causes no parts to be sent between nodes', async (t) => {
  const { a, b, url, advance } = await live(t);
  const newest = (list: string): number =>
    Math.max(...[...list.matchAll(/^seg_\d+_(\d+)_/gm)].map(([, msn]) => Number(msn)));
  let { body } = await b.get(url);
  for (let segment = 0; segment < 6; segment++) {
    const next = b.get(`${url}?_HLS_msn=${newest(body) + 1}`);
    await until('it waits', () => segment === 0 || b.fedBy.size > 0);
    advance(9.2 + 2 * segment);
    ({ body } = await next);
  }
  t.is(body, (await a.get(url)).body);
  t.true(b.fedBy.size > 0);
  const part = /#EXT-X-PART:[^\n]*URI="([^"]+)"/.exec(body)?.[1] ?? '';
  const before = b.asked.length;
  t.is((await b.get(sibling(url, part))).statusCode, 200);
  t.is(b.asked.length, before + 1, 'it was not here yet');
});

test('the end of a publisher is reported to other nodes at once', async (t) => {
  const { b, input, url, next } = await playing(t);
  const { answer } = await next();
  input.close('the publisher left');
  const hint = hintOf(answer.body);
  const list = await b.get(`${url}?${placeOf(hint)}`);
  t.is(list.statusCode, 200);
  t.is(hintOf(list.body), 'none');
});

test('a request that waits for a silent node gets what is known', async (t) => {
  const { a, b, url, next } = await playing(t, 1);
  const { answer } = await next();
  a.silence();
  for (let request = 0; request < 4; request++) {
    const [now, waited] = await Promise.all([b.get(url), b.get(`${url}?${placeOf(hintOf(answer.body))}`)]);
    for (const list of [now, waited]) t.like(list, { statusCode: 200, body: answer.body });
  }
});

test('calls are made where nothing comes on a connection that is alive', async (t) => {
  const { b, next } = await playing(t);
  const [stream] = b.fedBy.values();
  stream?.pause();
  const alive = setInterval(() => stream?.emit('data', Buffer.from('00000002000000007b7d', 'hex')), 500);
  t.teardown(() => clearInterval(alive));
  for (let part = 0; part < 4; part++) {
    const { part: answer, answer: list } = await next();
    t.is(list.statusCode, 200);
    t.is(answer.statusCode, 200);
  }
});

test('calls are made where a connection breaks, or sends nonsense', async (t) => {
  const { b, next } = await playing(t);
  const random = new Random(3);
  const faults: ((stream: { emit(event: 'data', bytes: Buffer): unknown; destroy(): unknown }) => unknown)[] = [
    (stream) => stream.destroy(),
    (stream) => stream.emit('data', random.bytes(64)),
    (stream) => stream.emit('data', Buffer.from('00000002000000006e6f', 'hex')),
    (stream) =>
      stream.emit('data', Buffer.from('0000000d00000000' + Buffer.from('{"file":"no"}').toString('hex'), 'hex')),
  ];
  for (const fault of faults) {
    const [stream] = b.fedBy.values();
    if (stream !== undefined) fault(stream);
    for (let part = 0; part < 3; part++) t.is((await next()).part.statusCode, 200);
    await until('it is sent again', async () => {
      await next();
      return b.fedBy.size > 0;
    });
  }
});

test('a node that does not send is called', async (t) => {
  const { b, url, advance } = await live(t);
  let refused = 0;
  const { connect } = b.cluster;
  b.cluster.connect = async (...args) => {
    const stream = await connect(...args);
    refused++;
    stream.destroy();
    return stream;
  };
  const viewer = await player(b, url);
  let at = 7.2;
  for (let part = 0; part < 8; part++) t.is((await viewer.next(() => advance((at += 0.5)))).part.statusCode, 200);
  t.is(refused, 1);
});

test('a feed that no player waits for any more is not sent', async (t) => {
  const { b, advance } = await playing(t);
  await until('the connection is closed', () => b.fedBy.size === 0);
  advance(60);
  t.is(b.fedBy.size, 0);
});

test('no feed is sent to a node that takes no data', async (t) => {
  const { a, b, output, next } = await playing(t);
  t.is(a.publisher.feeds, 1);
  const [stream] = b.fedBy.values();
  stream?.cork();
  stream?.pause();
  await until('it is given up', () => a.publisher.feeds === 0);
  await until('it does not count', () => !output.watched);
  t.is((await next()).part.statusCode, 200);
});

test('requests of other nodes for feeds are validated', async (t) => {
  const { a, b } = await live(t);
  const path = { vhost: 'default', app: 'app', stream: 'stream', forms: ['full'], parts: true };
  const random = new Random(4);
  const requests: ((stream: Awaited<ReturnType<typeof b.cluster.connect>>) => unknown)[] = [
    (stream) => stream.write(random.bytes(64)),
    (stream) => stream.write(Buffer.from('0000000000000001', 'hex')),
    (stream) => writeFrame(stream, { file: 'no' }),
    (stream) => writeFrame(stream, { ...path, file: 5 }),
    (stream) => {
      for (let file = 0; file < 300; file++)
        writeFrame(stream, { ...path, file: `chunklist_${file}_video_x_llhls.m3u8` });
      for (let file = 0; file < 300; file++)
        writeFrame(stream, { ...path, file: `chunklist_${file}_video_x_llhls.m3u8` });
    },
  ];
  for (const [index, request] of requests.entries()) {
    const stream = await b.cluster.connect(a.cluster.self, FEED, 1000);
    let isClosed = false;
    for (const event of ['end', 'close']) stream.on(event, () => (isClosed = true));
    stream.resume();
    request(stream);
    await until(`request ${index} ends the connection`, () => isClosed);
  }
  const stream = await b.cluster.connect(a.cluster.self, FEED, 1000);
  let told = '';
  stream.on('data', (bytes: Buffer) => (told += bytes.toString('latin1')));
  for (const stranger of [{}, { app: 'other' }, { relayOf: 'someone' }])
    writeFrame(stream, { ...path, file: 'nothing.m3u8', ...stranger });
  await until('it is told that there is none', () => told.includes('{"file":"nothing.m3u8"}'));
  t.false(told.includes('EXTM3U'));
});
