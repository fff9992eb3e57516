import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { keyOfId, openKeyServer, send } from '../support/drm/key-server.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { loopedScene } from '../support/media/looped-scene.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const scene = await loopedScene();

async function startNodes(t: ExecutionContext, drm: string): Promise<[Kiln, Kiln]> {
  const redis = await usedRedis(t);
  const llhls = `<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>60</SegmentCount>
    <DRM><Enable>true</Enable>${drm}</DRM>`;
  return (await Promise.all(['a', 'b'].map((id) => startNode(t, redis, id, { llhls })))) as [Kiln, Kiln];
}

async function publish(t: ExecutionContext, node: Kiln, name: string): Promise<void> {
  const publisher = await until('the publisher is accepted', () =>
    MediaPublisher.start(node.ports.rtmp, name, [scene]).catch(() => undefined),
  );
  t.teardown(() => publisher.close());
}

/** Waits for a media playlist of a stream on a node. */
async function listOf(node: Kiln, name: string, isRight: (text: string) => boolean): Promise<string> {
  const master = node.httpUrl(`/app/${name}/llhls.m3u8`);
  return await until(`${name} plays`, async () => {
    const answer = await fetch(master).catch(() => undefined);
    const [list] = urisOf((await answer?.text()) ?? '', master).filter((uri) => uri.includes('/chunklist_'));
    const found = list === undefined ? undefined : await fetch(list).catch(() => undefined);
    const text = (await found?.text()) ?? '';
    return isRight(text) && text;
  });
}

/** URLs of the keys of a playlist, in order: of `skd`, without the scheme. */
const keysIn = (list: string): string[] =>
  [...list.matchAll(/^#EXT-X-KEY:.*URI="skd:..([^"]+)"/gm)].map(([, key = '']) => key);
/** Whether a playlist goes on with media of a new owner, whose list may begin with gaps that name its key. */
const hasMoved = (list: string): boolean => /#EXT-X-DISCONTINUITY\n[^]*\nseg_/.test(list);
/** Keys in force after the take-over, in order. */
function keysAfter(list: string): string[] {
  const at = list.lastIndexOf('#EXT-X-DISCONTINUITY\n');
  return [...keysIn(list.slice(0, at)).slice(-1), ...keysIn(list.slice(at))];
}

test('the owner of a stream is killed after a rotation: the next one goes on with the key of the file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const elements = (digit: string): string =>
    `<KeyId>${digit.repeat(32)}</KeyId><Key>${digit.repeat(32)}</Key><Iv>${'7'.repeat(32)}</Iv><FairPlayKeyUrl>skd://${digit}</FairPlayKeyUrl>`;
  const entry = `<CencProtectScheme>cbcs</CencProtectScheme>${elements('a')}<NextKey>${elements('b')}</NextKey><NextKey>${elements('c')}</NextKey>`;
  await writeFile(join(folder, 'drm.xml'), `<DRMInfo><DRM>${entry}</DRM></DRMInfo>`);
  const [a, b] = await startNodes(t, `<InfoFile>${folder}/drm.xml</InfoFile>`);
  await publish(t, a, 'film');
  await listOf(b, 'film', (text) => keysIn(text).join() === 'a');
  t.is((await b.api('/v1/vhosts/default/apps/app/streams/film:rotateKey', 'POST', {})).status, 200);
  await listOf(b, 'film', (text) => keysIn(text).join() === 'a,b');
  a.signal('SIGKILL');
  await publish(t, b, 'film');
  const list = await listOf(b, 'film', hasMoved);
  t.is(keysAfter(list).at(-1), 'b', list);
});

test('the owner of a stream is killed while keys of a key server rotate: the next one asks for the same key', async (t) => {
  const server = await openKeyServer(t);
  const [a, b] = await startNodes(
    t,
    `<KeyRotationPeriod>3</KeyRotationPeriod><KeyServer><Url>${server.url}</Url><Systems>FairPlay</Systems>
    <CertificateFingerprint>${server.fingerprint}</CertificateFingerprint></KeyServer>`,
  );
  await publish(t, a, 'film');
  const periods = (): ReadonlyMap<string, number> =>
    new Map(server.questions.map(({ kid, index }) => [kid, Number(index)]));
  const before = keysIn(await listOf(b, 'film', (text) => keysIn(text).length > 2)).map(
    (kid) => periods().get(kid) ?? -1,
  );
  t.deepEqual(
    before,
    before.map((_, index) => (before[0] ?? 0) + index),
    'one period after the other',
  );
  const asked = server.questions.length;
  a.signal('SIGKILL');
  await publish(t, b, 'film');
  const list = await listOf(b, 'film', hasMoved);
  const next = periods().get(keysAfter(list).at(-1) ?? '') ?? -1;
  const known = new Set(server.questions.slice(0, asked).map(({ kid }) => kid));
  t.true(
    server.questions.slice(asked).some(({ kid }) => known.has(kid)),
    'the new owner asks for a key that the last one had',
  );
  t.true(next >= (before.at(-1) ?? 0), `period ${next} after ${before.join()}`);
  for (const node of [a, b])
    for (const { kid } of server.questions)
      for (const form of ['hex', 'base64'] as const) t.false(node.log.includes(keyOfId(kid).toString(form)));
});

test('a stream is not published by a new owner in clear while the key server is down, ClearLead or not', async (t) => {
  const server = await openKeyServer(t);
  const [a, b] = await startNodes(
    t,
    `<KeyServer><Url>${server.url}</Url><Systems>FairPlay</Systems><ClearLead>true</ClearLead>
    <CertificateFingerprint>${server.fingerprint}</CertificateFingerprint></KeyServer>`,
  );
  await publish(t, a, 'film');
  const [kid] = keysIn(await listOf(b, 'film', (text) => keysIn(text).length > 0 && text.includes('\nseg_')));
  server.answer((response) => send(response, '', 503));
  a.signal('SIGKILL');
  await publish(t, b, 'film');
  await until('it waits for the key', () =>
    b.log.includes('the stream is not published yet: its key server gave no key'),
  );
  t.false(b.log.includes('the stream is published in clear'));
  server.recover();
  t.is(keysAfter(await listOf(b, 'film', hasMoved)).at(-1), kid);
});
