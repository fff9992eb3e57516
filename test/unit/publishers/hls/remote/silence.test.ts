import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { UnreachableError } from '#cluster';
import { KilnError, kilnError } from '../../../../../src/errors.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const TRACKS = [videoTrack(), audioTrack()];

/** A stream of node `a`, and the chunklist of its picture for a player of `b`; nobody has asked `c` for it. */
async function live(t: ExecutionContext, segmentDuration = 2) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const llhls = { segmentDuration, segmentCount: 6, chunkDuration: 0.5 };
  const open = (id: string) => openLlhlsNode(t, nodes, id, { llhls });
  const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')]);
  const { input, output } = await a.goLive(TRACKS);
  await untilKnown(b, a);
  const advance = feeder(output);
  advance(5.2);
  const url = (await b.children())[1] as string;
  return { nodes, a, b, c, input, output, advance, url };
}

/** The same when the player has loaded it, and what it asks for next. */
async function playing(t: ExecutionContext) {
  const there = await live(t);
  const { b, url } = there;
  const { statusCode, body } = await b.get(url);
  t.is(statusCode, 200);
  const newest = Math.max(...[...body.matchAll(/^seg_\d+_(\d+)_/gm)].map(([, msn]) => Number(msn)));
  return { ...there, body, next: `${url}?_HLS_msn=${newest + 2}` };
}

const calls = ({ asked }: LlhlsNode, what: string) => asked.filter((path) => path.includes(`/${what}/`)).length;

/** What a node knows of a chunklist is so old that it asks for it again. */
async function untilOld(node: LlhlsNode, url: string): Promise<void> {
  const before = calls(node, 'chunklist');
  await until('it asks again', () => {
    void node.get(url);
    return calls(node, 'chunklist') > before;
  });
}

/** Nobody can be reached from a node, until the function that it returns is called. */
function cutOff({ cluster }: LlhlsNode): () => void {
  const { forward } = cluster;
  cluster.forward = () => Promise.reject(new UnreachableError('the cable was pulled'));
  return () => {
    cluster.forward = forward;
  };
}

test('players get what is known while the owner is silent, and few calls are made', async (t) => {
  const { a, b, url, body } = await playing(t);
  a.silence();
  await untilOld(b, url);
  const before = calls(b, 'chunklist');
  for (const answer of Array.from({ length: 12 }, () => b.get(url))) t.like(await answer, { statusCode: 200, body });
  t.true(calls(b, 'chunklist') - before <= 2, `${calls(b, 'chunklist') - before} calls`);
  t.is((await b.get(MASTER)).statusCode, 200);
});

test('a request that waits at a silent owner gets what is known, whether it came before the silence or after', async (t) => {
  const { a, b, next, body } = await playing(t);
  const before = calls(b, 'chunklist');
  const early = b.get(next);
  await until('it waits', () => calls(b, 'chunklist') > before);
  a.silence();
  t.like(await b.get(next), { statusCode: 200, body });
  t.like(await early, { statusCode: 200, body });
});

test('requests that wait when the name of a stream is lost get what is known', async (t) => {
  const { a, b, input, next, body } = await playing(t);
  a.silence();
  const held = Promise.all(Array.from({ length: 3 }, () => b.get(next)));
  input.close('the connection was lost');
  await until('it is known', () => b.directory.known(b.application, 'stream') === undefined);
  for (const answer of [...(await held), await b.get(next)]) t.like(answer, { statusCode: 200, body });
  const [sound = ''] = await b.children();
  t.is((await b.get(sound)).statusCode, 503, 'of the sound nothing is known here');
});

test('a request that is on its way to a silent owner ends when the publisher comes to this node', async (t) => {
  const { a, b, input, url, next, body } = await playing(t);
  a.silence();
  await untilOld(b, url);
  const held = b.get(next);
  input.close('the connection was lost');
  const { output } = await until('the name is free', () =>
    b.goLive(TRACKS).catch((error: unknown) => {
      if (error instanceof KilnError && error.code === 'streamExists') return undefined;
      throw error;
    }),
  );
  t.like(await held, { statusCode: 200, body }, 'it is told to ask again');
  feeder(output)(3.1);
  t.is((await b.get(next)).statusCode, 200);
});

