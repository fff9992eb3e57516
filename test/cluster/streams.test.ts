import test from 'ava';
import { h264 } from '../support/flv-media.ts';
import type { Kiln } from '../support/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/nodes.ts';
import { sharedNodes } from '../support/shared-nodes.ts';
import { RtmpClient } from '../support/rtmp-client.ts';
import { until } from '../support/until.ts';

const APP = '/v1/vhosts/default/apps/app';
const REPLACING = '<BlockDuplicateStreamName>false</BlockDuplicateStreamName>';

const status = async (node: Kiln, path: string, method?: string): Promise<number> =>
  (await node.api(path, method)).status;
const list = async (node: Kiln, app = APP): Promise<readonly string[]> =>
  (await node.api<string[]>(`${app}/streams`)).body.response;

/** Publishes a picture, so that the stream is listed. */
async function publish(node: Kiln, name: string, app = 'app'): Promise<RtmpClient> {
  const client = await RtmpClient.publish(name, { port: node.ports.rtmp, app });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  client.video(config, 0);
  frames.slice(0, 5).forEach((frame, at) => client.video(frame, at * 40));
  await until(`${name} is listed`, async () => (await list(node, `/v1/vhosts/default/apps/${app}`)).includes(name));
  return client;
}

const shared = sharedNodes(['a', 'b', 'c']);

test.serial('what is published on any node is listed, shown and ended by any other', async (t) => {
  const nodes = shared();
  const [a, b, c] = nodes;
  const clients = await Promise.all([publish(a, 'one'), publish(b, 'two ä')]);
  t.teardown(() => clients.forEach((client) => client.close()));
  const shown = async (node: Kiln, name: string) => (await node.stream(encodeURIComponent(name))).body.response;
  for (const node of nodes) {
    await until('both are listed', async () => [...(await list(node))].sort().join() === 'one,two ä');
    t.like(await shown(node, 'one'), {
      name: 'one',
      input: { sourceType: 'Rtmp', connection: { localPort: a.ports.rtmp } },
    });
    t.like(await shown(node, 'two ä'), { name: 'two ä', input: { connection: { localPort: b.ports.rtmp } } });
    t.is(await status(node, `${APP}/streams/none`), 404);
    const head = await fetch(`http://127.0.0.1:${node.ports.api}${APP}/streams/one`, {
      method: 'HEAD',
      headers: { authorization: `Basic ${btoa('test-token')}` },
    });
    t.is(head.status, 200);
  }
  t.is(await status(c, `${APP}/streams/one`, 'DELETE'), 200);
  await clients[0].ended();
  for (const node of nodes) {
    t.is(await status(node, `${APP}/streams/one`), 404);
    t.deepEqual(await list(node), ['two ä']);
  }
  clients[1].close();
  for (const node of nodes) await until('it is gone', async () => (await list(node)).length === 0);
});

test.serial('a name belongs to one publisher in the whole cluster', async (t) => {
  const [a, b] = shared();
  const first = await publish(a, 'taken');
  await t.throwsAsync(RtmpClient.publish('taken', { port: b.ports.rtmp }), {
    message: /BadName: Stream already exists/,
  });
  first.close();
  const second = await until('the name is free', () =>
    RtmpClient.publish('taken', { port: b.ports.rtmp }).catch(() => undefined),
  );
  await t.throwsAsync(RtmpClient.publish('taken', { port: a.ports.rtmp }), { message: /BadName/ });
  second.close();
  for (let round = 0; round < 5; round++) {
    const port = ({ ports }: Kiln): number => ports.rtmp;
    const attempts = await Promise.allSettled(
      [a, b, a, b].map((node) => RtmpClient.publish(`race${round}`, { port: port(node) })),
    );
    t.is(attempts.filter((attempt) => attempt.status === 'fulfilled').length, 1);
    for (const attempt of attempts) if (attempt.status === 'fulfilled') attempt.value.close();
  }
});

test('where newcomers replace, the one on another node is ended', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([
    startNode(t, redis, 'a', { rtmp: REPLACING }),
    startNode(t, redis, 'b', { rtmp: REPLACING }),
  ]);
  const first = await publish(a, 'name');
  const second = await publish(b, 'name');
  await first.ended();
  await until('the log tells why', () => a.log.includes('the stream name was lost'));
  const shown = await until('a shows it', async () => {
    const { status: answered, body } = await a.stream('name');
    return answered === 200 && body.response;
  });
  t.like(shown, { input: { connection: { localPort: b.ports.rtmp } } });
  second.close();
});

test('streams of a node that was killed are gone when it is lost, and their names free', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b')]);
  await publish(a, 'name');
  await until('b lists it', async () => (await list(b)).join() === 'name');
  a.signal('SIGKILL');
  await a.exited();
  t.is(await status(b, `${APP}/streams/name`), 503, 'whoever has it cannot be reached');
  await untilStates(b, { a: 'lost', b: 'ready' });
  await until('it is not listed', async () => (await list(b)).length === 0);
  t.is(await status(b, `${APP}/streams/name`), 404);
  const again = await publish(b, 'name');
  again.close();
});

test('an application that a publisher demanded is there on every node', async (t) => {
  const redis = await usedRedis(t);
  const vhost = '/v1/vhosts/made';
  const [a, b] = await Promise.all([
    startNode(t, redis, 'a', { hostName: 'default.example.com' }),
    startNode(t, redis, 'b', { hostName: 'default.example.com' }),
  ]);
  const template = { name: '*', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } };
  t.is(
    (await a.api('/v1/vhosts', 'POST', [{ name: 'made', host: { names: ['*'] }, applications: [template] }])).status,
    200,
  );
  t.is(await status(b, vhost), 200);
  const client = await RtmpClient.publish('live', { port: a.ports.rtmp, app: 'demanded' });
  t.teardown(() => client.close());
  await until('b has it', async () => (await status(b, `${vhost}/apps/demanded`)) === 200);
});
