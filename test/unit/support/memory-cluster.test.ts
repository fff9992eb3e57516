import test, { type ExecutionContext } from 'ava';
import { LostError, OutcomeUnknownError, UnavailableError, UnreachableError, type Claim, type Lease } from '#cluster';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const STOP = { silence: 'stop' } as const;
const CONTINUE = { silence: 'continue' } as const;
const REQUEST = { method: 'GET', path: '/', headers: {}, body: Buffer.alloc(0) };
const ANSWER = { status: 200, headers: {}, body: Buffer.from('here') };

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

async function three(t: ExecutionContext, seed: number) {
  virtualTime(t);
  const cluster = MemoryCluster.create(t, seed);
  const [a, b, c] = [await cluster.open('a'), await cluster.open('b'), await cluster.open('c')];
  await until('they know each other', () => [a, b, c].every((node) => node.nodes().length === 3));
  return { cluster, a, b, c };
}

test.serial(
  'a node that is cut off from the store alone loses what may run once only, before another gets it',
  async (t) => {
    const { cluster, a, b } = await three(t, 1);
    const lease = leaseOf(await a.claim('once', null, STOP));
    cluster.cutStore(['a']);
    const next = await until('another has it', async () => {
      const claim = await b.claim('once', null, STOP);
      t.false('lease' in claim && lease.valid, 'never two');
      return 'lease' in claim && claim.lease;
    });
    t.true(next.fence > lease.fence);
    await until('it is told', () => lease.signal.aborted);
    t.true(lease.signal.reason instanceof LostError);
    await t.throwsAsync(a.claim('other', null, STOP), { instanceOf: UnavailableError });
    t.is(a.state, 'degraded');
    cluster.heal();
    await until('it is back', () => a.state === 'connected');
    t.like(await a.ownerOf('once'), { id: 'b' });
  },
);

test.serial('held claims stay while the store is away for all, and those that continue can be claimed', async (t) => {
  const { cluster, a, b, c } = await three(t, 2);
  const once = leaseOf(await a.claim('once', null, STOP));
  cluster.cutStore();
  await until('all know it', () => [a, b, c].every(({ state }) => state === 'degraded'));
  const published = leaseOf(await b.claim('stream', 'live', CONTINUE));
  t.true(published.valid);
  t.like(await c.claim('stream', null, CONTINUE), { owner: { id: 'b', meta: 'live' } });
  const long = performance.now() + 10_000;
  await until('some times to live have passed', () => performance.now() > long);
  t.true(once.valid);
  cluster.heal();
  await until('the store knows', async () => (await c.ownerOf('stream'))?.id === 'b');
  t.true(once.valid);
  t.true(published.fence > 0);
});

test.serial('a node that took all others for lost hears, when it is cut off itself, that they are back', async (t) => {
  const { cluster, a, b } = await three(t, 6);
  const lease = leaseOf(await a.claim('once', null, STOP));
  cluster.cutStore(['b', 'c']);
  await until('the others are lost', () => a.nodes().filter(({ state }) => state === 'lost').length === 2);
  cluster.heal();
  cluster.cutStore(['a']);
  await until('another has it', async () => {
    const claim = await b.claim('once', null, STOP).catch(() => undefined);
    const isHad = claim !== undefined && 'lease' in claim;
    t.false(isHad && lease.valid, 'never two');
    return isHad;
  });
});

test.serial('a node that stood still finds its leases gone when it goes on, and none is valid meanwhile', async (t) => {
  const { cluster, a, b } = await three(t, 3);
  const lease = leaseOf(await a.claim('once', null, STOP));
  cluster.pause('a');
  await until('another has it', async () => {
    const claim = await b.claim('once', null, STOP);
    t.false('lease' in claim && lease.valid, 'never two');
    return 'lease' in claim;
  });
  t.false(lease.signal.aborted, 'it has not heard yet');
  cluster.resume('a');
  await until('it hears', () => lease.signal.aborted);
});

test.serial('a store that was emptied gets back claims and entries, before other nodes may claim', async (t) => {
  const { cluster, a, b, c } = await three(t, 4);
  const lease = leaseOf(await a.claim('once', 'meta', STOP));
  await b.config.write([{ key: 'vhost', value: 1, seen: 0 }]);
  await a.config.sync();
  const { fence } = lease;
  cluster.emptyStore();
  t.like(await c.claim('once', null, STOP), { owner: { id: 'a', meta: 'meta' } });
  t.true(lease.valid);
  t.true(lease.fence > fence);
  await c.config.write([{ key: 'other', value: 2, seen: 0 }]);
  t.is(c.config.entries().get('vhost')?.value, 1);
});

test.serial('calls and streams between nodes end where these do not reach each other', async (t) => {
  const { cluster, a, b } = await three(t, 5);
  b.serve(
    () => Promise.resolve(ANSWER),
    (stream) => void stream.pipe(stream),
  );
  t.is(String((await a.forward(b.self, REQUEST, 1000)).body), 'here');
  const stream = await a.connect(b.self, '/media', 1000);
  const gone = new Promise((resolve) => void stream.on('close', resolve));
  stream.write('and back');
  t.is(String(await new Promise((resolve) => void stream.once('data', resolve))), 'and back');
  cluster.split(['a'], ['b']);
  await gone;
  await t.throwsAsync(a.forward(b.self, REQUEST, 1000), { instanceOf: UnreachableError });
  cluster.heal();
  cluster.pause('b');
  await t.throwsAsync(a.forward(b.self, REQUEST, 1000), { instanceOf: OutcomeUnknownError });
  cluster.resume('b');
  await t.throwsAsync(a.forward({ ...b.self, incarnation: 'before' }, REQUEST, 1000), { instanceOf: UnreachableError });
});

test.serial('the same seed gives the same run', async (t) => {
  const run = async (seed: number): Promise<string> => {
    const cluster = MemoryCluster.create(t, seed);
    const nodes = [await cluster.open('a'), await cluster.open('b'), await cluster.open('c')];
    const begun = performance.now();
    cluster.network.loss = 0.2;
    const story: string[] = [];
    for (let n = 0; n < 20; n++) {
      await Promise.all(
        nodes.map(async (node) => {
          const claim = await node.claim(`${n}`, null, STOP).catch(() => undefined);
          story.push(`${Math.round(performance.now() - begun)} ${node.self.id} ${claim && Object.keys(claim)[0]}`);
        }),
      );
    }
    return story.join('\n');
  };
  virtualTime(t);
  const first = await run(7);
  t.is(await run(7), first);
  t.not(await run(8), first);
});
