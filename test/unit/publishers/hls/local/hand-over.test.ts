import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import type { Track } from '../../../../../src/core/track.ts';
import { KilnError } from '../../../../../src/errors.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const LLHLS = { segmentDuration: 2, segmentCount: 6, chunkDuration: 0.5 };
const TRACKS = [videoTrack(), audioTrack()];

/** Three nodes, and a stream of the first that has come to 5.2 seconds: a second, two whole segments and the next. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')]);
  const { input, output } = await a.goLive(TRACKS);
  for (const node of [b, c]) await untilKnown(node, a);
  feeder(output)(5.2);
  return { a, b, c, input, output };
}

/** A publisher tries until the name is free. */
function publishAgain(node: LlhlsNode, tracks: readonly Track[] = TRACKS) {
  return until('the name is free', () =>
    node.goLive(tracks).catch((error: unknown) => {
      if (error instanceof KilnError && error.code === 'streamExists') return undefined;
      throw error;
    }),
  );
}

const uris = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, uri]) => uri as string);
const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const numbers = (text: string) => uris(text, /^seg_\d+_(\d+)_/gm).map(Number);
const tag = (text: string, name: string) => Number(new RegExp(`^#EXT-X-${name}:(\\d+)`, 'm').exec(text)?.[1] ?? 0);

/** A chunklist of picture or sound as it is from some node, once it has a number. */
async function untilSegment(node: LlhlsNode, url: string, msn: number): Promise<string> {
  return until(`segment ${msn}`, async () => {
    const { statusCode, body } = await node.get(url);
    return statusCode === 200 && numbers(body).includes(msn) && body;
  });
}

