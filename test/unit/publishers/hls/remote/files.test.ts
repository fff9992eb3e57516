import { gunzipSync } from 'node:zlib';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const TRACKS = [videoTrack(), audioTrack()];

/** A stream of node `a` that `b` and `c` know of, and a function that brings it on to a media time. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}, gop = 60) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')]);
  const { input, output } = await a.goLive(TRACKS);
  for (const node of [b, c]) await untilKnown(node, a);
  return { a, b, c, input, output, advance: feeder(output, gop) };
}

/** Asks again where the owner was so late that it was taken for silent: then a player is told what is known. */
const untilOverdue = (node: LlhlsNode, url: string) =>
  until('it is overdue', async () => {
    const answer = await node.get(url);
    return answer.statusCode === 503 && answer;
  });

const uris = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, uri]) => uri as string);
const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const media = ({ asked }: LlhlsNode) => asked.filter((path) => path.includes('/media/'));

test('every file of a stream is the same on every node, with the same headers', async (t) => {
  const { a, b, c, advance } = await live(t, {
    llhls: {
      segmentCount: 8,
      crossDomains: { url: ['*'] },
      cacheControl: { segmentMaxAge: 9, partialSegmentMaxAge: 8 },
    },
  });
  advance(18.1);
  const headers = { origin: 'http://somewhere' };
  const same = async (url: string, more: Record<string, string> = {}) => {
    const [own, ...others] = await Promise.all([
      a.get(url, { ...headers, ...more }),
      ...[b, c].map((node) => node.get(url, { ...headers, ...more })),
    ]);
    for (const other of others) {
      t.is(other.statusCode, own.statusCode, url);
      t.deepEqual(other.rawPayload, own.rawPayload, url);
      t.deepEqual({ ...other.headers, date: '' }, { ...own.headers, date: '' }, url);
    }
    return own;
  };
  for (const url of await b.children()) {
    const list = await same(url);
    t.is(list.statusCode, 200);
    const zipped = await same(url, { 'accept-encoding': 'gzip' });
    t.is(gunzipSync(zipped.rawPayload).toString(), list.body);
    t.regex((await same(`${url}?_HLS_skip=YES`)).body, /SKIPPED-SEGMENTS/);
    t.notRegex((await same(`${url}?_HLS_legacy=YES`)).body, /PART/);
    t.is((await same(`${url}?_HLS_msn=8`)).headers['cache-control'], 'max-age=60');
    t.is((await same(`${url}?_HLS_msn=8&_HLS_part=0`)).headers['cache-control'], 'no-cache, no-store');
    for (const name of uris(list.body, /(?:MAP|PART):.*URI="([^"]+)"/g))
      t.is((await same(sibling(url, name))).statusCode, 200);
    const [segment = ''] = uris(list.body, /^(seg_.*)$/gm);
    t.is((await same(sibling(url, segment))).headers['cache-control'], 'max-age=9');
    t.is((await same(sibling(url, segment), { range: 'bytes=5-20' })).statusCode, 206);
    t.is((await same(sibling(url, segment), { range: 'bytes=999999-' })).statusCode, 416);
    for (const query of ['_HLS_msn=99', '_HLS_part=1', '_HLS_msn=x'])
      t.is((await same(`${url}?${query}`)).statusCode, 400);
    for (const name of ['seg_0_99_video_x_llhls.m4s', 'chunklist_9_video_x_llhls.m3u8', 'other.m4s'])
      t.is((await same(sibling(url, name))).statusCode, 404);
    const head = await b.app.inject({ method: 'HEAD', url: sibling(url, segment) });
    t.like(head, { statusCode: 200, body: '' });
  }
  for (const path of [
    '/app/nobody/llhls.m3u8',
    '/app/stream/other.m3u8',
    '/app/stream/other.m4s',
    '/app/stream/chunklist_0_video_x_llhls.m3u8',
  ])
    await same(path);
});

