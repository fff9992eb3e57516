import test from 'ava';
import { joinKey, UnavailableError } from '#cluster';
import { ChannelDeletions } from '../../../../src/channels/files/deletions.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';

const NOW = Date.UTC(2026, 0, 1);
const named = (id: string) => ({ kind: 'scheduled', vhost: 'default', app: 'app', id });
const rowOf = (id: string) => `${joinKey('#deleted')}/${joinKey('scheduled', 'default', 'app', id)}`;

test('deletions of many nodes at once are all kept, also when older ones make way', async (t) => {
  const cluster = MemoryCluster.create(t, 1);
  const ids = Array.from({ length: 12 }, (_, index) => `n${index}`);
  const configs = await Promise.all(ids.map(async (id) => (await cluster.open(id)).config));
  await configs[0]?.write(
    Array.from({ length: 1000 }, (_, n) => ({ key: rowOf(`old${n}`), seen: 0, value: { at: NOW - 1000 + n } })),
  );
  const nodes = configs.map((config) => new ChannelDeletions(config));
  const [first] = nodes as [ChannelDeletions];
  await Promise.all(nodes.map((node) => node.catchUp()));
  await Promise.all(nodes.map((node, index) => node.add(named(`new${index}`), NOW)));
  await first.add(named('last'), NOW);
  await first.catchUp();
  for (let index = 0; index < nodes.length; index++) t.is(first.at(named(`new${index}`)), NOW);
  for (let n = 0; n < 13; n++) t.is(first.at(named(`old${n}`)), undefined);
  t.is(first.at(named('old13')), NOW - 987);
});

test('a deletion that is written counts, though older ones could not make way', async (t) => {
  const cluster = MemoryCluster.create(t, 1);
  const { config } = await cluster.open('a');
  const old = { key: rowOf('old'), seen: 0, value: { at: NOW - 31 * 86_400_000 } };
  await config.write([old]);
  let writes = 0;
  const write = config.write.bind(config);
  config.write = async (...changes) => {
    if (++writes > 1) throw new UnavailableError('the store is gone');
    await write(...changes);
  };
  const deletions = new ChannelDeletions(config);
  await deletions.add(named('new'), NOW);
  t.is(writes, 2);
  t.is(deletions.at(named('new')), NOW);
  t.not(deletions.at(named('old')), undefined);
});
