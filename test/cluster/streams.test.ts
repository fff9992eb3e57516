import { mkdtempSync, rmSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { ByteSink } from '../support/network/byte-sink.ts';
import { h264 } from '../support/rtmp/flv-media.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { shared } from '../support/runner/shared.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';

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

const RECORDS = mkdtempSync(join(tmpdir(), 'kiln-records-'));
test.after.always(() => rmSync(RECORDS, { recursive: true, force: true }));

const nodes = sharedNodes(['a', 'b', 'c'], {
  publishers: `<FILE><RootPath>${RECORDS}</RootPath></FILE><Push/>`,
});

test.serial('a stream that is published on any node is listed, shown and ended by any other', async (t) => {
  const [a, b, c] = nodes();
  const clients = await Promise.all([publish(a, 'one'), publish(b, 'two ä')]);
  t.teardown(() => clients.forEach((client) => client.close()));
  const shown = async (node: Kiln, name: string) => (await node.stream(encodeURIComponent(name))).body.response;
  for (const node of nodes()) {
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
  for (const node of nodes()) {
    await until('it is not listed any more', async () => (await list(node)).join() === 'two ä');
    t.is(await status(node, `${APP}/streams/one`), 404);
  }
  clients[1].close();
  for (const node of nodes()) await until('it is gone', async () => (await list(node)).length === 0);
});

long('HLS of a stream is dumped and concluded by way of any node', async (t) => {
  const [a, b, c] = nodes();
  const folder = await mkdtemp(join(tmpdir(), 'kiln-dump-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const publisher = await PictureClient.publish(a, 'dumped');
  t.teardown(() => publisher.close());
  const play = (node: Kiln, path: string) => fetch(node.httpUrl(path));
  const master = '/app/dumped/llhls.m3u8';
  for (const node of [a, b, c]) await until('it plays', async () => (await play(node, master)).status === 200);
  const stream = `${APP}/streams/dumped`;
  const asked = { outputStreamName: 'dumped', id: 'd', outputPath: `${folder}/vod` };
  const started = await Promise.all([b, c].map((node) => node.api(`${stream}:startHlsDump`, 'POST', asked)));
  t.deepEqual(started.map(({ status: code }) => code).sort(), [200, 500]);
  t.true(started.some(({ body }) => body.message.includes('Duplicate ID')));
  for (const node of [a, b, c]) {
    const dumps = (await node.api<object[]>(`${stream}:hlsDumps`, 'POST', asked)).body.response;
    t.deepEqual(dumps, [{ ...asked, enabled: true, state: 'running' }]);
  }
  t.is((await b.api(`${stream}:concludeHlsLive`, 'POST', { urgent: true })).status, 200);
  for (const node of [a, b, c]) {
    const path = urisOf(await (await play(node, master)).text(), master).at(-1) ?? '';
    await until('the playlist has ended', async () =>
      (await (await play(node, path)).text()).endsWith('#EXT-X-ENDLIST\n'),
    );
    t.deepEqual((await node.api(`${stream}:hlsDumps`, 'POST', asked)).body.response, []);
  }
  t.true((await readdir(`${folder}/vod`)).includes('llhls.m3u8'));
  publisher.close();
  for (const node of [a, b, c])
    await until('nobody has it', async () => (await node.api(`${stream}:hlsDumps`, 'POST', asked)).status === 404);
});

test.serial('a name belongs to one publisher in the whole cluster', async (t) => {
  const [a, b] = nodes();
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

interface TaskRow {
  readonly id: string;
  readonly state: string;
  readonly sequence?: number;
  readonly sentTime?: number;
  readonly sentBytes?: number;
  readonly totalsentBytes?: number;
  readonly recordBytes?: number;
  readonly totalRecordBytes?: number;
}

const tasks = async (node: Kiln, action: string) =>
  (await node.api<readonly TaskRow[]>(`${APP}:${action}`)).body.response;
const taskOf = async (node: Kiln, action: string, id: string) =>
  (await tasks(node, action)).find((task) => task.id === id);
const pushIds = async (node: Kiln) => (await tasks(node, 'pushes')).map(({ id }) => id);

const teardown = new Teardown();
test.after.always(() => teardown.run());

/** Publishes a stream to the first node that is pushed and recorded from now on. @returns the answers, and where it is pushed to */
const started = shared(async () => {
  const [a, b, c] = nodes();
  const [sink, other] = await Promise.all([ByteSink.open(teardown), ByteSink.open(teardown)]);
  const publisher = await PictureClient.publish(a, 'moving');
  teardown.teardown(() => publisher.close());
  const stream = { name: 'moving' };
  const ask = async (asked: readonly Kiln[], action: string, task: object): Promise<number[]> => {
    const answers = await Promise.all(asked.map((node) => node.api(`${APP}:${action}`, 'POST', task)));
    return answers.map(({ status: answered }) => answered).sort();
  };
  const push = { id: 'out', stream, protocol: 'mpegts', url: sink.url };
  const pushes = await ask([a, b, c, c], 'startPush', push);
  const unheard = await ask([b], 'startPush', { ...push, id: 'never', stream: { name: 'none' } });
  const second = await ask([c], 'startPush', { ...push, id: 'again', url: other.url });
  const filePath = '${Id}_${Sequence}_${TransactionId}.ts';
  const records = await ask([a, b, c], 'startRecord', { id: 'file', stream, filePath });
  return { sink, pushes, unheard, second, records };
});

/** Kills the node that has the stream. @returns the other two, and which file the recording had come to */
const killed = shared(async () => {
  await started();
  const [a, b, c] = nodes();
  // progress is kept for the next owner once a second
  await until('both run for some seconds', async () => {
    const pushed = await taskOf(c, 'pushes', 'out');
    const recorded = await taskOf(c, 'records', 'file');
    return (pushed?.sentTime ?? 0) > 3000 && recorded?.state === 'recording' && (recorded.totalRecordBytes ?? 0) > 0;
  });
  const sequence = (await taskOf(c, 'records', 'file'))?.sequence ?? 0;
  a.signal('SIGKILL');
  await a.exited();
  return { left: [b, c] as const, sequence };
});

test.serial(
  'a push or recording that several nodes are asked for at once starts once, and is known to all',
  async (t) => {
    const { pushes, unheard, second, records } = await started();
    t.deepEqual(pushes, [200, 409, 409, 409]);
    t.deepEqual([unheard, second], [[200], [200]]);
    t.deepEqual(records, [200, 409, 409]);
    for (const node of nodes()) t.deepEqual(await pushIds(node), ['again', 'never', 'out']);
  },
);

test.serial('the streams of a node that is killed are gone, and its pushes can be stopped at once', async (t) => {
  const [b, c] = (await killed()).left;
  // 503 as long as whoever has it cannot be reached, 404 when its death is known
  t.true([503, 404].includes(await status(b, `${APP}/streams/moving`)));
  const stop = async (node: Kiln) => (await node.api(`${APP}:stopPush`, 'POST', { id: 'again' })).status;
  t.is(await stop(c), 200);
  t.is(await stop(b), 404);
  for (const node of [b, c]) t.deepEqual(await pushIds(node), ['never', 'out']);
  await untilStates(b, { a: 'lost', b: 'ready', c: 'ready' });
  await until('the stream is not listed', async () => (await list(b)).length === 0);
  t.is(await status(b, `${APP}/streams/moving`), 404);
});

test.serial('a recording and a push of a node that was killed go on where the publisher returns', async (t) => {
  const { left, sequence } = await killed();
  const [b, c] = left;
  const back = await until('the name is free', () => PictureClient.publish(b, 'moving').catch(() => undefined));
  t.teardown(() => back.close());
  for (const node of left) {
    const pushed = await until('it is pushed again', async () => {
      const task = await taskOf(node, 'pushes', 'out');
      return task?.state === 'pushing' && (task.sentBytes ?? 0) > 0 && task;
    });
    t.is(pushed.sequence, 2);
    t.true((pushed.totalsentBytes ?? 0) > (pushed.sentBytes ?? 0));
    const recorded = await until('it is recorded again', async () => {
      const task = await taskOf(node, 'records', 'file');
      return task?.state === 'recording' && (task.recordBytes ?? 0) > 0 && task;
    });
    t.is(recorded.sequence, sequence + 1);
    t.true((recorded.totalRecordBytes ?? 0) > (recorded.recordBytes ?? 0));
  }
  t.is((await started()).sink.most, 1);
  t.is((await c.api(`${APP}:stopRecord`, 'POST', { id: 'file' })).status, 200);
  await until('the new file has its name', async () =>
    (await readdir(RECORDS)).some((name) => name.startsWith(`file_${sequence + 1}_`)),
  );
});

long('an earlier publisher on another node is ended where newcomers replace it', async (t) => {
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

long('an application that a publisher demanded is there on every node', async (t) => {
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
