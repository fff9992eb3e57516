import test, { type ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import { openRedis, type Cluster } from '#cluster';
import { apiRoutes } from '../../src/api/app.ts';
import { NodeReport } from '../../src/management/node-report.ts';
import { apiOptions, basic, sampleRegistry, TOKEN } from '../support/api/api.ts';
import { freePorts } from '../support/network/ports.ts';
import { RTMP, VIDEO } from '../unit/core/support.ts';

const NODES = '/v1/cluster/nodes';
const ADDRESSES = { rtmp: ['rtmp://127.0.0.1:1935'] };

/** The API of a node; alone unless told. */
async function open(t: ExecutionContext, cluster?: Cluster) {
  const registry = sampleRegistry();
  const options = await apiOptions({}, registry);
  const node = cluster ?? options.cluster;
  const log = pino({ level: 'silent' });
  const facts = { version: '1.2.3', addresses: ADDRESSES, publicUrl: 'https://node.example', configHashes: {} };
  const report = new NodeReport({ cluster: node, registry, facts, log });
  const app = Fastify();
  await app.register(apiRoutes({ ...options, cluster: node }));
  t.teardown(async () => {
    report.close();
    await app.close();
    await node.close();
  });
  const call = async (method: 'GET' | 'POST', url: string) => {
    const answer = await app.inject({ method, url, headers: { authorization: basic(TOKEN) } });
    return { status: answer.statusCode, body: answer.json<{ message: string; response: Record<string, unknown>[] }>() };
  };
  return { registry, report, node, call };
}

test('a node that is alone is the only one, and reports what it has', async (t) => {
  const { registry, report, node, call } = await open(t);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  t.teardown(registry.counters.viewer('llhls'));
  report.tell();
  const { status, body } = await call('GET', NODES);
  t.is(status, 200);
  t.is(body.response.length, 1);
  t.like(body.response[0], {
    id: node.self.id,
    incarnation: node.self.incarnation,
    state: 'ready',
    addresses: ADDRESSES,
    publicUrl: 'https://node.example',
    version: '1.2.3',
    streams: 1,
    sessions: 1,
    configDiffers: false,
  });
  const { uptime, load } = body.response[0] as { uptime: number; load: number };
  t.true(Number.isInteger(uptime) && load >= 0 && load <= 1);
});

test('a node is drained and taken back by its id; others are not there', async (t) => {
  const { node, call } = await open(t);
  const states: boolean[] = [];
  node.events.on('drain', (draining) => states.push(draining));
  t.is((await call('POST', `${NODES}/kiln:drain`)).status, 200);
  t.is((await call('GET', NODES)).body.response[0]?.state, 'draining');
  t.is((await call('POST', `${NODES}/kiln:undrain`)).status, 200);
  t.is((await call('GET', NODES)).body.response[0]?.state, 'ready');
  t.deepEqual(states, [true, false]);
  const missing = await call('POST', `${NODES}/other:drain`);
  t.is(missing.status, 404);
  t.is(missing.body.message, '[HTTP] Could not find the node: [other] (404)');
  t.is((await call('POST', `${NODES}/kiln:explode`)).status, 404);
});

test('a node without Redis cannot be drained', async (t) => {
  const [redis, port = 0] = freePorts(2);
  const cluster = await openRedis({
    name: 'test',
    id: 'n',
    redis: { url: `redis://127.0.0.1:${redis}` },
    file: undefined,
    onDamaged: () => {},
    onFault: () => {},
    port: { host: '127.0.0.1', port, secrets: ['s'] },
    timing: { command: 200 },
  });
  const { call } = await open(t, cluster);
  t.is((await call('POST', `${NODES}/n:drain`)).status, 503);
});
