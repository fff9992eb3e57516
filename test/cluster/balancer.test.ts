import { get } from 'node:http';
import { text as whole } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { BEHIND_BALANCER, startBalancer, type Balancer } from '../support/network/balancer.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { TOKEN, type Kiln } from '../support/server/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { until } from '../support/time/until.ts';

const CALLS = 9;
/** Of this machine, and none that the nodes believe. */
const CLIENT = '127.0.0.5';

/** Three nodes, each with a window of LL-HLS of its own: 3, 4 and 5 segments tell which one has answered. */
async function start(t: ExecutionContext) {
  const redis = await usedRedis(t);
  const nodes = (await Promise.all(
    ['a', 'b', 'c'].map((id, index) =>
      startNode(t, redis, id, { modules: BEHIND_BALANCER, llhls: `<SegmentCount>${3 + index}</SegmentCount>` }),
    ),
  )) as [Kiln, Kiln, Kiln];
  await untilStates(nodes[0], { a: 'ready', b: 'ready', c: 'ready' });
  return { nodes, balancer: await startBalancer(t, nodes) };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A call through the balancer, on a connection of its own. */
function call(
  { api }: Balancer,
  path: string,
  { method = 'GET', token = TOKEN, localAddress = CLIENT } = {},
): Promise<Answer> {
  const headers = { authorization: `Basic ${Buffer.from(token).toString('base64')}` };
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: api, path, method, headers, localAddress, agent: false }, (message) => {
      const status = message.statusCode ?? 0;
      // one that is cut rejects
      whole(message).then((body) => resolve({ status, body }), reject);
    }).on('error', reject);
  });
}

/** Which nodes answer a number of calls, none of which may fail. */
async function answering(t: ExecutionContext, balancer: Balancer): Promise<string> {
  const answers = await Promise.all(Array.from({ length: CALLS }, () => call(balancer, '/v1/vhosts/default/apps/app')));
  t.deepEqual(
    answers.filter(({ status }) => status !== 200),
    [],
  );
  const counts = answers.map(({ body }) => Number(/"segmentCount":(\d+)/.exec(body)?.[1]));
  return [...new Set(counts.map((count) => 'abc'[count - 3]))].sort().join('');
}

const publish = ({ rtmp }: Balancer, key: string): Promise<RtmpClient> =>
  RtmpClient.publish(key, { port: rtmp, app: 'app', localAddress: CLIENT });
/** Whether new publishers are taken, of each node in the rotation of RTMP: they are spread. */
async function publishes(balancer: Balancer): Promise<boolean> {
  const tries = ['try1', 'try2', 'try3'].map((key) => publish(balancer, key));
  const outcomes = await Promise.allSettled(tries);
  for (const outcome of outcomes) if (outcome.status === 'fulfilled') outcome.value.socket.destroy();
  return outcomes.every(({ status }) => status === 'fulfilled');
}

const change = async (balancer: Balancer, path: string): Promise<number> =>
  (await call(balancer, `/v1/cluster/nodes/${path}`, { method: 'POST' })).status;

test("calls and publishers are spread over the nodes, which know the client's address", async (t) => {
  const { nodes, balancer } = await start(t);
  await until('all are in the rotation', async () => (await answering(t, balancer)) === 'abc');
  await until(
    'each has had a publisher, by its own address',
    async () => (await publishes(balancer)) && nodes.every(({ log }) => log.includes(`"remote":"${CLIENT}:`)),
  );
  // a node refuses an address that guesses, and no other
  const guess = async (localAddress: string): Promise<number> =>
    (await call(balancer, '/v1/vhosts', { token: 'wrong', localAddress })).status;
  await until('the guesses are too many', async () =>
    (await Promise.all([1, 2, 3].map(() => guess(CLIENT)))).every((status) => status === 429),
  );
  t.is(await guess('127.0.0.6'), 401);
  t.is((await call(balancer, '/v1/vhosts')).status, 200);
});

test('nodes that are killed or drained get no new client; the last of them carries playlists and WebSockets', async (t) => {
  const {
    nodes: [a, b, c],
    balancer,
  } = await start(t);
  await until('all are in the rotation', async () => (await answering(t, balancer)) === 'abc');
  a.signal('SIGKILL');
  await a.exited();
  // no call fails meanwhile: who is refused a connection is sent elsewhere
  await until('the others answer', async () => (await answering(t, balancer)) === 'bc');
  const present = PictureClient.of(
    await RtmpClient.publish('present', { port: b.ports.rtmp, app: 'app', localAddress: CLIENT }),
  );
  t.teardown(() => present.close());
  t.is(await change(balancer, 'b:drain'), 200);
  await until('b is out of the rotation', async () => (await answering(t, balancer)) === 'c');
  t.false(present.ended, 'and keeps what it has');
  present.close();
  await until('and out of the rotation of RTMP', () => publishes(balancer));

  const publisher = new Program('ffmpeg', [
    ...patternArguments({ size: '160x90', rate: 15 }),
    '-f',
    'flv',
    `rtmp://127.0.0.1:${balancer.rtmp}/app/live`,
  ]);
  t.teardown(() => publisher.stop());
  await c.liveStream('live');
  const origin = `http://127.0.0.1:${balancer.http}`;
  const text = async (path: string): Promise<string> => (await fetch(new URL(path, `${origin}/app/live/`))).text();
  const [variant = ''] = (
    await until('there is a playlist', async () => {
      const lines = (await text('llhls.m3u8')).split('\n');
      return lines.some((line) => line.includes('EXT-X-STREAM-INF')) && lines;
    })
  ).filter((line) => line !== '' && !line.startsWith('#'));
  const newest = (playlist: string): number =>
    Number(/MEDIA-SEQUENCE:(\d+)/.exec(playlist)?.[1]) + playlist.split('#EXTINF').length - 1;
  const next = newest(await text(variant)) + 1;
  t.true(newest(await text(`${variant}?_HLS_msn=${next - 1}`)) >= next, 'answered when it is there, seconds later');

  const socket = await SignallingClient.open(`ws://127.0.0.1:${balancer.http}/app/live`);
  socket.send({ command: 'request_offer' });
  await until('an offer', () => socket.received.some(({ command }) => command === 'offer'));
  socket.socket.close();

  t.is(await change(balancer, 'c:drain'), 200);
  await until('nobody takes publishers', async () => !(await publishes(balancer)));
  await until(
    'a node that is drained takes calls when there is no other',
    async () => (await change(balancer, 'b:undrain')) === 200,
  );
  await until('b is back', async () => (await answering(t, balancer)) === 'b');
  await until('and takes publishers', () => publishes(balancer));
  t.true(publisher.running, 'a publisher on a node that drains goes on');
});
