import { MemoryCluster } from '../support/memory-cluster/cluster.ts';
import { contract } from './suite.ts';

contract('memory', async (t, count) => {
  const cluster = MemoryCluster.create(t, 1);
  return await Promise.all(Array.from({ length: count }, (_, n) => cluster.open(`node ${n}`)));
});
