import { Redis } from 'ioredis';
import test from 'ava';
import { Hosts, type Host } from '../support/network/hosts.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { until } from '../support/time/until.ts';

const IDS = ['a', 'b', 'c'];
const STREAMS = '/v1/vhosts/default/apps/app/streams';
/** Packets after which a stream plays. */
const PLAYS = 25;

(Hosts.possible ? test : test.skip)(
  'a host that dies without a word: what it pulled plays elsewhere, and its publishers are admitted there',
  async (t) => {
    t.timeout(300_000);
    const hosts = Hosts.open(t, IDS.length);
    const redis = await usedRedis(t, { address: hosts.here.address });
    const origin = await Origin.on(t, hosts.here, 'src');
    const nodes = await Promise.all(IDS.map((id, at) => startNode(t, redis, id, { ovt: true, host: hosts.all[at] })));
    for (const node of nodes) await untilStates(node, Object.fromEntries(IDS.map((id) => [id, 'ready'])));
    const urls = [origin.url('src')];
    const properties = { relay: true, persistent: true };
    await nodes[0]?.api(STREAMS, 'POST', { name: 'copy', urls, properties });
    const store = new Redis(redis.url);
    t.teardown(() => store.disconnect());
    const puller = async (): Promise<number> => {
      const claim = (await store.hget('{kiln:kiln}:claims', 'stream/default/app/copy')) ?? '';
      return IDS.indexOf(claim.split(' ')[2] ?? '');
    };
    await until('a node pulls', async () => (await puller()) >= 0);
    const at = await puller();
    const [dead, other] = [nodes[at] as Kiln, nodes[(at + 1) % IDS.length] as Kiln];
    const viewer = await OvtViewer.play(t, other.ovtUrl('copy'));
    const before = await PictureClient.publish(dead, 'pushed');
    await other.liveStream('pushed');
    await until('it plays', () => viewer.arrivals.length >= PLAYS);

    const moment = performance.now();
    hosts.cut(hosts.all[at] as Host);
    const after = await until('the publisher is admitted', () =>
      PictureClient.publish(other, 'pushed').catch(() => undefined),
    );
    const admitted = performance.now() - moment;
    await until('another node pulls', async () => ![at, -1].includes(await puller()));
    const known = performance.now();
    await until('it plays again', () => viewer.since(known) >= PLAYS);
    t.log(`publisher after ${Math.round(admitted)} ms, viewer without media ${Math.round(viewer.gapSince(moment))} ms`);
    t.false(viewer.ended);
    t.false(after.ended);
    before.close();
    after.close();
    dead.signal('SIGKILL');
  },
);
