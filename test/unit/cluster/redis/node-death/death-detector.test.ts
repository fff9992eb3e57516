import { PassThrough, type Duplex } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { UnreachableError } from '../../../../../cluster/errors.ts';
import { DeathDetector, watchedBy } from '../../../../../cluster/redis/node-death/death-detector.ts';
import type { NodeIdentity, NodeRow } from '../../../../../cluster/types.ts';
import { until } from '../../../../support/time/until.ts';

const row = (id: string, state: NodeRow['state'] = 'ready'): NodeRow => ({
  id,
  incarnation: `of ${id}`,
  address: `http://${id}`,
  state,
  load: 0,
  full: false,
  info: {},
  uptimeMs: 0,
  silentMs: 0,
});
const self: NodeIdentity = row('b');
const refusal = new UnreachableError('refused', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) });
const silence = new UnreachableError('no answer in time');

/** A death detector in a cluster of `a`, `b` (this node) and `c`, whose connections to `c` do what the test says. */
function open(t: ExecutionContext, verdict: boolean) {
  const c = { connect: (): Duplex | Error => new PassThrough(), visits: 0 };
  const asked: string[] = [];
  let rows: readonly NodeRow[] = [row('a'), row('b'), row('c')];
  const deathDetector: DeathDetector = new DeathDetector({
    self,
    nodes: () => rows,
    timeoutMs: 1000,
    port: {
      hold: async (to) => {
        if (to.id === 'a') return new PassThrough();
        c.visits += 1;
        const outcome = c.connect();
        if (outcome instanceof Error) throw outcome;
        deathDetector.reached(to);
        return outcome;
      },
    },
    markDead: async ({ id }) => {
      asked.push(id);
      return verdict;
    },
    onFault: (error) => t.fail(error.message),
  });
  t.teardown(() => deathDetector.close());
  return { deathDetector, c, asked, setRows: (next: readonly NodeRow[]) => (rows = next) };
}

test('each node watches the next ones in the order of their ids, all round', (t) => {
  const ids = (id: string, rows: readonly NodeRow[]) => watchedBy({ id }, rows).map((node) => node.id);
  const rows = ['d', 'a', 'c', 'b'].map((id) => row(id));
  t.deepEqual(ids('a', rows), ['b', 'c']);
  t.deepEqual(ids('c', rows), ['d', 'a']);
  t.deepEqual(ids('a', [row('a'), row('b', 'lost'), row('c', 'draining'), row('d')]), ['c', 'd']);
  t.deepEqual(ids('a', [row('a'), { ...row('b'), address: undefined }]), []);
});

test('a connection that ends and is refused from then on has Redis asked, until it knows', async (t) => {
  const { deathDetector, c, asked } = open(t, false);
  const stream = new PassThrough();
  c.connect = () => stream;
  deathDetector.follow();
  await until('held', () => c.visits === 1);
  c.connect = () => refusal;
  t.deepEqual(asked, []);
  stream.destroy();
  await until('asked again and again', () => asked.length > 3);
  t.deepEqual([...new Set(asked)], ['c']);
});

test('a connection that ends and is made again, or not answered, says nothing', async (t) => {
  const { deathDetector, c, asked } = open(t, true);
  c.connect = () => {
    const stream = new PassThrough();
    setImmediate(() => stream.destroy());
    return stream;
  };
  deathDetector.follow();
  await until('made again', () => c.visits > 3);
  const { visits } = c;
  c.connect = () => silence;
  await until('tried again', () => c.visits > visits + 3);
  t.deepEqual(asked, []);
});

test('a refusal says nothing of a node that was never reached from here', async (t) => {
  const { deathDetector, c, asked } = open(t, true);
  c.connect = () => refusal;
  deathDetector.follow();
  await until('tried again', () => c.visits > 3);
  deathDetector.refused({ id: 'd', incarnation: 'of d' });
  t.deepEqual(asked, []);
});

test('a node that is not watched is checked when a call is refused, and left alone when it answers', async (t) => {
  const { deathDetector, c, asked, setRows } = open(t, false);
  const d = row('d');
  setRows([row('b'), row('c', 'lost'), row('d', 'lost')]);
  deathDetector.follow();
  deathDetector.reached(d);
  c.connect = () => refusal;
  deathDetector.refused(d);
  deathDetector.refused(d);
  await until('asked', () => asked.length > 1);
  const stream = new PassThrough();
  c.connect = () => stream;
  await until('left', () => stream.destroyed);
  t.deepEqual([...new Set(asked)], ['d']);
});

test('nodes that are gone are not watched any more', async (t) => {
  const { deathDetector, c, setRows } = open(t, true);
  const stream = new PassThrough();
  c.connect = () => stream;
  deathDetector.follow();
  await until('held', () => c.visits === 1);
  setRows([row('a'), row('b')]);
  deathDetector.follow();
  await until('let go', () => stream.destroyed);
  t.is(c.visits, 1);
});
