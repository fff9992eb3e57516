import test, { type ExecutionContext } from 'ava';
import { UnreachableError } from '#cluster';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 6, chunkDuration: 0.5 };
const MASTER = '/app/stream/llhls.m3u8';
const EDGES = ['b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** A stream of node `a`, the others, and a function that brings it on to a media time. */
async function live(t: ExecutionContext, fanOut: number, setup: object = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { fanOut, llhls: { ...LLHLS, ...setup } });
  const [a, ...edges] = (await Promise.all(['a', ...EDGES].map(open))) as [LlhlsNode, ...LlhlsNode[]];
  const { input, output } = await a.goLive([videoTrack(), audioTrack()]);
  for (const edge of edges) await untilKnown(edge, a);
  const advance = feeder(output);
  advance(7.2);
  return { nodes, a, edges, input, output, advance };
}

const newest = (list: string): number =>
  Math.max(...[...list.matchAll(/^seg_\d+_(\d+)_/gm)].map(([, msn]) => Number(msn)));
const sibling = (url: string, name: string): string => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const partOf = (list: string): string =>
  /#EXT-X-PART:.*URI="([^"]+)"/.exec(list.slice(list.lastIndexOf('EXT-X-PART:') - 1))?.[1] ?? '';

/** Players of all nodes have the picture's chunklist and wait for its next segment; answers to them, when it has come. */
async function follow(edges: readonly LlhlsNode[], urls: readonly string[], bring: () => void): Promise<string[]> {
  const lists = await Promise.all(edges.map((edge, at) => edge.get(urls[at] as string)));
  const before = edges.map(({ asked }) => asked.length);
  const next = edges.map((edge, at) => edge.get(`${urls[at]}?_HLS_msn=${newest(lists[at]?.body ?? '') + 1}`));
  await until('they wait', () =>
    edges.every(({ asked, fedBy }, at) => fedBy.size > 0 || asked.length > (before[at] ?? 0)),
  );
  bring();
  return (await Promise.all(next)).map(({ body }) => body);
}

/** Every node has got the stream once, so that each knows from whom it has it. */
async function spread(t: ExecutionContext, fanOut: number, setup: object = {}) {
  const there = await live(t, fanOut, setup);
  const { edges, advance } = there;
  const urls = await Promise.all(edges.map(async (edge) => (await edge.children())[1] as string));
  let at = 7.2;
  const step = () => follow(edges, urls, () => advance((at += 2)));
  await step();
  await step();
  /** Whom the nodes ask for what comes next. */
  const parents = async (): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
    for (const edge of edges) edge.callees.length = 0;
    await step();
    return new Map(edges.map(({ id, callees, fedBy }) => [id, new Set([...callees, ...fedBy.keys()])]));
  };
  /** A node has no players from now on. */
  const leave = (node: LlhlsNode): void => {
    urls.splice(edges.indexOf(node), 1);
    edges.splice(edges.indexOf(node), 1);
  };
  return { ...there, urls, step, parents, leave };
}

const askers = (parents: ReadonlyMap<string, ReadonlySet<string>>, of: string): string[] =>
  [...parents].filter(([, asked]) => asked.has(of)).map(([id]) => id);

for (const fanOut of [1, 2, 3])
  test(`a node gives a stream to ${fanOut} others, and those to more: all have the same bytes`, async (t) => {
    const { a, edges, urls, parents } = await spread(t, fanOut);
    const asked = await parents();
    for (const [id, callees] of asked) t.is(callees.size, 1, `${id} asks ${[...callees]}`);
    for (const id of ['a', ...EDGES])
      t.true(askers(asked, id).length <= fanOut, `${id} is asked by ${askers(asked, id)}`);
    t.is(askers(asked, 'a').length, fanOut);
    const own = (await a.get(urls[0] as string)).body;
    for (const [at, edge] of edges.entries()) {
      const url = urls[at] as string;
      const { body } = await edge.get(url);
      t.is(body, own);
      const files = [
        partOf(body),
        ...[...body.matchAll(/^(seg_.*)$|MAP:URI="([^"]+)"/gm)].map(([, segment, map]) => segment ?? map ?? ''),
      ];
      t.true(files.length > 4 && files.every((name) => name !== ''));
      for (const name of files)
        t.deepEqual(
          (await edge.get(sibling(url, name))).rawPayload,
          (await a.get(sibling(urls[0] as string, name))).rawPayload,
          name,
        );
      t.is((await edge.get(sibling(url, 'seg_0_99_video_x_llhls.m4s'))).statusCode, 404);
    }
  });

