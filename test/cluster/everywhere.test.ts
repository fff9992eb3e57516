import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { QueueEntry } from '../../src/stats/queues.ts';
import type { CodecEntry } from '../../src/transcode/codecs.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';

const VHOST = '/v1/vhosts/made';
const TEMPLATE = { name: '*', type: 'live', providers: { rtmp: {} } };
const PROFILE = {
  name: 'p',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'v', bypass: true }] },
};

const status = async (node: Kiln, path: string, method?: string, body?: unknown): Promise<number> =>
  (await node.api(path, method, body)).status;
const apps = async (node: Kiln): Promise<string> =>
  (await node.api<string[]>(`${VHOST}/apps`)).body.response.sort().join();

test.serial(
  'an application on demand is on every node; any deletes it everywhere, or makes it an ordinary one',
  async (t) => {
    const redis = await usedRedis(t);
    const own = { hostName: 'default.example.com' };
    const nodes = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, own)))) as [Kiln, Kiln, Kiln];
    const [a, b, c] = nodes;
    const publish = (node: Kiln, app: string): Promise<PictureClient> =>
      PictureClient.publish(node, 'live', app, 'made.example.com');
    const untilApps = async (wanted: string): Promise<void> => {
      for (const node of nodes)
        await until(`its applications are ${wanted}`, async () => (await apps(node)) === wanted);
    };
    t.is(
      await status(a, '/v1/vhosts', 'POST', [
        { name: 'made', host: { names: ['made.example.com'] }, applications: [TEMPLATE] },
      ]),
      200,
    );
    const first = await publish(a, 'on-demand');
    const other = await publish(b, 'other');
    t.teardown(() => [first, other].forEach((client) => client.close()));
    await untilApps('on-demand,other');
    t.like((await c.api(`${VHOST}/apps/on-demand`)).body.response, { dynamic: true });
    t.is(await status(b, `${VHOST}/apps/on-demand`, 'DELETE'), 200);
    await first.client.ended();
    for (const node of nodes) t.is(await apps(node), 'other');

    t.is(await status(c, `${VHOST}/apps/other/outputProfiles`, 'POST', [PROFILE]), 200);
    await other.client.ended();
    for (const node of nodes) {
      t.like((await node.api(`${VHOST}/apps/other`)).body.response, { dynamic: false });
      t.is(await status(node, `${VHOST}/apps/other/outputProfiles/p`), 200);
    }
    await b.restart();
    t.is(await status(b, `${VHOST}/apps/other/outputProfiles/p`), 200, 'it is stored');
    const again = await publish(c, 'on-demand');
    t.teardown(() => again.close());
    await untilApps('on-demand,other');
  },
);

long('certificates are loaded again on every node; one that cannot be is reported', async (t) => {
  const redis = await usedRedis(t);
  const folders = [new CertificateFolder(t), new CertificateFolder(t)] as const;
  const [a, b] = (await Promise.all(
    ['a', 'b'].map((id, at) =>
      startNode(t, redis, id, { tls: (folders[at] as CertificateFolder).write('own', issue('before')) }),
    ),
  )) as [Kiln, Kiln];
  await untilStates(a, { a: 'ready', b: 'ready' });
  const paths = [
    '/v1/vhosts/default:reloadCertificate',
    '/v1/vhosts:reloadAllCertificates',
    '/v1/managers/api:reloadCertificate',
  ];
  for (const path of paths) t.is(await status(a, path, 'POST', {}), 200, path);
  writeFileSync(join(folders[1].path, 'own.crt'), 'nonsense');
  for (const path of paths) t.is(await status(a, path, 'POST', {}), 500, path);
  await until(
    'both logs say so',
    () =>
      b.log.includes('the certificate was not reloaded: ') &&
      a.log.includes('the certificate was not reloaded on a node'),
  );
  folders[1].write('own', issue('after'));
  for (const path of paths) t.is(await status(a, path, 'POST', {}), 200, path);
});

