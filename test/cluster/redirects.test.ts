import test, { type ExecutionContext } from 'ava';
import { loopedScene } from '../support/media/looped-scene.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { clusterXml, nodesOf, startNode, usedRedis } from '../support/server/nodes.ts';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';

const MASTER = '/app/live/llhls.m3u8';
const WHEP = '/app/live?direction=whep';
const FOLLOWS = '<CrossDomains><Url>*</Url></CrossDomains>';
const LIMITS = '<Limits><Load>0</Load><Viewers>1</Viewers></Limits>';

/** Frames that each player of a page has shown. */
const FRAMES = `[...document.querySelectorAll('video')].map((video) => video.getVideoPlaybackQuality().totalVideoFrames)`;

const scene = await loopedScene();
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** A node that has the stream and is full with its first viewer, and another one with a public URL. */
async function start(t: ExecutionContext): Promise<readonly [full: Kiln, other: Kiln]> {
  const redis = await usedRedis(t);
  const llhls = `<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>${FOLLOWS}`;
  const [port] = freePorts(1) as [number];
  const [full, other] = await Promise.all([
    startNode(t, redis, 'full', { llhls, nodeXml: LIMITS }),
    startNode(t, redis, 'other', { llhls, port }),
  ]);
  const nodeXml = `<PublicUrl>${other.httpUrl('')}</PublicUrl>`;
  await other.restart({ server: clusterXml(redis, 'other', port, { nodeXml }) });
  const publisher = await MediaPublisher.start(full.ports.rtmp, 'live', [scene]);
  t.teardown(() => publisher.close());
  await full.liveStream('live');
  const first = new ViewerPeer();
  t.teardown(() => first.close());
  await first.play(full.httpUrl(WHEP));
  await until('the node is full, and the other one known', async () => {
    const rows = await nodesOf(full);
    return rows.get('full')?.full === true && rows.get('other')?.publicUrl === other.httpUrl('');
  });
  return [full, other];
}

test('viewers of a full node come to another one: players, peers, and the page of the stream', async (t) => {
  const [full, other] = await start(t);
  const answer = await fetch(full.httpUrl(`${MASTER}?a=1`), { redirect: 'manual' });
  t.is(answer.status, 307);
  t.true(answer.headers.get('location')?.startsWith(other.httpUrl(`${MASTER}?a=1&`)));

  const master = await until('the other node plays', async () => {
    const followed = await fetch(full.httpUrl(MASTER));
    return followed.status === 200 && followed;
  });
  t.true(master.url.startsWith(other.httpUrl(MASTER)));
  for (const uri of urisOf(await master.text(), master.url)) t.is((await fetch(uri)).status, 200);

  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  const played = await peer.play(full.httpUrl(WHEP));
  t.true(played.url.startsWith(other.httpUrl('/')));
  await until('media comes', () => peer.packets.video.length > 0 && peer.packets.audio.length > 0);

  const page = await browser.newPage();
  t.teardown(() => page.close());
  const media: string[] = [];
  page.on('response', (got) => {
    if (/\.m4s|direction=whep/.test(got.url()) && got.ok()) media.push(got.url());
  });
  await page.goto(full.httpUrl('/app/live?mode=both'));
  await until('both players show the picture', async () => {
    const frames = await page.evaluate<number[]>(FRAMES);
    return frames.length === 2 && frames.every((count) => count > 10);
  });
  t.deepEqual(
    media.filter((url) => !url.startsWith(other.httpUrl('/'))),
    [],
  );
  t.true(media.some((url) => url.includes('whep')) && media.some((url) => url.includes('.m4s')));
});
