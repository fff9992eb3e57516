import test, { type ExecutionContext } from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { loopedScene } from '../support/media/looped-scene.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { startBalancer } from '../support/network/balancer.ts';
import { freePorts } from '../support/network/ports.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { clusterXml, nodesOf, startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const LLHLS =
  '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>' +
  '<CrossDomains><Url>*</Url></CrossDomains>';

const scene = await loopedScene();
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** Three nodes with public URLs behind a balancer, and a stream of the first one. */
async function start(t: ExecutionContext) {
  const redis = await usedRedis(t);
  const startPublic = async (id: string): Promise<Kiln> => {
    const [port] = freePorts(1) as [number];
    const node = await startNode(t, redis, id, { llhls: LLHLS, port });
    const nodeXml = `<PublicUrl>${node.httpUrl('')}</PublicUrl>`;
    await node.restart({ server: clusterXml(redis, id, port, { nodeXml }) });
    return node;
  };
  const nodes = (await Promise.all(['a', 'b', 'c'].map(startPublic))) as [Kiln, Kiln, Kiln];
  const [owner] = nodes;
  const { http } = await startBalancer(t, nodes, true);
  const publisher = await MediaPublisher.start(owner.ports.rtmp, 'live', [scene]);
  t.teardown(() => publisher.close());
  await Promise.all(nodes.map((node) => node.liveStream('live')));
  await until('each node knows the addresses of all', async () => {
    const rows = await Promise.all(nodes.map(nodesOf));
    return rows.every((known) => ['a', 'b', 'c'].every((id) => known.get(id)?.publicUrl !== undefined));
  });
  return { nodes, owner, host: `127.0.0.1:${http}` };
}

test('a player of LL-HLS goes to the node that it is steered to, and to another one when that dies', async (t) => {
  const { nodes, owner, host } = await start(t);
  const page = await browser.newPage();
  t.teardown(() => page.close());
  let from = '';
  page.on('response', (response) => {
    const { origin, pathname } = new URL(response.url());
    if (response.ok() && /\/part_.*_video_/.test(pathname)) from = origin;
  });
  const frames = (): Promise<number> =>
    page.evaluate<number>(`document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames`);
  const serving = (): Kiln | undefined => nodes.find((node) => node.httpUrl('') === from);
  const steered = await until('a node that is not the owner serves it', async () => {
    from = '';
    await page.goto(`http://${host}/app/live?mode=llhls`);
    const node = await until('a node itself serves it', serving);
    return node === owner ? undefined : node;
  });
  const before = await frames();
  await until('the picture moves', async () => (await frames()) > before + 20);
  t.is(serving(), steered, 'it stays there');
  steered.signal('SIGKILL');
  await until('another node itself serves it', () => serving() !== undefined && serving() !== steered);
  const after = await frames();
  await until('the picture moves again', async () => (await frames()) > after + 30);
});
