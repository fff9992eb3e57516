import test, { type ExecutionContext } from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { shared } from '../support/runner/shared.ts';
import { nodesOf, untilStates } from '../support/server/nodes.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { Teardown } from '../support/programs/teardown.ts';
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

const nodes = sharedNodes(['a', 'b', 'c'], { ovt: true });
const teardown = new Teardown();
test.after.always(() => teardown.run());

/** An origin whose stream two nodes pull under many names, and viewers of all on the third, which drains and pulls nothing. */
const playing = shared(async () => {
  const [a, b, c] = nodes();
  const origin = await Origin.start(teardown);
  await origin.publish('src', SECOND);
  await untilStates(c, { a: 'ready', b: 'ready', c: 'ready' });
  await call(c, '/v1/cluster/nodes/c:drain');
  for (const node of [a, b, c]) await untilStates(node, READY);
  const pull = { urls: [origin.url('src')], properties: { relay: true, persistent: true } };
  for (const name of NAMES) await call(a, '/v1/vhosts/default/apps/app/streams', { name, ...pull }, 201);
  const viewers = await Promise.all(NAMES.map((name) => watch(c.ovtUrl(name))));
  await pulledOnce(origin);
  return { origin, viewers };
});

/** A viewer that plays. @throws Error when its stream ends before that */
async function watch(url: string): Promise<OvtViewer> {
  const viewer = await OvtViewer.play(teardown, url);
  await until(`${url} plays`, () => viewer.ended || viewer.arrivals.length >= PLAYS);
  if (viewer.ended) throw new Error(`${url} ended`);
  return viewer;
}

/** Asks again while the store is not available. @throws Error for another status than `wanted` */
async function call(node: Kiln, path: string, body?: object, wanted = 200): Promise<void> {
  const answer = await until('the store is available', async () => {
    const given = await node.api(path, 'POST', body);
    return given.status !== 503 && given;
  });
  if (answer.status !== wanted) throw new Error(JSON.stringify(answer.body));
}

function pulledOnce(origin: Origin): Promise<unknown> {
  return until('each is pulled once', async () => (await origin.pullers('src')) === NAMES.length);
}

/** Drains the first node until the second has all streams. @returns how that went */
const drained = shared(async () => {
  const { origin } = await playing();
  const [, , c] = nodes();
  const begun = performance.now();
  await call(c, '/v1/cluster/nodes/a:drain');
  const took = await takenOver(begun, 'b');
  await pulledOnce(origin);
  await call(c, '/v1/cluster/nodes/a:undrain');
  await untilStates(c, READY);
  return took;
});

/** The node that has all streams, and the one that can take them over. */
async function ownerAndOther() {
  await drained();
  const [a, b, c] = nodes();
  const id = await until('one node has all', async () => {
    const found = await counts(c);
    return (['a', 'b'] as const).find((one) => found[one] === NAMES.length);
  });
  return id === 'a' ? { owner: a, id, other: 'b' } : { owner: b, id, other: 'a' };
}

/** Waits until a node has all streams, and they play for all viewers. Tells how long that took, and the gaps. */
async function takenOver(from: number, by: string): Promise<string> {
  const { viewers } = await playing();
  await until(`${by} has all`, async () => (await counts(nodes()[2]))[by] === NAMES.length);
  const known = performance.now() - from;
  const begun = performance.now();
  for (const [at, viewer] of viewers.entries())
    await until(`${NAMES[at]} plays`, () => {
      if (viewer.ended) throw new Error(`${NAMES[at]} ended`);
      return viewer.since(begun) >= PLAYS;
    });
  const gaps = viewers.map((viewer) => Math.round(viewer.gapSince(from))).sort((a, b) => a - b);
  return `counted there after ${Math.round(known)} ms; gaps: median ${gaps[gaps.length >> 1]} ms, longest ${gaps.at(-1)} ms`;
}

/** No viewer lost its stream, or saw it from two sources. */
async function unharmed(t: ExecutionContext): Promise<void> {
  const { origin, viewers } = await playing();
  await pulledOnce(origin);
  t.deepEqual(
    viewers.filter(({ ended }) => ended),
    [],
  );
  t.deepEqual(
    viewers.map(({ regressions }) => regressions).filter((count) => count > 0),
    [],
    'no two sources in one stream',
  );
}

test.serial('many streams that are pulled go on elsewhere when a node is drained', async (t) => {
  t.log(await drained());
  await unharmed(t);
});

test.serial(
  'many streams that one node pulls go on elsewhere when it is suspended, and stay there when it wakes',
  async (t) => {
    const { owner, id, other } = await ownerAndOther();
    const stopped = performance.now();
    owner.signal('SIGSTOP');
    t.teardown(() => owner.signal('SIGCONT'));
    t.log(await takenOver(stopped, other));
    await until('it stood still for long', () => performance.now() - stopped > STOPPED_MS);
    const woken = performance.now();
    owner.signal('SIGCONT');
    const c = nodes()[2];
    await until(
      'the node that woke has none',
      async () => (await counts(owner))[id] === 0 && (await counts(c))[id] === 0,
    );
    await unharmed(t);
    t.log(`SIGCONT: stepped down, and was heard of, within ${Math.round(performance.now() - woken)} ms`);
    t.is((await counts(c))[other], NAMES.length, 'and who took them keeps them');
    await untilStates(c, READY);
  },
);

test.serial('many streams that one node pulls go on elsewhere when it is killed', async (t) => {
  const { owner, other } = await ownerAndOther();
  const killed = performance.now();
  owner.signal('SIGKILL');
  await owner.exited();
  t.log(await takenOver(killed, other));
  await unharmed(t);
});
