import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { until } from '../support/time/until.ts';

const APP = { name: 'app', type: 'live', providers: { rtmp: {} } };
const vhost = (name: string) => ({ name, host: { names: [`${name}.example.com`] }, applications: [APP] });
const PROFILE = {
  name: 'p',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'v', bypass: true }] },
};

const status = async (node: Kiln, path: string, method?: string, body?: unknown): Promise<number> =>
  (await node.api(path, method, body)).status;
const vhosts = async (node: Kiln): Promise<readonly string[]> => (await node.api<string[]>('/v1/vhosts')).body.response;
const isStale = async (node: Kiln): Promise<boolean> =>
  (await node.api('/v1/vhosts')).headers.get('x-kiln-stale') === 'true';

async function readiness(node: Kiln): Promise<{ readonly status: number; readonly degraded: boolean }> {
  const answer = await fetch(`http://127.0.0.1:${node.ports.api}/readyz`);
  return { status: answer.status, degraded: ((await answer.json()) as { degraded?: string }).degraded !== undefined };
}

const shared = sharedNodes(['a', 'b', 'c']);

test.serial(
  'a resource that any node created, changed or deleted is found so by the next call on any other',
  async (t) => {
    const nodes = shared();
    const before = await vhosts(nodes[0]);
    for (let round = 0; round < 6; round++) {
      const [first, second, third] = [0, 1, 2].map((at) => nodes[(round + at) % 3]) as [Kiln, Kiln, Kiln];
      const name = `made${round}`;
      const app = `/v1/vhosts/${name}/apps/app`;
      t.is(await status(first, '/v1/vhosts', 'POST', [vhost(name)]), 200);
      t.deepEqual(await Promise.all(nodes.map((node) => status(node, app))), [200, 200, 200]);
      t.is(await status(second, app, 'PATCH', { publishers: { llhls: { segmentCount: 7 } } }), 200);
      const changed = await third.api<{ publishers: { llhls: { segmentCount: number } } }>(app);
      t.is(changed.body.response.publishers.llhls.segmentCount, 7);
      t.is(await status(third, `${app}/outputProfiles`, 'POST', [PROFILE]), 200);
      t.is(await status(first, `${app}/outputProfiles/p`), 200);
      t.is(await status(second, app, 'DELETE'), 200);
      t.deepEqual(await Promise.all(nodes.map((node) => status(node, app))), [404, 404, 404]);
      t.is(await status(third, `/v1/vhosts/${name}/apps`, 'POST', [{ name: 'other', type: 'live' }]), 200);
      t.is(await status(first, `/v1/vhosts/${name}`, 'DELETE'), 200);
      t.deepEqual(await Promise.all(nodes.map(vhosts)), [before, before, before]);
    }
  },
);

long('a change of an application on one node restarts it on the others, too', async (t) => {
  const redis = await usedRedis(t);
  const own = { hostName: 'default.example.com' };
  const [a, b] = await Promise.all([startNode(t, redis, 'a', own), startNode(t, redis, 'b', own)]);
  t.is(await status(a, '/v1/vhosts', 'POST', [vhost('made')]), 200);
  t.is(await status(b, '/v1/vhosts/made/apps/app'), 200);
  const publish = (): Promise<PictureClient> => PictureClient.publish(b, 'live', 'app', 'made.example.com');
  const first = await publish();
  for (const node of [a, b]) {
    const unchanged = { providers: { rtmp: { maxConnection: 0 } } };
    t.is(await status(node, '/v1/vhosts/made/apps/app', 'PATCH', unchanged), 200);
    t.is(await status(node, '/v1/vhosts/made/apps/app', 'PATCH', { type: 'vod' }), 400);
  }
  t.is(await status(b, '/v1/vhosts/made/apps/app/streams/live'), 200);
  t.false(first.ended, 'a change of nothing, or one that is refused, disconnects nobody');
  t.is(await status(a, '/v1/vhosts/made/apps/app', 'PATCH', { publishers: { llhls: {} } }), 200);
  await first.client.ended();
  const ends = (): number =>
    b.log.split('\n').filter((line) => /"event":"stream\.ended".*the application was changed/.test(line)).length;
  await until('its log says why', () => ends() > 0);
  t.is(ends(), 1, 'once');
  const second = await publish();
  t.is(await status(a, '/v1/vhosts/made', 'DELETE'), 200);
  await second.client.ended();
  await until('its log tells why', () => b.log.includes('the virtual host was deleted'));
  await t.throwsAsync(publish());
});

