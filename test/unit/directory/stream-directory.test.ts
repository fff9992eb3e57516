import test, { type ExecutionContext } from 'ava';
import { readMeta } from '../../../src/directory/stream-key.ts';
import { FakeKind, openTasks } from '../../support/tasks/fake-task.ts';
import { VIDEO } from '../../support/server/live.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

async function three(t: ExecutionContext, seed: number) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const open = async (id: string) => {
    const node = openTasks(await cluster.open(id), new FakeKind());
    t.teardown(() => node.tasks.close());
    return { ...node, application: node.registry.vhost('default').application('app') };
  };
  return { cluster, a: await open('a'), b: await open('b'), c: await open('c') };
}

type Node = Awaited<ReturnType<typeof three>>['a'];

const PUSHED = { replace: false, maxConnections: 0, silence: 'continue' } as const;

async function publish({ application, names }: Node, name: string, replace = false) {
  const input = await names.publish(application, name, { type: 'Rtmp', kind: 'rtmp' }, { ...PUSHED, replace });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, `${name}-out`);
  output.setTracks([VIDEO]);
  application.announce(output);
  return input;
}

const located = ({ directory, application }: Node, output = 'one-out') => directory.locate(application, output);

test.serial('the stream of another node is found, listed and forgotten with that node', async (t) => {
  const { a, b } = await three(t, 1);
  t.is(await located(a), undefined);
  const one = await publish(b, 'one');
  await publish(b, 'two');
  await until(
    'both are told',
    async () => (await located(a)) !== undefined && (await located(a, 'two-out')) !== undefined,
  );
  t.deepEqual(a.directory.elsewhere(a.application).toSorted(), ['one', 'two']);
  t.like(await located(a), { owner: { id: 'b' }, input: 'one' });
  t.deepEqual(b.directory.elsewhere(b.application), []);
  t.is(await located(b), undefined, 'its own is not elsewhere');
  t.deepEqual([...a.directory.remoteOutputs('default')].map(({ output }) => output).toSorted(), ['one-out', 'two-out']);
  one.close('over');
  await until('its name is free', async () => (await b.cluster.ownerOf('stream/default/app/one')) === undefined);
  t.deepEqual(a.directory.elsewhere(a.application), ['two']);
  t.is(await located(a), undefined);
});

test.serial('streams of a node that is gone are forgotten, and found where they are published next', async (t) => {
  const { cluster, a, b, c } = await three(t, 2);
  await publish(b, 'one');
  await until('it is known', () => located(a));
  cluster.kill('b');
  await until('it is forgotten', async () => (await a.cluster.ownerOf('stream/default/app/one')) === undefined);
  t.is(await located(a), undefined);
  await publish(c, 'one');
  t.like(await until('it is found again', () => located(a)), { owner: { id: 'c' } });
});

test.serial('while the store is away a name is refused to two publishers, and what is known stays known', async (t) => {
  const { cluster, a, b, c } = await three(t, 3);
  await publish(b, 'one');
  await until('it is known', () => located(a));
  cluster.cutStore();
  await until('all know it', () => [a, b, c].every((node) => node.cluster.state === 'degraded'));
  t.like(await located(a), { owner: { id: 'b' } });
  await t.throwsAsync(publish(c, 'one'), { message: /already exists/ });
  await publish(c, 'two');
  await t.throwsAsync(publish(a, 'two'), { message: /already exists/ });
  cluster.heal();
  await until('it is told', () => located(a, 'two-out'));
});

test.serial('the stream that the store has stays of two with one name on both sides of a split', async (t) => {
  const { cluster, a, b } = await three(t, 4);
  cluster.cutStore(['a']);
  cluster.split(['a'], ['b', 'c']);
  await until('it is alone', () => a.cluster.state === 'degraded');
  const [mine, theirs] = [await publish(a, 'one'), await publish(b, 'one')];
  cluster.heal();
  await until('one ends', () => mine.closed);
  t.false(theirs.closed);
  const meta = readMeta((await a.cluster.ownerOf('stream/default/app/one'))?.meta);
  t.deepEqual(meta?.outputs, ['one-out']);
});
