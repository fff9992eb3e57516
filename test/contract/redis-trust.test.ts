import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import type { Cluster, Rejection, Json, RedisClusterOptions } from '#cluster';
import { openNode, SECRET, TIMING } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

const key = (name: string): string => `{kiln:test}:${name}`;
const values = ({ config }: Cluster) =>
  Object.fromEntries([...config.entries()].map(([name, { value }]) => [name, value]));
const at = (...secrets: string[]) => ({ port: { host: '127.0.0.1', port: 0, secrets } });

async function change(node: Cluster, name: string, value?: Json): Promise<void> {
  await node.config.sync();
  const seen = node.config.entries().get(name)?.revision ?? 0;
  await node.config.write([{ key: name, seen, ...(value !== undefined && { value }) }]);
}

/** Its keys: the revision, the entries and their log; its arguments: key and text, in which NEXT is the next revision. */
const FORGE = `
  local revision = redis.call('INCR', KEYS[1])
  redis.call('HSET', KEYS[2], ARGV[1], (string.gsub(ARGV[2], '^NEXT', string.format('%d', revision))))
  redis.call('ZADD', KEYS[3], revision, ARGV[1])
`;

async function open(t: ExecutionContext) {
  const redis = await RedisServer.start(t);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  const node = async (id: string, options: Partial<RedisClusterOptions> = {}) => {
    const reports: Rejection[] = [];
    const cluster = await openNode(t, id, redis, { onRejection: (report) => reports.push(report), ...options });
    return { cluster, reports };
  };
  /** Puts an entry as a stranger would, so that nodes hear of it: in one step, or they might look in between. */
  const forge = async (name: string, text: string): Promise<void> => {
    const keys = ['config:revision', 'config', 'config:log'].map(key);
    await raw.eval(FORGE, keys.length, ...keys, name, text);
  };
  const stored = async (name: string): Promise<string> => (await raw.hget(key('config'), name)) ?? '';
  return { redis, raw, node, forge, stored };
}

test('an entry that no node has written is refused and reported once, and the next write of it replaces it', async (t) => {
  const { node, forge } = await open(t);
  const { cluster: a, reports } = await node('a');
  await change(a, 'known', 1);
  const heard: string[] = [];
  a.config.listen((keys) => void heard.push(...keys));
  await forge('known', 'NEXT "without a MAC"');
  await forge('new', 'NEXT AAAA "with a wrong one"');
  await a.config.sync();
  await change(a, 'other', 2);
  t.deepEqual(values(a), { known: 1, other: 2 });
  t.deepEqual(heard, ['other']);
  t.deepEqual(reports, [
    { kind: 'entries', name: 'known', reason: 'it has no valid MAC' },
    { kind: 'entries', name: 'new', reason: 'it has no valid MAC' },
  ]);
  t.like(a.rejected, { entries: 2 });
  const { cluster: b, reports: ofB } = await node('b');
  await until('b has what is valid', () => b.config.entries().has('other'));
  t.deepEqual(values(b), { other: 2 });
  t.is(ofB.length, 2);
  await change(a, 'known', 3);
  await change(a, 'new');
  for (const each of [a, b]) {
    await each.config.sync();
    t.deepEqual(values(each), { known: 3, other: 2 });
    t.like(each.rejected, { entries: 0 });
  }
});

test('a valid entry under another key, and one that was changed or removed since, are refused', async (t) => {
  const { node, forge, stored } = await open(t);
  const { cluster: a, reports } = await node('a');
  await change(a, 'changed', 'old');
  await change(a, 'removed', 'old');
  const [changed, removed] = [await stored('changed'), await stored('removed')];
  await change(a, 'changed', 'new');
  await change(a, 'removed');
  await forge('changed', changed);
  await forge('removed', removed);
  await forge('moved', changed);
  await a.config.sync();
  t.deepEqual(values(a), { changed: 'new' });
  t.deepEqual(
    reports.map(({ name, reason }) => `${name}: ${reason.replace(/\d+/, 'N')}`),
    [
      'changed: it is that of revision N, which was changed or removed since',
      'removed: it is that of revision N, which was changed or removed since',
      'moved: it has no valid MAC',
    ],
  );
});