test.serial('of creates of one name at once on several nodes exactly one succeeds', async (t) => {
  const nodes = shared();
  const expected = [200, 409, 409, 409, 409, 409];
  const race = async (path: string, body: unknown): Promise<number[]> =>
    (await Promise.all(Array.from({ length: 6 }, (_, i) => status(nodes[i % 3] as Kiln, path, 'POST', body)))).sort();
  for (let round = 0; round < 5; round++) {
    const name = `race${round}`;
    t.deepEqual(await race('/v1/vhosts', [vhost(name)]), expected);
    t.deepEqual(await race(`/v1/vhosts/${name}/apps`, [{ name: 'other', type: 'live' }]), expected);
    t.deepEqual(await race(`/v1/vhosts/${name}/apps/app/outputProfiles`, [PROFILE]), expected);
  }
});

test.serial('changes of one application at once on several nodes are all made', async (t) => {
  const nodes = shared();
  t.is(await status(nodes[0], '/v1/vhosts', 'POST', [vhost('made')]), 200);
  const profiles = '/v1/vhosts/made/apps/app/outputProfiles';
  const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
  const statuses = names.map((name, i) => status(nodes[i % 3] as Kiln, profiles, 'POST', [{ ...PROFILE, name }]));
  t.deepEqual(
    await Promise.all(statuses),
    names.map(() => 200),
  );
  for (const node of nodes) {
    const listed = (await node.api<string[]>(profiles)).body.response;
    t.deepEqual([...listed].sort(), ['default', ...names].sort());
  }
});

long('a node that was killed catches up when it starts again', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b')]);
  for (const name of ['kept', 'gone']) t.is(await status(a, '/v1/vhosts', 'POST', [vhost(name)]), 200);
  t.deepEqual(await vhosts(b), ['default', 'kept', 'gone']);
  b.signal('SIGKILL');
  await b.exited();
  t.is(await status(a, '/v1/vhosts/gone', 'DELETE'), 200);
  t.is(await status(a, '/v1/vhosts', 'POST', [vhost('new')]), 200);
  t.is(await status(a, '/v1/vhosts/kept/apps/app', 'DELETE'), 200);
  await b.restart();
  t.deepEqual([...(await vhosts(b))].sort(), ['default', 'kept', 'new']);
  t.is(await status(b, '/v1/vhosts/kept/apps/app'), 404);
  t.is(await status(b, '/v1/vhosts/new/apps/app'), 200);
});

test.serial(
  'without Redis nodes answer of what they have and change nothing; an emptied Redis gets it back',
  async (t) => {
    const redis = await usedRedis(t);
    const storage = await mkdtemp(join(tmpdir(), 'kiln-storage-'));
    t.teardown(() => rm(storage, { recursive: true, force: true }));
    const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b', { storage })]);
    t.is(await status(a, '/v1/vhosts', 'POST', [vhost('made')]), 200);
    t.false(await isStale(a));
    t.deepEqual(await vhosts(b), ['default', 'made']);
    // what changes often is saved once a second
    await until('its disk has it', async () =>
      (await readFile(join(storage, 'config.json'), 'utf8').catch(() => '')).includes('made'),
    );
    await redis.kill();
    for (const node of [a, b]) {
      await until('it knows that Redis is away', () => isStale(node));
      t.deepEqual(await vhosts(node), ['default', 'made']);
      t.is(await status(node, '/v1/vhosts/made/apps', 'POST', [{ name: 'other', type: 'live' }]), 503);
      t.is(await status(node, '/v1/vhosts/made', 'DELETE'), 503);
      await until('its health says so', async () => (await readiness(node)).degraded);
      t.is((await readiness(node)).status, 200);
    }
    // one that starts without Redis has what it had
    await b.restart();
    t.deepEqual(await vhosts(b), ['default', 'made']);
    await redis.run();
    for (const node of [a, b]) {
      await until('it knows that Redis is back', async () => !(await isStale(node)));
      t.deepEqual(await vhosts(node), ['default', 'made']);
      await until('its health says so', async () => !(await readiness(node)).degraded);
      t.is((await readiness(node)).status, 200);
    }
    t.is(await status(b, '/v1/vhosts/made/apps', 'POST', [{ name: 'other', type: 'live' }]), 200);
    t.is(await status(a, '/v1/vhosts/made/apps/other'), 200);
    const later = await startNode(t, redis, 'c');
    await until('a node that comes later has it', async () => (await vhosts(later)).includes('made'));
    t.is(await status(later, '/v1/vhosts/made/apps/other'), 200);
  },
);
