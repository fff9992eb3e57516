import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { loopedScene } from '../support/media/looped-scene.ts';
import { publishScene } from '../support/media/publish-scene.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const scene = await loopedScene();
const MASTER = '/app/live/llhls.m3u8';
const STREAM = '/v1/vhosts/default/apps/app/streams/live';
const SECRET = 'f1'.repeat(16);
const elements = (digit: string): string =>
  `<KeyId>${digit.repeat(32)}</KeyId><Key>${SECRET}</Key><Iv>${'7'.repeat(32)}</Iv><FairPlayKeyUrl>skd://${digit}</FairPlayKeyUrl>`;

/** Nodes with the same keys, and a folder each for those who rewind. */
async function startNodes(t: ExecutionContext, scheme: string, ...ids: readonly string[]): Promise<Kiln[]> {
  const redis = await usedRedis(t);
  return await Promise.all(
    ids.map(async (id) => {
      const folder = await mkdtemp(join(tmpdir(), 'kiln-drm-'));
      t.teardown(() => rm(folder, { recursive: true, force: true }));
      const entry = `<CencProtectScheme>${scheme}</CencProtectScheme><Keyformat>identity</Keyformat>`;
      await writeFile(
        join(folder, 'drm.xml'),
        `<DRMInfo><DRM>${entry}${elements('a')}<NextKey>${elements('b')}</NextKey></DRM></DRMInfo>`,
      );
      const llhls = `<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>4</SegmentCount>
        <DVR><Enable>true</Enable><TempStoragePath>${folder}/past</TempStoragePath></DVR>
        <DRM><Enable>true</Enable><InfoFile>${folder}/drm.xml</InfoFile></DRM>`;
      return await startNode(t, redis, id, { llhls });
    }),
  );
}

/** URLs of the media playlists, as a node names them. */
async function listsOf(node: Kiln): Promise<string[]> {
  return until(`node at ${node.ports.http} plays`, async () => {
    const answer = await fetch(node.httpUrl(MASTER));
    const uris = urisOf(await answer.text(), node.httpUrl(MASTER)).filter((uri) => uri.includes('/chunklist_'));
    return answer.status === 200 && uris.length === 2 && uris;
  });
}

async function playlist(url: string, isRight: (text: string) => boolean): Promise<string> {
  return until(url, async () => {
    const answer = await fetch(url);
    const text = await answer.text();
    return answer.status === 200 && isRight(text) && text;
  });
}

const keysIn = (list: string): string[] =>
  [...list.matchAll(/^#EXT-X-KEY:.*URI="skd:..(.)"/gm)].map(([, key = '']) => key);

async function bytesOf(url: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}

for (const scheme of ['cbcs', 'cenc']) {
  test(`encrypted bytes are the same on every node, before and after a rotation: ${scheme}`, async (t) => {
    const [a, b] = (await startNodes(t, scheme, 'a', 'b')) as [Kiln, Kiln];
    await publishScene(t, a, scene);
    const [there, here] = [await listsOf(a), await listsOf(b)];
    // on the node that does not own the stream
    t.is((await b.api(`${STREAM}:rotateKey`, 'POST', {})).status, 200);
    for (const [index, url] of here.entries()) {
      const original = there[index] ?? '';
      const isLong = (text: string): boolean => keysIn(text).join() === 'a,b' && text.split('#EXTINF').length > 8;
      const list = await playlist(url, isLong);
      t.regex(list, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
      t.false(list.includes('#EXT-X-DISCONTINUITY\n'));
      const files = urisOf(list, url).filter((uri) => /\/(?:seg|init|part)_/.test(uri));
      t.true(files.length > 10);
      for (const file of files) {
        const name = file.replace(/^.*\//, '');
        const own = await bytesOf(new URL(name, original).href);
        // a part that is hinted may not be there yet
        if (!/\/part_/.test(file)) t.true(own.length > 100, name);
        if (/\/(?:seg|init)_/.test(file)) t.true((await bytesOf(file)).equals(own), name);
      }
    }
    for (const node of [a, b]) t.false(node.log.includes(SECRET));
  });
}
