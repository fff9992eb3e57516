import test, { type ExecutionContext } from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { MovingStreams } from '../../../src/directory/moving-streams.ts';
import { playRequest } from '../../support/access/access.ts';
import { addVhost, VIDEO } from '../../support/server/live.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { nodeParts } from '../../support/cluster/node-parts.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;
const OPTIONS = { replace: false, maxConnections: 0, silence: 'continue' } as const;

/** Nodes `0`, `1` and `2` of a cluster; the first has the stream `live`, which is known everywhere. */
async function open(t: ExecutionContext, seed: number) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const node = async (id: string) => {
    const registry = new Registry();
    addVhost(registry, {});
    const application = registry.vhost('default').application('app');
    const own = await cluster.open(id);
    const parts = nodeParts(own, registry);
    const access = parts.access();
    t.teardown(() => {
      access.close();
      parts.directory.close();
      registry.close('the test is over');
    });
    const goLive = async (name = 'live') => {
      const input = await parts.names.publish(application, name, SOURCE, OPTIONS);
      input.setTracks([VIDEO]);
      for (const each of [name, `${name}-other`]) {
        const output = application.addOutput(input, each);
        output.setTracks([VIDEO]);
        application.announce(output);
      }
      application.outputsMade(input);
      return input;
    };
    const watch = (stream: string) =>
      access.admitViewer(playRequest({ stream }), (_application, name) => parts.directory.known(application, name));
    const knows = (owner: string | undefined): Promise<unknown> =>
      until('it is known', () => parts.directory.known(application, 'live')?.owner.id === owner);
    return { ...parts, cluster: own, application, access, goLive, watch, knows };
  };
  const [a, b, c] = [await node('0'), await node('1'), await node('2')];
  const input = await a.goLive();
  await b.knows('0');
  return { cluster, a, b, c, input };
}

test.serial('viewers that come after the node of a stream has died are held until another has it', async (t) => {
  const { cluster, b, c } = await open(t, 1);
  cluster.kill('0');
  await b.knows(undefined);
  const held = b.watch('live');
  await until('it is held', () => b.access.held === 1);
  await t.throwsAsync(b.watch('other'), { code: 'streamNotFound' });
  await c.goLive();
  t.is((await held).found.owner.id, '2');
});

test.serial('viewers of a stream that no node continues are let go', async (t) => {
  const { cluster, b } = await open(t, 2);
  cluster.kill('0');
  await b.knows(undefined);
  const since = performance.now();
  await t.throwsAsync(b.watch('live'), { code: 'streamNotFound' });
  t.true(performance.now() - since > 3000);
  await t.throwsAsync(b.watch('live'), { code: 'streamNotFound' });
  t.is(b.access.held, 0);
});

test.serial('viewers of a stream that was handed over by a draining node are held', async (t) => {
  const { cluster, a, b, c, input } = await open(t, 3);
  t.truthy(cluster);
  await a.cluster.retire();
  await until('it is known', () => b.cluster.nodes().some(({ state }) => state === 'draining'));
  input.close('handed over');
  await b.knows(undefined);
  const held = b.watch('live');
  await until('it is held', () => b.access.held === 1);
  await c.goLive();
  t.is((await held).found.owner.id, '2');
});

test.serial('a stream that its publisher has ended does not exist any more', async (t) => {
  const { b, input } = await open(t, 4);
  input.close('the publisher left');
  await b.knows(undefined);
  await t.throwsAsync(b.watch('live'), { code: 'streamNotFound' });
  t.is(b.access.held, 0);
});

test.serial('the cost of a viewer does not grow with the streams of a node that has died', async (t) => {
  const { cluster, a, b } = await open(t, 5);
  const names = Array.from({ length: 100 }, (_, n) => `live${n}`);
  for (const name of names) await a.goLive(name);
  const isReady = (name: string): boolean => b.directory.known(b.application, name) !== undefined;
  await until('all are known', () =>
    names.every((name) => isReady(name) && !b.directory.isStarting(b.application, name)),
  );
  let [looks, comparisons] = [0, 0];
  const { directory, application } = b;
  const [known, mayPutOut] = [directory.known.bind(directory), application.mayPutOut.bind(application)];
  Object.assign(directory, { known: (...args: Parameters<typeof known>) => (looks++, known(...args)) });
  Object.assign(application, {
    mayPutOut: (...args: Parameters<typeof mayPutOut>) => (comparisons++, mayPutOut(...args)),
  });
  cluster.kill('0');
  await until('none is known', () => !names.some((name) => known(application, name) !== undefined));
  const held = names.map((name) => b.watch(name));
  await until('all are held', () => b.access.held === names.length);
  for (const waiting of held) await t.throwsAsync(waiting, { code: 'streamNotFound' });
  t.log(`${looks} looks, ${comparisons} comparisons`);
  t.true(looks < 10 * names.length, `${looks} looks`);
  t.true(comparisons < 10 * names.length, `${comparisons} comparisons`);
});

test('a stream that was being closed when its owner left it may have had other output streams', (t) => {
  const moving = new MovingStreams({ nodes: () => [] }, () => {});
  t.teardown(() => moving.close());
  const name = { vhost: 'default', app: 'app', stream: 'live' };
  const owner = { id: '0', incarnation: '1' };
  const left = (live: boolean, starting: boolean) => ({
    name,
    owner,
    meta: { live, created: 0, generation: 0, outputs: ['low'], starting },
  });
  const has = (output: string): boolean => moving.has('default', 'app', output, () => true);
  moving.add('key', left(true, false));
  t.deepEqual(['low', 'high'].map(has), [true, false]);
  moving.add('key', left(false, false));
  t.deepEqual(['low', 'high'].map(has), [true, true]);
  moving.add('key', left(true, true));
  t.deepEqual(['low', 'high'].map(has), [true, true]);
  moving.delete('key');
  t.deepEqual(['low', 'high'].map(has), [false, false]);
});