test('a valid entry of an earlier epoch is refused, too: a loss does not make it new', async (t) => {
  const { node, raw, stored } = await open(t);
  const { cluster: a, reports } = await node('a');
  await change(a, 'changed', 'old');
  await change(a, 'removed', 'old');
  const [changed, removed] = [await stored('changed'), await stored('removed')];
  await change(a, 'changed', 'new');
  await change(a, 'removed');
  const epoch = () => a.config.position.split('.')[0];
  for (const round of [1, 2]) {
    const before = epoch();
    await raw
      .multi()
      .hset(key('config'), { changed, removed })
      .zadd(key('config:log'), 1, 'removed')
      .del(key('claims'))
      .exec();
    await until('another epoch', () => epoch() !== before);
    await change(a, 'other', round);
    t.deepEqual(values(a), { changed: 'new', other: round });
    t.deepEqual(reports.map(({ name }) => name).sort(), ['changed', 'removed']);
  }
});

test('a removed entry does not come back, not even after something else that is refused', async (t) => {
  const { node, forge, stored } = await open(t);
  const { cluster: a } = await node('a');
  await change(a, 'removed', 'old');
  const removed = await stored('removed');
  await change(a, 'removed');
  for (const text of ['NEXT "without a MAC"', removed, removed]) {
    await forge('removed', text);
    await a.config.sync();
    t.deepEqual(values(a), {}, text);
    t.like(a.rejected, { entries: 1 });
  }
});