long('the inventory of codecs is of all nodes: software once, with what is at work of it anywhere', async (t) => {
  const redis = await usedRedis(t);
  const encoding = {
    application:
      '<OutputProfiles><OutputProfile><Name>p</Name><OutputStreamName>${OriginStreamName}</OutputStreamName><Encodes>' +
      '<Video><Name>v</Name><Codec>h264</Codec><Bitrate>100000</Bitrate><Width>64</Width><Height>48</Height></Video>' +
      '</Encodes></OutputProfile></OutputProfiles>',
  };
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => startNode(t, redis, id, encoding)))) as [Kiln, Kiln];
  await untilStates(a, { a: 'ready', b: 'ready' });
  const codecs = async (node: Kiln): Promise<readonly CodecEntry[]> =>
    (await node.api<CodecEntry[]>('/v2/internals/codecs')).body.response;
  const encoders = (entries: readonly CodecEntry[]): number =>
    entries.reduce((sum, { metrics }) => sum + metrics.active.encoder, 0);
  const before = await codecs(a);
  t.deepEqual(before, await codecs(b));
  const names = before.map(({ mediaType, name }) => `${mediaType} ${name}`);
  t.is(new Set(names).size, names.length);
  t.true(names.length > 0);
  t.is(encoders(before), 0);
  const publishers = await Promise.all([a, b].map((node, at) => PictureClient.publish(node, `s${at}`)));
  t.teardown(() => publishers.forEach((publisher) => publisher.close()));
  await until('both encode', async () => encoders(await codecs(a)) === 2);
  await until('as any node tells', async () => JSON.stringify(await codecs(a)) === JSON.stringify(await codecs(b)));
  const queues = async (node: Kiln): Promise<readonly string[]> => {
    const { response } = (await node.api<QueueEntry[]>('/v1/stats/current/internals/queues')).body;
    return response.map((entry) => `${entry.node} ${entry.inputPerSecond > 0 ? entry.urn : 'idle'}`).sort();
  };
  for (const node of [a, b]) {
    await until('the queues of their encoders are those of all nodes, too', async () => {
      const told = await queues(node);
      return told.join() === ['a', 'b'].map((id, at) => `${id} mngq:v=#default#app:s=s${at}:p=trs:n=encoder`).join();
    });
  }
  t.is((await a.api('/v2/internals/codecs')).headers.get('x-kiln-stale'), null);
  b.signal('SIGSTOP');
  const isMarked = async (path: string): Promise<boolean> => (await a.api(path)).headers.get('x-kiln-stale') === 'true';
  const told = [
    '/v2/internals/codecs',
    '/v1/stats/current/internals/queues',
    '/v2/internals/queues',
    '/v1/vhosts/default/apps/app/streams/s0/sessions',
  ];
  // at once: soon it is known to be lost, and nothing is missing then
  await until('that one is missing', async () => (await Promise.all(told.map(isMarked))).every(Boolean));
  b.signal('SIGKILL');
  await until('what a dead node did is gone', async () => encoders(await codecs(a)) === 1);
});

long('the answer of an owner that is cut off from Redis is marked, whichever node is asked', async (t) => {
  const redis = await usedRedis(t);
  const way = await TcpProxy.open(t, redis.port);
  const [a, b] = await Promise.all([
    startNode(t, redis, 'a'),
    startNode(t, { url: `redis://127.0.0.1:${way.port}` }, 'b'),
  ]);
  const publisher = await PictureClient.publish(b, 'live');
  t.teardown(() => publisher.close());
  const path = '/v1/vhosts/default/apps/app/streams/live';
  await until('a tells of it', async () => (await a.api(path)).status === 200);
  t.is((await a.api(path)).headers.get('x-kiln-stale'), null);
  way.cut();
  await until('it is marked', async () => {
    const { status, headers } = await a.api(path);
    return status === 200 && headers.get('x-kiln-stale') === 'true';
  });
  way.heal();
  await until('it is not any more', async () => {
    const { status, headers } = await a.api(path);
    return status === 200 && headers.get('x-kiln-stale') === null;
  });
});
