import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { ConnectionsElsewhere } from '../../../src/stats/connections-elsewhere.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { sharedStatistics } from '../../support/cluster/shared-statistics.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

test.serial('the viewers of other nodes by kind, without those of this node', async (t) => {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = async (id: string) => {
    const cluster = await nodes.open(id);
    const registry = new Registry();
    addVhost(registry);
    const output = goLive(registry, 'app', 'stream');
    sharedStatistics(t, cluster, registry);
    const application = registry.vhost('default').application('app');
    const elsewhere = new ConnectionsElsewhere(cluster);
    const watch = (kind: 'webrtc' | 'llhls') => output.addSession({ id: `${id} ${kind}`, kind } as never);
    return { cluster, watch, count: () => elsewhere.of(application) };
  };
  const [a, b] = [await open('a'), await open('b')];
  await until('they know each other', () => a.cluster.nodes().length === 2);
  t.like(await a.count(), { webrtc: 0, llhls: 0 });
  a.watch('webrtc');
  b.watch('llhls');
  const leave = b.watch('webrtc');
  await until('it is told', async () => (await a.count())?.webrtc === 1);
  t.like(await a.count(), { webrtc: 1, llhls: 1, srt: 0 });
  await until('the other way round', async () => (await b.count())?.webrtc === 1);
  t.like(await b.count(), { webrtc: 1, llhls: 0 });
  leave();
  await until('it has left', async () => (await a.count())?.webrtc === 0);
});