test('invented names of chunklists while the owner is away keep no player out', async (t) => {
  const { b, url } = await playing(t);
  const sound = (await b.children())[0] as string;
  const mend = cutOff(b);
  for (let index = 0; index < 300; index++) {
    t.is((await b.get(url.replace(/chunklist_\d+/, `chunklist_${1000 + index}`))).statusCode, 503);
  }
  t.is((await b.get(url)).statusCode, 200);
  mend();
  await until('the sound plays', async () => (await b.get(sound)).statusCode === 200);
});

test('an error that nothing foresees costs no player its place', async (t) => {
  const { b } = await playing(t);
  const urls = await Promise.all(Array.from({ length: 3 }, async () => (await b.children())[1] as string));
  const { forward } = b.cluster;
  b.cluster.forward = () => Promise.reject(new TypeError('unforeseen'));
  for (const { statusCode } of await Promise.all(urls.map((url) => b.get(url)))) t.is(statusCode, 200);
  b.cluster.forward = forward;
  const [, late = ''] = await b.children();
  t.is((await b.get(late)).statusCode, 200);
  t.is(b.sessions().length, 5);
});

test('a file that a player asks for while no node answers comes when one does, and otherwise in time for another try', async (t) => {
  const { b, url, body } = await playing(t);
  const [first = '', second = ''] = [...body.matchAll(/^(seg_.*)$/gm)].map(([, name = '']) =>
    url.replace(/[^/]+$/, name),
  );
  const mend = cutOff(b);
  const since = performance.now();
  t.is((await b.get(first)).statusCode, 503);
  const waited = performance.now() - since;
  t.true(waited > 3000 && waited < 9000, `${waited} ms`);
  let done = false;
  const held = b.get(second).finally(() => (done = true));
  await delay(1200);
  t.false(done);
  const [audio = ''] = await b.children();
  const list = b.get(audio);
  await delay(700);
  t.false(done);
  mend();
  t.is((await held).statusCode, 200);
  t.is((await list).statusCode, 200, 'of a media playlist of which nothing was known here');
});

test('a part that does not come for long does not make its owner unreachable', async (t) => {
  const { a, b, url, advance } = await live(t, 10);
  const [, name = ''] = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec((await a.get(url)).body) ?? [];
  const hint = url.replace(/[^/]+$/, name);
  const late = await b.get(hint);
  t.is(late.statusCode, 503);
  t.is(late.body, kilnError('playlistOverdue').message);
  advance(6);
  t.is((await b.get(hint)).statusCode, 200);
});

test('players that come while the owner is dead, and nothing is known, are held until another node has the stream', async (t) => {
  const { nodes, a, b, c } = await live(t);
  await untilKnown(c, a);
  nodes.kill('a');
  const held = c.get(MASTER);
  const { output } = await b.goLive(TRACKS);
  feeder(output)(3.1);
  t.is((await held).statusCode, 200);
});

test('players that are held for an owner without a successor are answered in time', async (t) => {
  const { b, c, a } = await live(t);
  await untilKnown(c, a);
  a.silence();
  cutOff(c);
  const since = performance.now();
  const { statusCode, headers } = await c.get(MASTER);
  t.is(statusCode, 503);
  t.is(headers['retry-after'], '1');
  const waited = performance.now() - since;
  t.true(waited > 3000 && waited < 10_000, `${waited} ms`);
  t.is((await b.get(MASTER)).statusCode, 200);
});

test("players of a stopping node's streams are kept and held until another node has them", async (t) => {
  const { a, b, c, url, body } = await playing(t);
  await untilKnown(c, a);
  await a.cluster.retire();
  await until('it is known', () =>
    [b, c].every(({ cluster }) => cluster.nodes().some(({ state }) => state === 'draining')),
  );
  // as it stops: it still answers, and has no streams any more
  a.registry.close('the server is stopping');
  const held = c.get(MASTER);
  t.like(await b.get(url), { statusCode: 200, body });
  t.is((await b.get(MASTER)).statusCode, 200);
  await until('the name is free', () => b.directory.known(b.application, 'stream') === undefined);
  t.like(await b.get(url), { statusCode: 200, body });
  const { output } = await b.goLive(TRACKS);
  feeder(output)(3.1);
  t.is((await held).statusCode, 200);
});

test('players of a stream that has ended on a node that goes on are neither kept nor held', async (t) => {
  const { b, c, a, input, url } = await playing(t);
  await untilKnown(c, a);
  const before = performance.now();
  input.end('deleted');
  for (const node of [b, c]) await until(`${node.id} knows`, async () => (await node.get(MASTER)).statusCode === 404);
  t.is((await b.get(url)).statusCode, 404);
  t.true(performance.now() - before < 1000);
});
