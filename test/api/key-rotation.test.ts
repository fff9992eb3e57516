import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { apiRoutes } from '../../src/api/app.ts';
import { apiOptions, caller } from '../support/api/api.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { feeder } from '../support/hls/llhls-nodes.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../support/media/packets.ts';

const id = (digit: string): string => digit.repeat(32);
const elements = (digit: string): string =>
  `<KeyId>${id(digit)}</KeyId><Key>${id('f')}</Key><Iv>${id('7')}</Iv><FairPlayKeyUrl>skd://${digit}</FairPlayKeyUrl>`;
const FILE =
  `<DRMInfo><DRM><CencProtectScheme>cbcs</CencProtectScheme>${elements('a')}` +
  `<NextKey>${elements('b')}</NextKey></DRM></DRMInfo>`;

async function published(t: ExecutionContext, file: string | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const infoFile = join(folder, 'drm.xml');
  writeFileSync(infoFile, file ?? '');
  const opened = await openLlhls(t, {
    llhls: { segmentDuration: 1, chunkDuration: 0.5, segmentCount: 20, drm: { enable: file !== undefined, infoFile } },
  });
  const tracks = [videoTrack({ id: 0, config: AVC_HIGH }), audioTrack({ id: 1 })];
  const { output } = opened.goLive(tracks);
  const own = opened.publisher.live(opened.application, 'stream');
  return { ...opened, feed: feeder(output), rotate: () => own?.stream.rotateKey() };
}

/** Keys in force, and initialization, by media sequence number. */
function keysOf(list: string): ReadonlyMap<number, string> {
  const all = new Map<number, string>();
  let [msn, key, map] = [Number(/MEDIA-SEQUENCE:(\d+)/.exec(list)?.[1]), '', ''];
  for (const line of list.split('\n')) {
    key = /^#EXT-X-KEY:.*URI="skd:..(.)"/.exec(line)?.[1] ?? key;
    map = /^#EXT-X-MAP:URI="init_\d_[a-z]+_\w{8}(\w*)_llhls/.exec(line)?.[1] ?? map;
    if (line.startsWith('seg_')) all.set(msn++, `${key} ${map}`);
  }
  return all;
}

test('a rotation: from the next segment on all tracks have another key and initialization, without a discontinuity', async (t) => {
  const { feed, rotate, get, children } = await published(t, FILE);
  feed(4.3);
  rotate();
  const lists = (await children()).filter((uri) => uri.includes('chunklist'));
  t.is(lists.length, 2);
  for (const list of lists) t.false((await get(list)).body.includes('skd://b'), 'nothing changes in a segment');
  feed(8.3);
  rotate();
  feed(12.3);
  const seen: ReadonlyMap<number, string>[] = [];
  for (const list of lists) {
    for (const form of ['', '?_HLS_legacy=YES']) {
      const { body } = await get(list + form);
      t.false(body.includes('DISCONTINUITY'), body);
      t.is(body.split('#EXT-X-KEY').length, 4);
      t.is(body.split('#EXT-X-MAP').length, 4);
      seen.push(keysOf(body));
    }
    const { body } = await get(list);
    for (const [, uri = ''] of body.matchAll(/#EXT-X-MAP:URI="([^"]+)"/g)) {
      const { rawPayload, statusCode } = await get(new URL(uri, `http://kiln${list}`).pathname);
      t.is(statusCode, 200);
      const expected = /_v1_/.test(uri) ? 'b' : 'a';
      t.true(rawPayload.includes(Buffer.from(id(expected), 'hex')), uri);
    }
    // a delta update has the keys of its segments too
    const delta = (await get(`${list}?_HLS_skip=YES`)).body;
    const [, after = ''] = delta.split('#EXT-X-SKIP');
    if (after !== '') t.true(after.indexOf('#EXT-X-KEY') < after.indexOf('#EXTINF'));
  }
  for (const one of seen) t.deepEqual(one, seen[0]);
  t.deepEqual([...new Set(seen[0]?.values())], ['a ', 'b _v1', 'a _v2']);
  const master = (await get('/app/stream/llhls.m3u8')).body;
  t.true(master.includes('#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://a"'));
  t.is(master.split('SESSION-KEY').length, 2);
});

test('a part that needs another initialization is not hinted, and one that was hinted keeps its key', async (t) => {
  const { feed, rotate, get, children } = await published(t, FILE);
  feed(3);
  const list = (await children()).find((uri) => uri.includes('chunklist_0_')) ?? '';
  const hint = async () =>
    /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_0_(\d+)_(\d+)_/.exec((await get(list)).body)?.slice(1);
  t.is((await hint())?.[1], '2');
  feed(3.99);
  t.deepEqual(await hint(), ['2', '0']);
  rotate();
  feed(5);
  t.deepEqual(await hint(), ['2', '2']);
  feed(5.99);
  t.is(await hint(), undefined);
  feed(6.5);
  t.deepEqual(await hint(), ['3', '1']);
  t.deepEqual(
    [...keysOf((await get(list)).body)],
    [
      [0, 'a '],
      [1, 'a '],
      [2, 'a '],
    ],
  );
  feed(8.1);
  t.is(keysOf((await get(list)).body).get(3), 'b _v1');
});

async function api(t: ExecutionContext, file: string | undefined) {
  const { registry, publishers, feed, get, children } = await published(t, file);
  const app = Fastify();
  await app.register(apiRoutes({ ...(await apiOptions({}, registry)), playlists: publishers }));
  t.teardown(() => app.close());
  feed(2.3);
  const call = caller(app);
  const act = async (body?: unknown, stream = 'stream') => {
    const path = `/v1/vhosts/default/apps/app/streams/${stream}:rotateKey`;
    return (await call('POST', path, {}, body === undefined ? undefined : JSON.stringify(body))).body;
  };
  const keys = async () => (await get((await children())[1] ?? '')).body.split('#EXT-X-KEY').length - 1;
  return { act, call, feed, keys };
}

const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });

test('the call rotates the key of a stream', async (t) => {
  const { act, call, feed, keys } = await api(t, FILE);
  t.is(await keys(), 1);
  t.deepEqual(await act({}), { statusCode: 200, message: 'OK' });
  feed(5.3);
  t.is(await keys(), 2);
  t.deepEqual(await act(), { statusCode: 200, message: 'OK' });
  feed(8.3);
  t.is(await keys(), 3);
  t.deepEqual(await act([]), error(400, 'Request body must be an object'));
  t.deepEqual(await act({}, 'none'), error(404, 'Could not find the stream: [default/#default#app/none]'));
  t.is((await call('GET', '/v1/vhosts/default/apps/app/streams/stream:rotateKey')).status, 405);
});

test('the call fails without DRM, and without another key', async (t) => {
  const clear = await api(t, undefined);
  t.deepEqual(await clear.act({}), error(404, 'The stream has no DRM: [default/app/stream]'));
  const single = await api(t, FILE.replace(/<NextKey>.*<\/NextKey>/, ''));
  t.deepEqual(await single.act({}), error(409, 'The key was not rotated: its entry of the DRM file has no other key'));
  single.feed(5.3);
  t.is(await single.keys(), 1);
});
