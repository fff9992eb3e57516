import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { clusterXml, nodesOf, startNode, untilStates, type ClusterOptions } from '../support/server/nodes.ts';
import { freePorts } from '../support/network/ports.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';

const REDIS = [
  'user default off',
  'user kiln on >p@ss<word ~{kiln:kiln}:* &{kiln:kiln}:* +@all -@admin -@dangerous +info',
  'user sentinel on >watches allkeys allchannels +@all',
];
const sentinelConf = (port: number): string[] => [
  'user default off',
  'user reader on >asks allkeys allchannels +@all',
  `sentinel monitor mymaster 127.0.0.1 ${port} 1`,
  'sentinel auth-user mymaster sentinel',
  'sentinel auth-pass mymaster watches',
];

const configure =
  (lines: readonly string[]) =>
  (folder: string): string => {
    const path = join(folder, 'redis.conf');
    writeFileSync(path, lines.join('\n'));
    return path;
  };

/** Two nodes that manage as one. */
async function works(t: ExecutionContext, optionsOf: (id: string) => ClusterOptions): Promise<[Kiln, Kiln]> {
  const start = (id: string) => startNode(t, { url: '' }, id, optionsOf(id));
  const [a, b] = await Promise.all([start('a'), start('b')]);
  await untilStates(a, { a: 'ready', b: 'ready' });
  t.is((await a.api('/v1/vhosts', 'POST', [{ name: 'made', host: { names: ['made.example'] } }])).status, 200);
  t.is((await b.api('/v1/vhosts/made')).status, 200);
  return [a, b];
}

/** Whether a TLS client that believes an authority gets a connection. */
function connects(port: number, ca: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', ca }, () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });
}

test('Redis and sentinels over TLS, with users of their own and a client certificate; TLS between the nodes', async (t) => {
  const folder = new CertificateFolder(t);
  const authority = issue('authority', { authority: true });
  const { certPath: ca } = folder.write('ca', authority);
  const server = folder.write('server', issue('localhost', { issuer: authority }));
  const own = folder.write('node', issue('node', { issuer: authority }));
  const tls = (port: number): string[] => [
    '--tls-port',
    String(port),
    '--tls-cert-file',
    server.certPath,
    '--tls-key-file',
    server.keyPath,
    '--tls-ca-cert-file',
    ca,
    '--tls-replication',
    'yes',
  ];
  const [port = 0, sentinel = 0] = freePorts(2);
  await RedisServer.start(t, { port, args: tls(port), configure: configure(REDIS) });
  await RedisServer.start(t, {
    program: 'redis-sentinel',
    port: sentinel,
    args: tls(sentinel),
    configure: configure(sentinelConf(port)),
  });
  const redisXml = (password: string): string =>
    `<Sentinels><Sentinel>127.0.0.1:${sentinel}</Sentinel></Sentinels><User>kiln</User><Password>${password}</Password>` +
    `<SentinelUser>reader</SentinelUser><SentinelPassword>asks</SentinelPassword><TLS><CACertPath>${ca}</CACertPath>` +
    `<CertPath>${own.certPath}</CertPath><KeyPath>${own.keyPath}</KeyPath></TLS>`;
  const nodeXml = (id: string): string => {
    const { certPath, keyPath } = folder.write(id, issue(id, { issuer: authority }));
    return `<TLS><CertPath>${certPath}</CertPath><KeyPath>${keyPath}</KeyPath><CACertPath>${ca}</CACertPath></TLS>`;
  };
  const [a, b] = await works(t, (id) => ({ redisXml: redisXml('p@ss&lt;word'), nodeXml: nodeXml(id) }));
  const address = new URL((await nodesOf(a)).get('b')?.address ?? '');
  t.is(address.protocol, 'https:');
  t.true(await connects(Number(address.port), authority.cert));
  t.false(await connects(Number(address.port), issue('stranger', { authority: true }).cert));
  const publisher = new Program('ffmpeg', [
    ...patternArguments({ size: '160x90', rate: 15 }),
    '-f',
    'flv',
    a.rtmpUrl('live'),
  ]);
  t.teardown(() => publisher.stop());
  t.is((await b.liveStream('live')).name, 'live', 'a call about it goes from node to node');
  const refused = await startNode(t, { url: '' }, 'c', { redisXml: redisXml('wrong'), nodeXml: nodeXml('c') });
  await until('it is told why', () => refused.log.includes('WRONGPASS'));
  for (const { log } of [a, b, refused]) t.notRegex(log, /p@ss|asks/, 'no password in the log');
});

long('a Redis Cluster', async (t) => {
  const [bus = 0] = freePorts(1);
  const redis = await RedisServer.start(t, {
    args: ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-announce-ip', '127.0.0.1'],
  });
  const client = new Redis(redis.url);
  t.teardown(() => client.disconnect());
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
  await until('the cluster is there', async () =>
    String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
  );
  await works(t, () => ({ redisXml: `<Cluster><Endpoint>127.0.0.1:${redis.port}</Endpoint></Cluster>` }));
});

test('files that cannot be used keep a node from starting, in one line', async (t) => {
  const redisXml = '<Url>rediss://127.0.0.1:1</Url><TLS><CACertPath>nowhere.crt</CACertPath></TLS>';
  const started = Kiln.start({ server: clusterXml({ url: '' }, 'a', 7946, { redisXml }) });
  await t.throwsAsync(started, {
    message:
      /^the server ended: \S+: Server\/Cluster\/Redis\/TLS\/CACertPath: "nowhere\.crt" cannot be read: ENOENT\n$/,
  });
});
