import { openEmbedded, type Cluster } from '#cluster';
import { contract } from './suite.ts';

contract('embedded', async (t, count) => {
  const cluster = await openEmbedded({ id: 'one', file: undefined, onDamaged: () => {}, onFault: () => {} });
  t.teardown(() => cluster.close());
  return Array.from({ length: count }, (): Cluster => cluster);
});