test('few nodes have a stream from its owner itself', async (t) => {
  const { parents } = await spread(t, EDGES.length);
  const asked = await parents();
  for (const [id, callees] of asked) t.deepEqual([...callees], ['a'], id);
});

test('the owner knows how many players there are behind all nodes', async (t) => {
  const { output, step } = await spread(t, 1);
  await until('all are counted once', async () => {
    await step();
    return output.viewersElsewhere === EDGES.length;
  });
  t.is(output.viewersElsewhere, EDGES.length);
});

test('nodes below a relay that cannot be reached have the stream from another one', async (t) => {
  const { edges, parents } = await spread(t, 1);
  const before = await parents();
  const gone = edges.find(({ id }) => askers(before, 'a').includes(id)) as LlhlsNode;
  for (const { cluster, fedBy } of edges) {
    const { forward, connect } = cluster;
    const isGone = (to: { readonly id: string }): boolean => to.id === gone.id;
    const cut = () => Promise.reject(new UnreachableError('the cable was pulled'));
    cluster.forward = (to, ...rest) => (isGone(to) ? cut() : forward(to, ...rest));
    cluster.connect = (to, ...rest) => (isGone(to) ? cut() : connect(to, ...rest));
    fedBy.get(gone.id)?.destroy();
  }
  await parents();
  const asked = await parents();
  t.deepEqual(askers(asked, gone.id), []);
  for (const [id, callees] of asked) t.is(callees.size, 1, id);
});

test('players below a relay that does not answer get what comes', async (t) => {
  const { edges, step, parents } = await spread(t, 1);
  const before = await parents();
  const gone = edges.find(({ id }) => askers(before, 'a').includes(id)) as LlhlsNode;
  const lists = await step();
  gone.silence();
  const later = await step();
  for (const [at, list] of later.entries())
    if (edges[at] !== gone) t.is(newest(list), newest(lists[at] as string) + 1, edges[at]?.id);
  await until('nobody asks it', async () => askers(await parents(), gone.id).length === 0);
});

test('a node in between that drains is left, though it would answer', async (t) => {
  const { edges, parents } = await spread(t, 1);
  const before = await parents();
  const gone = edges.find(({ id }) => askers(before, 'a').includes(id)) as LlhlsNode;
  await gone.cluster.retire();
  await until('nobody asks it', async () => askers(await parents(), gone.id).length === 0);
  for (const [id, callees] of await parents()) t.is(callees.size, 1, id);
});

test('a node in between that does not have the stream is passed over', async (t) => {
  const { edges, parents, leave } = await spread(t, 1);
  const before = await parents();
  const gone = edges.find(({ id }) => askers(before, 'a').includes(id)) as LlhlsNode;
  await gone.publisher.close();
  gone.registry.close('it has none');
  leave(gone);
  await until('nobody asks it', async () => askers(await parents(), gone.id).length === 0);
  for (const [id, callees] of await parents()) t.is(callees.size, 1, id);
});

/** Lets a time pass in which players go on. */
async function play(step: () => Promise<unknown>, ms: number): Promise<void> {
  for (const until = performance.now() + ms; performance.now() < until; await step())
    await new Promise((resolve) => setTimeout(resolve, 5000));
}

test('nodes that are in their place do not ask the owner again', async (t) => {
  const { edges, step, parents } = await spread(t, 1);
  const before = await parents();
  for (const edge of edges) edge.callees.length = 0;
  await play(step, 250_000);
  const asked = edges.filter(({ callees }) => callees.includes('a')).map(({ id }) => id);
  for (const id of asked) t.true(askers(before, 'a').includes(id), `${id} asks the owner`);
  t.deepEqual(await parents(), before);
});

