import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { until } from '../support/time/until.ts';

const NAMES = Array.from({ length: 20 }, (_, n) => `p${n}`);
const STOPPED_MS = 20_000;
/** Frames. */
const SECOND = 25;
/** Packets after which a stream plays again, and not only what was left of it. */
const PLAYS = 25;
const READY = { a: 'ready', b: 'ready', c: 'draining' };

/** How many streams each node that lives has of its own, as one of them knows it. */
async function counts(node: Kiln): Promise<Record<string, number>> {
  return Object.fromEntries(
    [...(await nodesOf(node))].map(([id, { state, streams }]) => [id, state === 'lost' ? 0 : streams]),
  );
}

/** Waits until one node has all streams, and they play for all viewers. Tells how long that took, and the gaps. */
async function takenOver(from: number, watcher: Kiln, owner: string, viewers: readonly OvtViewer[]): Promise<string> {
  await until(`${owner} has all`, async () => (await counts(watcher))[owner] === NAMES.length);
  const known = performance.now() - from;
  const begun = performance.now();
  await until('all play', () => viewers.every((viewer) => viewer.since(begun) >= PLAYS));
  const gaps = viewers.map((viewer) => Math.round(viewer.gapSince(from))).sort((a, b) => a - b);
  return `counted there after ${Math.round(known)} ms; gaps: median ${gaps[gaps.length >> 1]} ms, longest ${gaps.at(-1)} ms`;
}

test('the pulled streams of a node with many go on elsewhere when it is drained, is suspended and wakes, or is killed', async (t) => {
  t.timeout(600_000);
  const origin = await Origin.start(t);
  await origin.publish('src', SECOND);
  const redis = await usedRedis(t);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, { ovt: true })))) as [
    Kiln,
    Kiln,
    Kiln,
  ];
  // viewers are on a node that pulls nothing
  await untilStates(c, { a: 'ready', b: 'ready', c: 'ready' });
  t.is((await c.api('/v1/cluster/nodes/c:drain', 'POST')).status, 200);
  for (const node of [a, b, c]) await untilStates(node, READY);
  for (const name of NAMES) {
    const made = await a.api('/v1/vhosts/default/apps/app/streams', 'POST', {
      name,
      urls: [origin.url('src')],
      properties: { relay: true, persistent: true },
    });
    t.is(made.status, 201, JSON.stringify(made.body));
  }
  const viewers = await Promise.all(NAMES.map((name) => OvtViewer.play(t, c.ovtUrl(name))));
  await until('all play', () => viewers.every(({ arrivals }) => arrivals.length >= PLAYS));
  const pulledOnce = (): Promise<unknown> =>
    until('each is pulled once', async () => (await origin.pullers('src')) === NAMES.length);
  await pulledOnce();

  const drained = performance.now();
  t.is((await c.api('/v1/cluster/nodes/a:drain', 'POST')).status, 200);
  t.log(`drain: ${await takenOver(drained, c, 'b', viewers)}`);
  await pulledOnce();
  t.is((await c.api('/v1/cluster/nodes/a:undrain', 'POST')).status, 200);
  await untilStates(c, READY);

  const stopped = performance.now();
  b.signal('SIGSTOP');
  t.teardown(() => b.signal('SIGCONT'));
  t.log(`SIGSTOP: ${await takenOver(stopped, c, 'a', viewers)}`);
  await until('it stood still for long', () => performance.now() - stopped > STOPPED_MS);
  const woken = performance.now();
  b.signal('SIGCONT');
  await until('who slept has none', async () => (await counts(b)).b === 0 && (await counts(c)).b === 0);
  await pulledOnce();
  t.log(`SIGCONT: stepped down, and was heard of, within ${Math.round(performance.now() - woken)} ms`);
  t.is((await counts(c)).a, NAMES.length, 'and who took them keeps them');
  await untilStates(c, READY);

  const killed = performance.now();
  a.signal('SIGKILL');
  await a.exited();
  t.log(`SIGKILL: ${await takenOver(killed, c, 'b', viewers)}`);
  await pulledOnce();
  t.deepEqual(
    viewers.filter(({ ended }) => ended),
    [],
  );
  t.deepEqual(
    viewers.map(({ regressions }) => regressions).filter((count) => count > 0),
    [],
    'no two sources in one stream',
  );
});