test('a publisher that returns to the same node continues its playlists behind a discontinuity', async (t) => {
  const { a, b, input, output } = await live(t);
  const urls = await b.children();
  const before = await Promise.all(urls.map(async (url) => (await a.get(url)).body));
  const newest = Math.max(...numbers(before[1] ?? '')) + 1;
  input.close('the connection was lost');
  t.is(output.sessions.size, 0);
  for (const node of [a, b]) {
    t.is((await node.get(MASTER)).statusCode, 200, 'who comes now finds what there is');
    for (const url of urls)
      t.true(numbers((await node.get(url)).body).includes(newest), 'what was growing is complete');
  }
  const held = [a, b].map((node) => node.get(`${urls[1]}?_HLS_msn=${newest + 1}&_HLS_part=0`));
  const next = await publishAgain(a);
  feeder(next.output)(3.1);
  for (const { statusCode, body } of await Promise.all(held)) {
    t.is(statusCode, 200);
    t.regex(body, new RegExp(`part_0_${newest + 1}_0_`));
  }
  for (const [index, url] of urls.entries()) {
    const own = (await a.get(url)).body;
    t.is(await untilSegment(b, url, newest + 1), own);
    t.deepEqual(
      numbers(own).slice(0, numbers(before[index] ?? '').length),
      numbers(before[index] ?? ''),
      'old segments stay',
    );
    t.is(uris(own, /(#EXT-X-DISCONTINUITY)\n/g).length, 1);
    const behind = own.slice(own.indexOf('#EXT-X-DISCONTINUITY\n'));
    t.is(Math.min(...numbers(behind)), newest + 1);
    for (const name of uris(own, /URI="((?:part|init)[^"]+)"|^(seg_.*)$/gm))
      if (name !== undefined && !name.endsWith('m3u8')) {
        if (!own.includes(`HINT:TYPE=PART,URI="${name}"`))
          t.is((await b.get(sibling(url, name))).statusCode, 200, name);
      }
    HLS.setOptions({ strictMode: true });
    t.notThrows(() => HLS.parse(own));
  }
});

test('a publisher that returns to another node continues its playlists, and every node follows', async (t) => {
  const { a, b, c, input } = await live(t);
  const urls = await b.children();
  const old = await Promise.all(urls.map(async (url) => (await b.get(url)).body));
  input.close('the connection was lost');
  const newest = Math.max(...numbers(old[1] ?? '')) + 1;
  for (const url of urls)
    t.true(numbers((await b.get(url)).body).includes(newest) || (await untilSegment(b, url, newest)) !== '');
  const { output } = await publishAgain(c);
  feeder(output)(3.1);
  for (const node of [a, b]) await untilKnown(node, c);
  for (const [index, url] of urls.entries()) {
    const own = (await c.get(url)).body;
    t.is(tag(own, 'MEDIA-SEQUENCE'), newest + 1, 'nothing was lost, so nothing is left out');
    t.is(tag(own, 'DISCONTINUITY-SEQUENCE'), tag(old[index] ?? '', 'DISCONTINUITY-SEQUENCE') + 1);
    for (const node of [a, b]) t.is(await untilSegment(node, url, newest + 1), own);
    const inits = [old[index] ?? '', own].map((text) => uris(text, /EXT-X-MAP:URI="([^"]+)"/g)[0]);
    t.not(inits[0], inits[1], 'a file of another name is not taken for one that is known');
    for (const node of [a, b, c]) t.is((await node.get(sibling(url, inits[1] ?? ''))).statusCode, 200);
  }
  t.is(b.registry.counters.publishers.llhls, 1, 'its player is counted where it was let in');
  for (const node of [a, c]) t.is(node.registry.counters.publishers.llhls, 0);
});

test('requests that wait while the publisher is away get what there is, unless the stream goes on', async (t) => {
  const { a, b, input } = await live(t);
  const url = (await b.children())[1] as string;
  await b.get(url);
  input.close('the connection was lost');
  const last = (await a.get(url)).body;
  const ahead = `?_HLS_msn=${Math.max(...numbers(last)) + 1}&_HLS_part=0`;
  for (const answer of await Promise.all([a, b].map((node) => node.get(url + ahead)))) {
    t.is(answer.statusCode, 200);
    t.is(answer.body, last);
    t.is(answer.headers['cache-control'], 'no-cache, no-store', 'it is not what was asked for');
  }
});

test('a request for a stream that is continued and has not begun again waits, on any node', async (t) => {
  const { a, b, c, input } = await live(t);
  const url = (await b.children())[1] as string;
  const before = (await b.get(url)).body;
  input.close('the connection was lost');
  const { output } = await publishAgain(c);
  for (const node of [a, b]) await untilKnown(node, c);
  t.is((await b.get(url)).statusCode, 200, 'b has a playlist that it can tell');
  const held = [a, c].map((node) => node.get(url));
  await until('a asks for it', () => a.asked.some((path) => path.includes('/chunklist/')));
  feeder(output)(3.1);
  for (const { statusCode, body } of await Promise.all(held)) {
    t.is(statusCode, 200);
    t.is(Math.min(...numbers(body)), Math.max(...numbers(before)) + 2);
  }
});

test('players of a node that a publisher comes to go on there', async (t) => {
  const { b, input } = await live(t);
  const url = (await b.children())[1] as string;
  const { body } = await b.get(url);
  const next = Math.max(...numbers(body)) + 1;
  const held = b.get(`${url}?_HLS_msn=${next}`);
  input.close('the connection was lost');
  t.is((await held).statusCode, 200, 'what was growing is complete');
  const waiting = b.get(`${url}?_HLS_msn=${next + 1}`);
  const { output } = await publishAgain(b);
  t.is((await waiting).statusCode, 200, 'it is told to ask again');
  feeder(output)(3.1);
  t.true(numbers((await b.get(url)).body).includes(next + 1));
});

test('a stream that is ended on purpose is gone on every node', async (t) => {
  const { a, b, input } = await live(t);
  const urls = await b.children();
  for (const url of urls) t.is((await b.get(url)).statusCode, 200);
  input.end('deleted');
  for (const node of [a, b]) {
    await until('it is gone', async () => (await node.get(urls[0] as string)).statusCode === 404);
    t.is((await node.get(MASTER)).statusCode, 404);
  }
  const { output } = await publishAgain(a);
  feeder(output)(3.1);
  t.is((await a.get(urls[0] as string)).statusCode, 404, 'what comes under its name is another');
});

test('an application that is closed takes what is kept of its streams with it', async (t) => {
  const { a, application, input } = await live(t).then((nodes) => ({ ...nodes, application: nodes.a.application }));
  const url = (await a.children())[1] as string;
  input.close('the connection was lost');
  t.is((await a.get(url)).statusCode, 200);
  application.close('restarted');
  t.is((await a.get(url)).statusCode, 404);
});

test('a publisher that takes the name over continues the playlists, too', async (t) => {
  const { a, b, c } = await live(t);
  const url = (await b.children())[1] as string;
  const before = (await b.get(url)).body;
  const again = await a.goLive(TRACKS, 'stream', true);
  feeder(again.output)(3.1);
  const newest = Math.max(...numbers(before)) + 1;
  const own = await untilSegment(a, url, newest + 1);
  t.true(numbers(own).includes(newest - 1), 'on the same node with the segments before');
  t.is(await untilSegment(b, url, newest + 1), own);
  const { output } = await c.goLive(TRACKS, 'stream', true);
  feeder(output)(3.1);
  for (const node of [a, b]) await untilKnown(node, c);
  const [, behind = ''] = (await c.get(url)).body.split('#EXT-X-DISCONTINUITY\n');
  const first = Math.min(...numbers(behind));
  t.true(first > newest + 1, 'on another one with gaps');
  for (const node of [a, b]) await untilSegment(node, url, first);
});

test('new tracks after a hand-over play, and former ones are there for those who know them', async (t) => {
  const { a, b, input } = await live(t);
  const [sound = '', picture = ''] = await b.children();
  input.close('the connection was lost');
  const { output } = await publishAgain(a, [videoTrack({ config: AVC_HIGH, width: 1280, height: 720 })]);
  const packets = feeder(output);
  packets(3.1);
  const list = await until('it goes on', async () => {
    const { body } = await b.get(picture);
    return body.includes('#EXT-X-DISCONTINUITY\n') && body;
  });
  t.is(new Set(uris(list, /EXT-X-MAP:URI="([^"]+)"/g)).size, 2, 'and needs decoders to be set up anew');
  t.notRegex(list, /EXT-X-GAP/);
  await untilSegment(b, sound, Math.max(...numbers(list)));
  t.notRegex((await b.get(sound)).body, /EXT-X-GAP/);
  await until('so it is in the master playlist', async () =>
    (await b.get(MASTER)).body.includes('RESOLUTION=1280x720'),
  );
});

test('a player that was kicked stays out when another node goes on with the stream', async (t) => {
  const { b, c, input, output } = await live(t);
  const [url = ''] = await b.children(`${MASTER}?session=somebody`);
  t.is((await c.get(url)).statusCode, 200);
  output.sessions.get('somebody')?.kick();
  await until('it is refused', async () => (await c.get(url)).statusCode === 401);
  input.close('the connection was lost');
  const next = await publishAgain(c);
  feeder(next.output)(3.1);
  t.is((await c.get(url)).statusCode, 401);
  t.is((await c.get(`${MASTER}?session=somebody`)).statusCode, 401);
});

test('players are not counted while there is no publisher', async (t) => {
  const { a, b, input } = await live(t);
  const [early = ''] = await b.children();
  input.close('the connection was lost');
  const [late = ''] = await a.children();
  for (const node of [a, b]) for (const url of [early, late]) t.is((await node.get(url)).statusCode, 200);
  for (const node of [a, b]) t.is(node.registry.counters.publishers.llhls, 0);
  const { output } = await publishAgain(a);
  feeder(output)(3.1);
  await untilKnown(b, a);
  for (const url of [early, late]) t.is((await b.get(url)).statusCode, 200);
  for (const node of [a, b]) await until(`${node.id} counts one`, () => node.sessions().length === 1);
});

test('a stream that no node continues in half a minute is gone', async (t) => {
  const { a, b, input } = await live(t);
  const [url = ''] = await b.children();
  t.is((await b.get(url)).statusCode, 200);
  input.close('the connection was lost');
  t.is((await b.get(url)).statusCode, 200);
  for (const node of [a, b]) await until('it is gone', async () => (await node.get(url)).statusCode === 404, 60_000);
  t.is((await b.get(MASTER)).statusCode, 404);
});

test('OriginMode: names that caches know mean the same as before, also on another node', async (t) => {
  const { b, c, input } = await live(t, { llhls: { originMode: true } });
  const [, url = ''] = await b.children();
  const before = (await b.get(url)).body;
  input.close('the connection was lost');
  const { output } = await publishAgain(c);
  feeder(output)(3.1);
  await untilKnown(b, c);
  const after = (await c.get(url)).body;
  // initializations are named by what is in them
  const names = (text: string) => uris(text, /((?:part|seg)_[^"\n]+)/g);
  t.deepEqual(
    names(before).filter((name) => names(after).includes(name)),
    [],
  );
});

test('OriginMode: a stream that begins anew uses no name of media again that a cache may keep', async (t) => {
  const origin = { originMode: true };
  const { a, input } = await live(t, { llhls: origin, hls: { segmentDuration: 2, segmentCount: 6, ...origin } });
  const listed = async (): Promise<string[]> => {
    const lists = [...(await a.children()), ...(await a.children('/app/stream/ts:playlist.m3u8'))];
    const texts = await Promise.all(lists.map(async (url) => (await a.get(url)).body));
    return texts.flatMap((text) => uris(text, /((?:part|init|seg)_[^"\n]+)/g));
  };
  const before = await listed();
  for (const kind of [/^init_/, /^part_/, /^seg_.*_llhls/, /^seg_.*_hls/])
    t.true(
      before.some((name) => kind.test(name)),
      `${kind}`,
    );
  input.end('it is over');
  // the media came at once
  await delay(6000);
  const { output } = await publishAgain(a, [videoTrack({ config: AVC_HIGH }), audioTrack()]);
  feeder(output)(5.2);
  const after = await listed();
  const again = new Set(after.filter((name) => before.includes(name)));
  t.deepEqual(
    [...again].map((name) => name.replace(/_\d.*/, '')),
    ['init'],
    'of the audio, which is set up as before',
  );
});
