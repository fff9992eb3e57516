import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { loopedScene } from '../support/media/looped-scene.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const scene = await loopedScene();
const SCHEMES = ['cbcs', 'cenc'];
const SECRET = 'f1'.repeat(16);
const elements = (digit: string): string =>
  `<KeyId>${digit.repeat(32)}</KeyId><Key>${SECRET}</Key><Iv>${'7'.repeat(32)}</Iv><FairPlayKeyUrl>skd://${digit}</FairPlayKeyUrl>`;

/** Nodes with the same keys for a stream of each scheme, and a folder each for the past. */
async function startNodes(t: ExecutionContext, ...ids: readonly string[]): Promise<Kiln[]> {
  const redis = await usedRedis(t);
  return await Promise.all(
    ids.map(async (id) => {
      const folder = await mkdtemp(join(tmpdir(), 'kiln-drm-'));
      t.teardown(() => rm(folder, { recursive: true, force: true }));
      const entries = SCHEMES.map(
        (scheme) =>
          `<DRM><StreamName>${scheme}</StreamName><CencProtectScheme>${scheme}</CencProtectScheme>` +
          `<Keyformat>identity</Keyformat>${elements('a')}<NextKey>${elements('b')}</NextKey></DRM>`,
      );
      await writeFile(join(folder, 'drm.xml'), `<DRMInfo>${entries.join('')}</DRMInfo>`);
      const llhls = `<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>4</SegmentCount>
        <DVR><Enable>true</Enable><TempStoragePath>${folder}/past</TempStoragePath></DVR>
        <DRM><Enable>true</Enable><InfoFile>${folder}/drm.xml</InfoFile></DRM>`;
      return await startNode(t, redis, id, { llhls });
    }),
  );
}

/** URLs of the media playlists of a stream, as a node names them. */
async function listsOf(node: Kiln, stream: string): Promise<string[]> {
  const master = node.httpUrl(`/app/${stream}/llhls.m3u8`);
  return until(`${master} plays`, async () => {
    const answer = await fetch(master);
    const uris = urisOf(await answer.text(), master).filter((uri) => uri.includes('/chunklist_'));
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

test('encrypted bytes are the same on every node, before and after a rotation', async (t) => {
  const [a, b] = (await startNodes(t, 'a', 'b')) as [Kiln, Kiln];
  for (const scheme of SCHEMES) {
    const publisher = await MediaPublisher.start(a.ports.rtmp, scheme, [scene]);
    t.teardown(() => publisher.close());
  }
  for (const scheme of SCHEMES) {
    const [there, here] = [await listsOf(a, scheme), await listsOf(b, scheme)];
    // on the node that does not own the stream
    const path = `/v1/vhosts/default/apps/app/streams/${scheme}:rotateKey`;
    t.is((await b.api(path, 'POST', {})).status, 200);
    for (const [index, url] of here.entries()) {
      const isLong = (text: string): boolean => keysIn(text).join() === 'a,b' && text.split('#EXTINF').length > 8;
      const list = await playlist(url, isLong);
      t.regex(list, /^#EXT-X-MEDIA-SEQUENCE:0$/m);
      t.false(list.includes('#EXT-X-DISCONTINUITY\n'));
      const files = urisOf(list, url).filter((uri) => /\/(?:seg|init)_/.test(uri));
      t.true(files.length > 8);
      for (const file of files) {
        const name = file.replace(/^.*\//, '');
        const own = await bytesOf(new URL(name, there[index]).href);
        t.true(own.length > 100, name);
        t.true((await bytesOf(file)).equals(own), name);
      }
    }
  }
  for (const node of [a, b]) t.false(node.log.includes(SECRET));
});