test('a node goes back to its place after a fault', async (t) => {
  const { edges, step, parents } = await spread(t, 1);
  const before = await parents();
  const [first = ''] = askers(before, 'a');
  const [parent = ''] = askers(before, first);
  const [child = ''] = askers(before, parent);
  const { cluster, fedBy } = edges.find(({ id }) => id === child) as LlhlsNode;
  const { forward, connect } = cluster;
  const cut = () => Promise.reject(new UnreachableError('the cable was pulled'));
  cluster.forward = (to, ...rest) => (to.id === parent ? cut() : forward(to, ...rest));
  cluster.connect = (to, ...rest) => (to.id === parent ? cut() : connect(to, ...rest));
  fedBy.get(parent)?.destroy();
  await until('it has another one', async () => (await parents()).get(child)?.has(first) === true);
  Object.assign(cluster, { forward, connect });
  await play(step, 60_000);
  t.deepEqual(await parents(), before);
});

test('a node in between that alone does not reach the owner is left after a while', async (t) => {
  const { a, edges, step, parents, leave } = await spread(t, 1);
  const before = await parents();
  const [parent] = askers(before, 'a');
  const [child] = askers(before, parent as string);
  const between = edges.find(({ id }) => id === parent) as LlhlsNode;
  const { cluster, fedBy } = between;
  leave(between);
  const { forward, connect } = cluster;
  const cut = () => Promise.reject(new UnreachableError('the cable was pulled'));
  cluster.forward = (to, ...rest) => (to.id === a.id ? cut() : forward(to, ...rest));
  cluster.connect = (to, ...rest) => (to.id === a.id ? cut() : connect(to, ...rest));
  fedBy.get(a.id)?.destroy();
  await play(step, 10_000);
  t.deepEqual([...((await parents()).get(child as string) ?? [])], [a.id]);
});

test('all nodes of a tree go on with the next owner', async (t) => {
  const { a, edges, input, urls, parents } = await spread(t, 1);
  await parents();
  const [next] = edges as [LlhlsNode];
  input.close('its publisher left');
  const { output } = await next.goLive([videoTrack(), audioTrack()]);
  const bring = feeder(output);
  bring(6.2);
  const rest = edges.slice(1);
  for (const node of [a, ...rest]) await untilKnown(node, next);
  for (const [at, node] of rest.entries()) {
    const url = urls[at + 1] as string;
    await until(
      `${node.id} goes on`,
      async () => (await node.get(url)).body === (await next.get(urls[0] as string)).body,
    );
  }
  t.regex((await next.get(urls[0] as string)).body, /EXT-X-DISCONTINUITY-SEQUENCE:1/);
});

test('a master playlist comes from the node in between, and from the owner where it limits viewers', async (t) => {
  for (const [setup, least, most] of [
    [{}, 0, 1],
    [{ maxConnection: 100 }, EDGES.length, EDGES.length],
  ] as const) {
    const { edges } = await spread(t, 1, setup);
    for (const edge of edges) edge.callees.length = edge.asked.length = 0;
    for (const edge of edges) t.like(await edge.get(MASTER), { statusCode: 200 });
    const asked = edges.filter(({ asked: calls, callees }) =>
      calls.some((call, at) => call.includes('/master/') && callees[at] === 'a'),
    );
    t.true(asked.length >= least && asked.length <= most, `${asked.length} nodes asked it`);
  }
});

test('an owner that is slow is asked by as few nodes as one that is not', async (t) => {
  const { a, edges, urls, step } = await spread(t, 1);
  const [list = ''] = await step();
  const segments = [...list.matchAll(/^(seg_.*)$/gm)].map(([name]) => name);
  const newest = segments.at(-1) as string;
  for (const edge of edges) edge.callees.length = 0;
  a.slow(3000);
  const answers = await Promise.all(edges.map((edge, at) => edge.get(sibling(urls[at] as string, newest))));
  for (const { statusCode } of answers) t.is(statusCode, 200);
  t.is(edges.filter(({ callees }) => callees.includes('a')).length, 1);
});