test('an entry that is as it was again is taken, also by a node that was restarted meanwhile', async (t) => {
  const { node, stored, raw } = await open(t);
  const folder = mkdtempSync(join(tmpdir(), 'kiln-trust-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const { cluster: a } = await node('a');
  const file = join(folder, 'b.json');
  const first = (await node('b', { file })).cluster;
  await change(a, 'x', 1);
  await first.config.sync();
  await first.close();
  await change(a, 'x', 2);
  const right = await stored('x');
  await raw.hset(key('config'), 'x', `${right}"`);
  await change(a, 'y', 1);
  const second = (await node('b', { file })).cluster;
  await until('it has caught up', () => second.config.entries().has('y'));
  t.deepEqual(values(second), { x: 1, y: 1 });
  await second.close();
  await raw.hset(key('config'), 'x', right);
  const third = (await node('b', { file })).cluster;
  await until('it has what was written', () => third.config.entries().get('x')?.value === 2);
  t.like(third.rejected, { entries: 0 });
});

test('writes of two nodes at the same time are all signed for the revision that they get', async (t) => {
  const { node } = await open(t);
  const [{ cluster: a, reports }, { cluster: b }] = await Promise.all([node('a'), node('b')]);
  const names = Array.from({ length: 20 }, (_, n) => `key${n}`);
  await Promise.all(names.map((name, n) => (n % 2 ? a : b).config.write([{ key: name, value: n, seen: 0 }])));
  await Promise.all([a.config.sync(), b.config.sync()]);
  for (const each of [a, b]) t.deepEqual(Object.keys(values(each)).sort(), [...names].sort());
  t.deepEqual(reports, []);
});

test('entries that a node brings back into an emptied Redis are signed', async (t) => {
  const { node, raw, stored } = await open(t);
  const { cluster: a, reports } = await node('a');
  await change(a, 'x', 1);
  const before = await stored('x');
  await raw.flushall();
  await until('it is restored', async () => (await stored('x')) === before);
  await change(a, 'y', 2);
  const { cluster: b, reports: ofB } = await node('b');
  await until('a new node takes it', () => b.config.entries().size === 2);
  t.deepEqual([...reports, ...ofB], []);
});

test('while the secret is changed all nodes take entries and rows, and afterwards those written before', async (t) => {
  const { node, stored } = await open(t);
  const old = await node('old', at('former'));
  await change(old.cluster, 'first', 1);
  const first = await stored('first');
  const both = await node('both', at('present', 'former'));
  await until('it is signed by both', async () => (await stored('first')) !== first);
  await change(both.cluster, 'second', 2);
  await change(old.cluster, 'third', 3);
  await both.cluster.config.sync();
  const third = await stored('third');
  await until('what is written meanwhile, too', async () => (await stored('third')) !== third || /,/.test(third));
  await old.cluster.config.sync();
  t.deepEqual(values(old.cluster), { first: 1, second: 2, third: 3 });
  await until('they see each other', () => [old, both].every(({ cluster }) => cluster.nodes().length === 2));
  t.deepEqual([...old.reports, ...both.reports], []);
  await old.cluster.close();
  const after = await node('after', at('present'));
  await until('it has everything', () => after.cluster.config.entries().size === 3);
  await until('they see each other', () => [after, both].every(({ cluster }) => cluster.nodes().length === 2));
  t.deepEqual([...after.reports, ...both.reports], []);
});

test('a node with another secret is not there for the others, and its entries are not either', async (t) => {
  const { node } = await open(t);
  const [a, stranger] = [await node('a'), await node('stranger', at(`not ${SECRET}`))];
  await change(stranger.cluster, 'x', 1);
  await until('it is noticed', () => a.cluster.rejected.rows === 1 && a.cluster.rejected.entries === 1);
  t.deepEqual(
    a.cluster.nodes().map(({ id }) => id),
    ['a'],
  );
  t.deepEqual(values(a.cluster), {});
  t.deepEqual(a.reports.map(({ kind, name }) => `${kind} ${name}`).sort(), ['entries x', 'rows stranger']);
  await stranger.cluster.close();
  await until('it has left', () => a.cluster.rejected.rows === 0);
});

test('a node that cannot ask one that is silent does not judge it: its streams stay with it', async (t) => {
  const { redis, node } = await open(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await openNode(t, 'a', { url: `redis://127.0.0.1:${proxy.port}` });
  const { cluster: stranger } = await node('stranger', at(`not ${SECRET}`));
  t.true('lease' in (await a.claim('pushed', 1, { silence: 'continue' })));
  await until('it is noticed', () => stranger.rejected.rows === 1);
  proxy.cut();
  const since = performance.now();
  await until('it is not heard of for long', async () => {
    t.like(await stranger.claim('pushed', 2, { silence: 'continue' }), { owner: { id: 'a' } });
    return performance.now() - since > 1.5 * TIMING.ttl;
  });
  const { cluster: b } = await node('b');
  t.is(await b.lives(a.self), true);
  t.is(await stranger.lives(a.self), undefined);
  await until('who can ask it does', () => b.nodes().find(({ id }) => id === 'a')?.state === 'silent');
  t.like(await b.claim('pushed', 2, { silence: 'continue' }), { owner: { id: 'a' } });
});

test('the claim of a node that cannot be asked is free when the node would be forgotten', async (t) => {
  const { redis, node } = await open(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const timing = { timing: { ...TIMING, forget: 1.5 * TIMING.ttl } };
  const { cluster: a } = await node('a', timing);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const stranger = await openNode(t, 'stranger', { url }, { ...at(`not ${SECRET}`), ...timing });
  t.true('lease' in (await stranger.claim('k', 1, { silence: 'continue' })));
  proxy.cut();
  await until('it is free', async () => 'lease' in (await a.claim('k', 2, { silence: 'continue' })));
});

test('an earlier row of a node changes nothing for nodes that have seen a later one', async (t) => {
  const { node, raw, redis } = await open(t);
  const proxy = await TcpProxy.open(t, redis.port);
  const a = await node('a');
  const b = await openNode(t, 'b', { url: `redis://127.0.0.1:${proxy.port}` });
  const versionAt = ({ cluster }: typeof a) => cluster.nodes().find(({ id }) => id === 'b')?.info.version;
  const say = async (version: string): Promise<void> => {
    b.describe({ load: 0.5, full: false, info: { version } });
    await until('it is known', () => versionAt(a) === version);
  };
  await say('earlier');
  const earlier = (await raw.hget(key('nodes'), 'b')) ?? '';
  await say('later');
  const seen: unknown[] = [];
  a.cluster.events.on('nodes', () => seen.push(versionAt(a)));
  proxy.cut();
  await until('it says nothing more', () => b.state === 'degraded');
  await raw.hset(key('nodes'), 'b', earlier);
  const late = await node('late');
  await until('who knows nothing takes it', () => versionAt(late) === 'earlier');
  proxy.heal();
  await until('until the node says something', () => versionAt(late) === 'later');
  t.deepEqual([...new Set(seen)], ['later']);
  t.deepEqual([...a.reports, ...late.reports], []);
});

test('the last row that a node wrote stays when Redis has a changed one', async (t) => {
  const { node, raw } = await open(t);
  const [a, b] = [await node('a'), await node('b')];
  b.cluster.describe({ load: 0.5, full: false, info: { version: 'true' } });
  const rowOf = (id: string) => a.cluster.nodes().find((row) => row.id === id);
  await until('it is known', () => rowOf('b')?.info.version === 'true');
  const address = rowOf('b')?.address;
  const keep = setInterval(() => {
    void raw.hget(key('nodes'), 'b').then(async (text) => {
      if (text?.includes('"true"')) await raw.hset(key('nodes'), 'b', text.replaceAll('127.0.0.1', '192.0.2.1'));
    });
  }, 5);
  t.teardown(() => clearInterval(keep));
  await until('it is noticed', () => a.reports.some(({ kind, name }) => kind === 'rows' && name === 'b'));
  clearInterval(keep);
  t.is(rowOf('b')?.address, address);
});
