import { MemoryCluster } from '../support/memory-cluster/cluster.ts';
import { virtualTime } from '../support/time/virtual-time.ts';
import { contract } from './suite.ts';

contract('memory', async (t, count) => {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, 1);
  return await Promise.all(Array.from({ length: count }, (_, n) => cluster.open(`node ${n}`)));
});
