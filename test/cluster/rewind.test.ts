import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loopedScene } from '../support/media/looped-scene.ts';
import { publishScene } from '../support/media/publish-scene.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';

const scene = await loopedScene();
const MASTERS = ['/app/live/llhls.m3u8', '/app/live/ts:playlist.m3u8'];

/** Nodes with a folder each, as on machines of their own. */
async function startNodes(t: ExecutionContext, ...ids: readonly string[]): Promise<Kiln[]> {
  const redis = await usedRedis(t);
  return await Promise.all(
    ids.map(async (id) => {
      const folder = await mkdtemp(join(tmpdir(), 'kiln-rewind-'));
      t.teardown(() => rm(folder, { recursive: true, force: true }));
      const hls = `<SegmentDuration>1</SegmentDuration><SegmentCount>3</SegmentCount>
        <DVR><Enable>true</Enable><TempStoragePath>${folder}</TempStoragePath></DVR>`;
      return await startNode(t, redis, id, { llhls: `<ChunkDuration>0.5</ChunkDuration>${hls}`, hls });
    }),
  );
}

/** URLs of the media playlists of both kinds, as a node names them. */
async function listsOf(node: Kiln): Promise<string[]> {
  const lists = MASTERS.map((path) =>
    until(`${path} of ${node.ports.http}`, async () => {
      const answer = await fetch(node.httpUrl(path));
      const uris = urisOf(await answer.text(), node.httpUrl(path));
      return answer.status === 200 && uris.filter((uri) => !uri.includes('/iframes_'));
    }),
  );
  return (await Promise.all(lists)).flat();
}

const numbersIn = (list: string): number[] => [...list.matchAll(/^seg_[^_]+_(\d+)_/gm)].map(([, msn]) => Number(msn));

async function playlist(url: string, isRight: (text: string) => boolean): Promise<string> {
  return await until(url, async () => {
    const answer = await fetch(url);
    const text = await answer.text();
    return answer.status === 200 && isRight(text) && text;
  });
}

async function files(list: string, url: string): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const uri of urisOf(list, url).filter((one) => /\/(seg|init)_/.test(one))) {
    const answer = await fetch(uri);
    if (answer.status === 200)
      found.set(new URL(uri).pathname.split('/').at(-1) ?? '', Buffer.from(await answer.arrayBuffer()));
  }
  return found;
}

test('players rewind on every node, to the same bytes', async (t) => {
  const [a, b] = (await startNodes(t, 'a', 'b')) as [Kiln, Kiln];
  await publishScene(t, a, scene);
  const [there, here] = [await listsOf(a), await listsOf(b)];
  t.is(here.length, there.length);
  for (const [index, url] of here.entries()) {
    const list = await playlist(url, (text) => numbersIn(text).length >= 8);
    t.deepEqual(
      numbersIn(list),
      numbersIn(list).map((_, msn) => msn),
    );
    t.regex(list, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
    const original = there[index] ?? '';
    const own = await files(await playlist(original, (text) => numbersIn(text).length >= 8), original);
    for (const [name, bytes] of await files(list, url)) t.true(own.get(name)?.equals(bytes) ?? true, name);
    t.true(own.size >= 8);
  }
  const master = b.httpUrl(MASTERS[0] ?? '');
  const [, uri = ''] = /I-FRAME-STREAM-INF:.*URI="([^"]+)"/.exec(await (await fetch(master)).text()) ?? [];
  const pictures = await playlist(new URL(uri, master).href, (text) => text.split('BYTERANGE').length > 8);
  t.regex(pictures, /#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-I-FRAMES-ONLY\n/);
});

test('players of any node start at a time that they ask for', async (t) => {
  const [a, b] = (await startNodes(t, 'a', 'b')) as [Kiln, Kiln];
  await publishScene(t, a, scene);
  const [list = ''] = await listsOf(b);
  const text = await playlist(list, (there) => numbersIn(there).length >= 8);
  const [, first = ''] = /^#EXT-X-PROGRAM-DATE-TIME:(.*)$/m.exec(text) ?? [];
  for (const [index, path] of MASTERS.entries()) {
    for (const query of [`?start=${first}`, `?session=me${index}&start=${first}`, `?start=${first}`]) {
      const url = b.httpUrl(path + query);
      const master = await (await fetch(url)).text();
      const [, seconds] = /^#EXT-X-START:TIME-OFFSET=-([\d.]+),PRECISE=YES$/m.exec(master) ?? [];
      t.true(Number(seconds) >= 5, `${url}: ${master}`);
      t.true(urisOf(master, url).every((uri) => !uri.includes('start=')));
    }
    const live = await (await fetch(b.httpUrl(path))).text();
    t.regex(live, /EXT-X-STREAM-INF/);
    t.notRegex(live, /EXT-X-START/);
    t.is((await fetch(b.httpUrl(`${path}?start=yesterday`))).status, 400);
  }
});

test('the next owner of a stream lists what the one before has on its disk', async (t) => {
  const [a, b, c] = (await startNodes(t, 'a', 'b', 'c')) as [Kiln, Kiln, Kiln];
  const publisher = await publishScene(t, a, scene);
  const before = new Map<string, Buffer>();
  for (const url of await listsOf(a)) {
    const list = await playlist(url, (text) => numbersIn(text).length >= 6);
    for (const [name, bytes] of await files(list, url)) before.set(name, bytes);
  }
  publisher.close();
  await publishScene(t, b, scene);
  for (const node of [b, c]) {
    for (const url of await listsOf(node)) {
      const list = await playlist(url, (text) => /#EXT-X-DISCONTINUITY\n(.*\n)*.*seg_/.test(text));
      t.regex(list, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
      t.deepEqual(
        numbersIn(list),
        numbersIn(list).map((_, msn) => msn),
      );
      const found = await files(list, url);
      const names = [...found.keys()].filter((name) => before.has(name));
      t.true(names.length >= 6, `${names.length} files of the owner before`);
      for (const name of names) t.true(found.get(name)?.equals(before.get(name) as Buffer), name);
    }
  }
});

test('a publisher that comes to another node after more than half a minute continues the playlists', async (t) => {
  const [a, b] = (await startNodes(t, 'a', 'b')) as [Kiln, Kiln];
  const publisher = await publishScene(t, a, scene);
  const [list = ''] = await listsOf(a);
  await playlist(list, (text) => numbersIn(text).length >= 5);
  publisher.close();
  await until('the stream is over', async () => (await fetch(a.httpUrl(MASTERS[0] ?? ''))).status === 404);
  await publishScene(t, b, scene);
  for (const url of await listsOf(b)) {
    const text = await playlist(url, (found) => /#EXT-X-DISCONTINUITY\n(.*\n)*.*seg_/.test(found));
    t.regex(text, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
    t.true((await files(text, url)).size >= 6);
  }
});