test('the legacy form is the one of the owner, whatever is asked for at the same time', async (t) => {
  const { a, b, advance } = await live(t);
  advance(5.2);
  const url = (await b.children())[1] as string;
  const legacy = `${url}?_HLS_legacy=YES`;
  const [, , together] = await Promise.all([b.get(url), b.get(`${url}?_HLS_skip=YES`), b.get(legacy)]);
  t.is(together?.body, (await a.get(legacy)).body);
  const other = (await b.children())[0] as string;
  const newest = Math.max(...uris((await b.get(other)).body, /^seg_\d+_(\d+)_/gm).map(Number));
  const before = b.asked.length;
  const next = b.get(`${other}?_HLS_msn=${newest + 1}`);
  await until('it waits', () => b.asked.length > before);
  const old = b.get(`${other}?_HLS_legacy=YES&_HLS_msn=${newest + 1}`);
  advance(9.2);
  t.regex((await next).body, /#EXT-X-PART:/);
  t.is((await old).body, (await a.get(`${other}?_HLS_legacy=YES`)).body);
});

test('media is fetched once for a node, however many ask and however often', async (t) => {
  const { b, advance } = await live(t);
  advance(7.1);
  const [url = ''] = await b.children();
  const [name = ''] = uris((await b.get(url)).body, /^(seg_.*)$/gm);
  const all = await Promise.all(Array.from({ length: 50 }, () => b.get(sibling(url, name))));
  t.true(
    all.every(
      ({ statusCode, rawPayload }) => statusCode === 200 && rawPayload.equals(all[0]?.rawPayload ?? Buffer.alloc(0)),
    ),
  );
  await b.get(sibling(url, name), { range: 'bytes=0-9' });
  t.is(media(b).length, 1);
});

test('players of a node that wait for media wait by one call, and get the same as those at the owner', async (t) => {
  const { a, b, advance } = await live(t);
  advance(3.1);
  const url = (await b.children())[1] as string;
  await b.get(url);
  const before = b.asked.length;
  const chunklists = () => b.asked.slice(before).filter((path) => path.includes('/chunklist/'));
  const next = `${url}?_HLS_msn=1&_HLS_part=2`;
  const held = Promise.all(Array.from({ length: 40 }, () => b.get(next)));
  const whole = b.get(`${url}?_HLS_msn=1`);
  const own = a.get(next);
  await until('the call is under way', () => chunklists().length > 0);
  let done = false;
  void held.then(() => (done = true));
  await until('the owner holds it', async () => !done && (await a.get(url)).statusCode === 200);
  advance(3.5);
  for (const { statusCode, body } of await held) {
    t.is(statusCode, 200);
    t.is(body, (await own).body);
  }
  t.true(chunklists().length <= 2, `${chunklists().length} calls`);
  advance(4.1);
  t.regex((await whole).body, /seg_0_1_video/);
  t.true(chunklists().length <= 6, `${chunklists().length} calls`);
});

test('a part that was hinted at is held through the hop; one that does not come is 404', async (t) => {
  const { a, b, advance, output } = await live(t);
  advance(3.1);
  const url = (await b.children())[1] as string;
  const hintOf = async () =>
    sibling(url, uris((await a.get(url)).body, /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/g)[0] as string);
  const hint = await hintOf();
  const held = Promise.all(Array.from({ length: 10 }, () => b.get(hint)));
  await until('it is asked for', () => media(b).length > 0);
  advance(3.5);
  const own = await a.get(hint);
  for (const { statusCode, rawPayload } of await held) {
    t.is(statusCode, 200);
    t.deepEqual(rawPayload, own.rawPayload);
  }
  t.is(media(b).length, 1);
  advance(4.1);
  for (const packet of videoPackets(videoTrack(), { from: 4.1, to: 4.5, gop: 60 })) output.write(packet);
  const never = hintOf().then((name) => b.get(name));
  await until('it is asked for', () => media(b).length > 1);
  const changed = videoTrack({ config: AVC_HIGH });
  for (const packet of videoPackets(changed, { from: 5, to: 5.1, gop: 5 })) output.write(packet);
  t.is((await never).statusCode, 404);
});

test('a stream that has not started: held on every node by few calls, 201 after that, and then it plays', async (t) => {
  const { a, b, c, advance } = await live(t);
  const masters = ({ asked }: LlhlsNode) => asked.filter((path) => path.includes('/master/')).length;
  const done: number[] = [];
  const ask = (node: LlhlsNode, url: string) => node.get(url).finally(() => done.push(1));
  const held = [b, c].flatMap((node) => ['', '', '?session=me'].map((query) => ask(node, `${MASTER}${query}`)));
  await delay(6000);
  t.is(done.length, 0);
  const calls = masters(b);
  t.true(calls <= 5, `${calls} calls`);
  for (const answer of held) t.like(await answer, { statusCode: 201, body: '' });
  const next = [a, b, c].map((node) => ask(node, MASTER));
  await until('they are held', () => a.publisher.waiting > 1);
  advance(3.1);
  for (const answer of next) t.is((await answer).statusCode, 200);
});

test('an unchanged playlist is repeated to a session after half a target duration, on every node', async (t) => {
  const { a, b, c, advance } = await live(t);
  advance(4.1);
  for (const node of [a, b, c]) {
    const [, url = ''] = await node.children();
    const first = await node.get(url);
    t.is(first.statusCode, 200);
    let done = 0;
    const again = node.get(url).finally(() => done++);
    await delay(800);
    t.is(done, 0, node.id);
    t.is((await again).body, first.body);
  }
});

test('files of another node that do not come in three target durations: 503', async (t) => {
  const { b, advance } = await live(t, { llhls: { segmentDuration: 0.5 } }, 30);
  advance(3.1);
  const url = (await b.children())[1] as string;
  const late = await untilOverdue(b, `${url}?_HLS_msn=4`);
  t.is(late.headers['retry-after'], '1');
});

test('the first segment is waited for as long as it takes', async (t) => {
  const { b, advance } = await live(t, { llhls: { segmentDuration: 1 } }, 150);
  advance(0.6);
  const [, url = ''] = await b.children();
  const held = b.get(url);
  await untilOverdue(b, `${url}?_HLS_msn=0`);
  advance(5.1);
  const { statusCode, body } = await held;
  t.is(statusCode, 200);
  t.is(uris(body, /^(seg_.*)$/gm).length, 1);
});

test('OriginMode: no tokens, on any node, and no file of a stream of the same name before', async (t) => {
  const { a, b, advance, input } = await live(t, { llhls: { originMode: true } });
  advance(3.1);
  const [, url = ''] = await b.children();
  t.regex(url, /^\/app\/stream\/chunklist_0_video_\d+_llhls\.m3u8$/);
  const segment = sibling(url, uris((await b.get(url)).body, /^(seg_.*)$/gm)[0] as string);
  const before = (await b.get(segment)).rawPayload;
  t.deepEqual(before, (await a.get(segment)).rawPayload);
  t.is((await b.get(`/app/stream/${'a'.repeat(40)}/${url.split('/').at(-1)}`)).statusCode, 404);
  input.end('deleted');
  await until('it is gone', async () => (await b.get(url)).statusCode === 404);
  const { output } = await a.goLive(TRACKS);
  await untilKnown(b, a);
  const [video, audio] = [videoTrack(), audioTrack()];
  output.setTracks([video, audio]);
  for (const packet of interleaved(
    videoPackets(video, { to: 3.1, gop: 60, bytes: 222 }),
    audioPackets(audio, { to: 3.1 }),
  ))
    output.write(packet);
  t.is((await b.get(url)).statusCode, 200);
  for (const node of [a, b]) t.is((await node.get(segment)).statusCode, 404);
  t.not(uris((await b.get(url)).body, /^(seg_.*)$/gm)[0], segment.split('/').at(-1));
});
