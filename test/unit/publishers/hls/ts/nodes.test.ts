import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { KilnError } from '../../../../../src/errors.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { analyse } from '../../../../support/mpegts/ts-analyser.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/ts:playlist.m3u8';
const TRACKS = [videoTrack(), audioTrack()];

/** A stream of node `a` that `b` and `c` know of, and a function that brings it on to a media time. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) =>
    openLlhlsNode(t, nodes, id, { ...setup, hls: { segmentDuration: 2, segmentCount: 4, ...setup.hls } });
  const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')]);
  const { input, output } = await a.goLive(TRACKS);
  for (const node of [b, c]) await untilKnown(node, a);
  return { a, b, c, input, output, advance: feeder(output) };
}

/** A publisher tries until the name is free. */
function publishAgain(node: LlhlsNode) {
  return until('the name is free', () =>
    node.goLive(TRACKS).catch((error: unknown) => {
      if (error instanceof KilnError && error.code === 'streamExists') return undefined;
      throw error;
    }),
  );
}

const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const numbers = (text: string) =>
  (HLS.parse(text) as HLS.types.MediaPlaylist).segments.map(({ mediaSequenceNumber }) => mediaSequenceNumber);

/** A media playlist as it is from some node, once it has a number. */
function untilSegment(node: LlhlsNode, url: string, msn: number): Promise<string> {
  return until(`segment ${msn}`, async () => {
    const { statusCode, body } = await node.get(url);
    return statusCode === 200 && numbers(body).includes(msn) && body;
  });
}

test('every file of a stream is the same on every node, and fetched once', async (t) => {
  const { a, b, c, advance } = await live(t, {
    hls: { cacheControl: { segmentMaxAge: 9 }, crossDomains: { url: ['*'] } },
  });
  t.is((await b.get(MASTER)).statusCode, 201);
  advance(10.2);
  const [url = ''] = await c.children(MASTER);
  const same = async (path: string, headers: Record<string, string> = {}) => {
    const [own, ...others] = await Promise.all(
      [a, b, c].map((node) => node.get(path, { origin: 'http://somewhere', ...headers })),
    );
    for (const other of others) {
      t.is(other.statusCode, own?.statusCode as number, path);
      t.deepEqual(other.rawPayload, own?.rawPayload, path);
      t.deepEqual({ ...other.headers, date: '' }, { ...own?.headers, date: '' }, path);
    }
    return own as NonNullable<typeof own>;
  };
  const list = await same(url);
  t.deepEqual(numbers(list.body), [1, 2, 3, 4]);
  t.is(gunzipSync((await same(url, { 'accept-encoding': 'gzip' })).rawPayload).toString(), list.body);
  for (const name of lines(list.body)) {
    const segment = await same(sibling(url, name));
    t.is(segment.headers['content-type'], 'video/mp2t');
    t.deepEqual(analyse(segment.rawPayload).errors, []);
    await same(sibling(url, name), { range: 'bytes=188-375' });
  }
  for (const path of [
    '/app/stream/ts:other.m3u8',
    '/app/stream/seg_1_1_hls.ts',
    '/app/stream/medialist_1_hls.m3u8',
    sibling(url, 'seg_1_1_hls.ts'),
    sibling(url, 'x.ts'),
  ])
    await same(path);
  t.is(b.asked.filter((path) => path.includes('/media/seg_') && !path.includes('seg_1_1_')).length, 4);
  t.true(a.asked.every((path) => !path.startsWith('/hlsv3/') || path.startsWith('/hlsv3/visits')));
});

test('players of every node are counted where the stream is, and thrown out everywhere', async (t) => {
  const { a, b, output, advance } = await live(t);
  advance(4.2);
  const [url = ''] = await b.children(`${MASTER}?session=one`);
  const [name = ''] = lines((await b.get(url)).body);
  const { rawPayload } = await b.get(sibling(url, name));
  const session = output.sessions.get('one');
  t.is(session?.kind, 'hlsv3');
  t.is(a.application.counters.publishers.hlsv3, 1);
  t.is(b.application.counters.publishers.hlsv3, 0);
  await until('its bytes are told', () => (session?.out.totalBytes ?? 0) > rawPayload.length);
  session?.kick();
  await until('it is refused', async () => (await b.get(url)).statusCode === 401);
  t.is((await a.get(url)).statusCode, 401);
});

for (const returnsTo of ['the same', 'another'] as const) {
  test(`a publisher that returns to ${returnsTo} node goes on with the numbers behind a discontinuity`, async (t) => {
    const { a, b, c, input, advance } = await live(t);
    advance(6.5);
    const [url = ''] = await c.children(MASTER);
    const before = numbers((await c.get(url)).body);
    input.close('the connection was lost');
    const last = numbers(await untilSegment(a, url, (before.at(-1) ?? 0) + 1)).at(-1) ?? 0;
    t.is((await c.get(url)).statusCode, 200, 'players get what there is');
    const { output } = await publishAgain(returnsTo === 'another' ? b : a);
    feeder(output)(4.2);
    for (const node of [a, b, c]) {
      const body = await untilSegment(node, url, last + 1);
      const { segments } = HLS.parse(body) as HLS.types.MediaPlaylist;
      t.true(
        segments.find(({ mediaSequenceNumber }) => mediaSequenceNumber === last + 1)?.discontinuity === true ||
          /DISCONTINUITY-SEQUENCE/.test(body),
        body,
      );
      for (const { uri, mediaSequenceNumber } of segments)
        if (mediaSequenceNumber > last) t.is((await node.get(sibling(url, uri))).statusCode, 200);
    }
  });
}
