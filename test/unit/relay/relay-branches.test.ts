import test, { type ExecutionContext } from 'ava';
import { joinKey, weighing } from '#cluster';
import type { Packet } from '../../../src/core/packet.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { goLive, VIDEO } from '../../support/server/live.ts';
import { Recorder } from '../../support/ovt/ovt.ts';
import { RelayNodes, type RelayNode } from '../../support/ovt/relay-nodes.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { seeded } from '../codecs/vectors.ts';

const FRAME = 3000;
const GOP = 30;

/** Ids in the order in which nodes are asked for the stream: with a fan-out of 1 each is the parent of the next. */
const RANKED = Array.from({ length: 24 }, (_, i) => `node-${i}`).sort((a, b) => {
  const weigh = weighing(joinKey('default', 'app', 'talk'));
  return weigh(a) - weigh(b);
});

class Live {
  readonly output: OutputStream;
  #frame: number;

  constructor({ registry, application }: RelayNode, frame = 0, track: Track = VIDEO) {
    this.output = goLive(registry, 'app', 'talk', [track]);
    application.announce(this.output);
    this.#frame = frame;
  }

  /** Number of the frame that comes next. */
  get next(): number {
    return this.#frame;
  }

  send(count: number): void {
    for (let i = 0; i < count; i++) {
      const [track] = this.output.tracks as [Track];
      const dts = this.#frame * FRAME;
      const data = Buffer.from([this.#frame >> 8, this.#frame & 255]);
      this.output.write({ track, dts, pts: dts, duration: FRAME, key: this.#frame % GOP === 0, data });
      this.#frame++;
    }
  }
}

/** What a viewer of a node gets, from the beginning of its relay on. */
interface Viewing {
  readonly output: OutputStream;
  readonly packets: readonly Packet[];
  /** Numbers of the frames. */
  readonly frames: readonly number[];
  readonly leave: () => void;
}

async function watch({ registry, relays, application }: RelayNode): Promise<Viewing> {
  const packets: Packet[] = [];
  const read = (one: OutputStream) => one.read({ packet: (packet) => packets.push(packet) > 0, close: () => {} });
  const present = application.relays.get('talk');
  if (present === undefined) registry.once('output', read);
  else read(present);
  const output = await relays.find(application, 'talk');
  if (output === undefined) throw new Error('not relayed');
  return {
    output,
    packets,
    get frames() {
      return packets.map(({ data }) => data.readUInt16BE(0));
    },
    leave: output.addRelay(),
  };
}

/** An owner and nodes with a viewer each, of which each gets the stream from the one before. */
async function chain(t: ExecutionContext, length: number) {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const owner = nodes.add('owner');
  const ids = RANKED.slice(0, length);
  const edges = ids.map((id) => nodes.add(id));
  const live = new Live(owner);
  live.send(1);
  const views: Viewing[] = [];
  for (const edge of edges) views.push(await watch(edge));
  // nothing is kept of a stream that was not relayed before: it begins with the next key frame
  live.send(GOP);
  t.deepEqual(nodes.ways, ids.map((id, i) => `${ids[i - 1] ?? 'owner'} to ${id}`).toSorted());
  return { nodes, owner, edges, live, views, last: views.at(-1) as Viewing };
}

const isRun = (frames: readonly number[]): boolean =>
  frames.every((frame, i) => i === 0 || frame === (frames[i - 1] ?? 0) + 1);

test.serial('a relay is relayed, at the times of the owner, and starts with the last key frame', async (t) => {
  const { live, last, views } = await chain(t, 3);
  live.send(40);
  await until('it comes', () => last.frames.at(-1) === live.next - 1);
  t.true(isRun(last.frames));
  t.true(last.packets.every(({ dts, data }) => dts === data.readUInt16BE(0) * FRAME));
  t.deepEqual(
    views.map(({ output }) => output.run?.id),
    views.map(() => views[0]?.output.run?.id),
  );
});

test.serial('an owner sends a stream to so many nodes, whatever their number', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 2);
  const owner = nodes.add('owner');
  const edges = RANKED.slice(0, 14).map((id) => nodes.add(id));
  const live = new Live(owner);
  // the last come first: the first few are taken all the same
  const views: Viewing[] = [];
  for (const edge of edges.toReversed()) views.push(await watch(edge));
  live.send(GOP + 1);
  await until('all have it', () => views.every(({ frames }) => frames.at(-1) === live.next - 1));
  const senders = nodes.ways.map((way) => way.split(' ')[0] ?? '');
  const sent = (id: string): number => senders.filter((sender) => sender === id).length;
  t.true(sent('owner') <= 4, nodes.ways.join(', '));
  for (const { id } of edges) t.true(sent(id) <= 2, nodes.ways.join(', '));
});

test.serial('a node without viewers relays for others, and ends when they have gone', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const owner = nodes.add('owner');
  const [first, second, third] = RANKED.slice(0, 3).map((id) => nodes.add(id)) as [RelayNode, RelayNode, RelayNode];
  const live = new Live(owner);
  const one = await watch(first);
  live.send(GOP / 2);
  const view = await watch(third);
  live.send(1);
  await until('it comes from the last key frame on', () => view.frames.length > GOP / 2);
  t.is(view.frames[0], 0);
  t.true(isRun(view.frames));
  t.is(second.application.relays.size, 1);
  t.true([...second.application.relays.values()].every(({ sessions }) => sessions.size === 0));
  view.leave();
  await until('the relays have ended', () => second.application.relays.size + third.application.relays.size === 0);
  t.false(one.output.closed);
  one.leave();
  await until('nobody has it any more', () => !live.output.watched);
});

test.serial('a parent dies: its child goes on with the next frame from another node', async (t) => {
  const { nodes, live, views, last, edges } = await chain(t, 3);
  live.send(10);
  await until('it comes', () => last.frames.at(-1) === live.next - 1);
  const tracks = last.output.tracks;
  nodes.kill(edges[1]?.id ?? '');
  live.send(5);
  const { id } = edges[2] as RelayNode;
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  live.send(GOP);
  await until('it comes', () => last.frames.at(-1) === live.next - 1);
  t.true(isRun(last.frames), last.frames.join(' '));
  t.true(last.packets.every(({ dts, data }) => dts === data.readUInt16BE(0) * FRAME));
  t.is(last.output.tracks, tracks, 'viewers are told of no other tracks');
  t.true(nodes.ways.includes(`${edges[0]?.id} to ${id}`), nodes.ways.join(', '));
  t.is(views[0]?.output.closed, false);
});

test.serial('a parent stands still: its child gets what has come meanwhile from another node', async (t) => {
  const { nodes, live, last, edges } = await chain(t, 3);
  live.send(4 * GOP);
  await until('it comes', () => last.frames.at(-1) === live.next - 1);
  const [first, second, third] = edges as [RelayNode, RelayNode, RelayNode];
  nodes.stop(second.id);
  live.send(3 * GOP + 5);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  t.true(isRun(last.frames), last.frames.join(' '));
  t.true(nodes.ways.includes(`${first.id} to ${third.id}`), nodes.ways.join(', '));
});

test.serial('a parent that drains, or is lost, is left at once', async (t) => {
  for (const state of ['draining', 'lost'] as const) {
    const { nodes, live, last, edges } = await chain(t, 2);
    nodes.setState(edges[0]?.id ?? '', state);
    await until('another node sends it', () => nodes.ways.includes(`owner to ${edges[1]?.id}`));
    live.send(1);
    await until('it goes on', () => last.frames.at(-1) === live.next - 1);
    t.true(isRun(last.frames));
  }
});

test.serial('a parent that Redis hears nothing of is kept as long as it sends', async (t) => {
  const { nodes, live, last, edges } = await chain(t, 2);
  const { length } = nodes.opened;
  nodes.setState(edges[0]?.id ?? '', 'silent');
  live.send(GOP);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  nodes.setState(edges[0]?.id ?? '', 'ready');
  live.send(GOP);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  t.is(nodes.opened.length, length, 'nobody was asked again');
});

test.serial('a parent that gets nothing itself is left by its children', async (t) => {
  const { nodes, live, last, edges } = await chain(t, 2);
  const [first, second] = edges as [RelayNode, RelayNode];
  nodes.apart.add(`${first.id} owner`);
  const since = performance.now();
  nodes.opened.find(({ from, to }) => from === first.id && to === 'owner')?.end();
  await until('the owner sends it', () => nodes.ways.includes(`owner to ${second.id}`));
  t.true(performance.now() - since < 10_000);
  live.send(1);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  t.true(isRun(last.frames));
});

test.serial('a parent that had nothing to send while the stream had no owner is asked as before', async (t) => {
  const { nodes, live, views, last, edges } = await chain(t, 2);
  live.output.input.close('the publisher went');
  const since = performance.now();
  await until('the child has given up', () => performance.now() - since > 4000);
  const next = new Live(nodes.add('another'), 10 * GOP);
  await until('it is relayed', () => next.output.watched);
  next.send(GOP);
  await until('all go on', () => views.every(({ frames }) => frames.at(-1) === next.next - 1));
  t.false(last.output.closed);
  t.true(nodes.ways.includes(`${edges[0]?.id} to ${edges[1]?.id}`), nodes.ways.join(', '));
});

test.serial('nodes that cannot pass it on are left out, and then the owner sends it in any case', async (t) => {
  virtualTime(t);
  for (const fault of ['dead', 'old'] as const) {
    const nodes = new RelayNodes(t, 1);
    const live = new Live(nodes.add('owner'));
    const edges = RANKED.slice(0, 4).map((id) => nodes.add(id));
    await watch(edges[0] as RelayNode);
    for (const { id } of edges.slice(0, 3)) nodes[fault].add(id);
    const view = await watch(edges[3] as RelayNode);
    live.send(1);
    await until('it comes', () => view.frames.length > 0);
    const { id } = edges[3] as RelayNode;
    const asked = nodes.opened.filter(({ from }) => from === id).map(({ to, prefix }) => `${to}${prefix}`);
    t.is(asked.at(-1), 'owner/relay/');
  }
});

test.serial('a relay that came by way of a fault goes to its place later, unnoticed', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const owner = nodes.add('owner');
  const live = new Live(owner);
  const edges = RANKED.slice(0, 3).map((id) => nodes.add(id)) as [RelayNode, RelayNode, RelayNode];
  const [first, second, third] = edges;
  for (const edge of [first, second]) await watch(edge);
  for (const { id } of [first, second]) nodes.dead.add(id);
  const view = await watch(third);
  t.true(nodes.ways.includes(`owner to ${third.id}`), nodes.ways.join(', '));
  t.deepEqual(owner.fed.counts, { branch: 1, relay: 1 });
  live.send(GOP + 10);
  await until('it comes', () => view.frames.at(-1) === live.next - 1);
  let interruptions = 0;
  const { tracks } = view.output;
  Object.defineProperty(view.output, 'interrupted', {
    get: () => false,
    set: () => {
      interruptions++;
    },
  });
  nodes.dead.clear();
  const ways = edges.map(({ id }, i) => `${edges[i - 1]?.id ?? 'owner'} to ${id}`).toSorted();
  await until('its parent sends it', () => nodes.ways.join() === ways.join());
  live.send(GOP);
  await until('it goes on', () => view.frames.at(-1) === live.next - 1);
  t.true(isRun(view.frames), view.frames.join(' '));
  t.is(interruptions, 0);
  t.is(view.output.tracks, tracks);
  await until('the owner sends it to one node', () => owner.fed.counts.relay === 0);
  t.deepEqual(
    [owner.fed.counts, second.fed.counts].map(({ branch }) => branch),
    [1, 1],
  );
});

test.serial('a relay for which there was room goes to its place when there is none any more', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const live = new Live(nodes.add('owner'));
  const [first, second] = RANKED.slice(0, 2).map((id) => nodes.add(id)) as [RelayNode, RelayNode];
  const view = await watch(second);
  live.send(GOP + 10);
  await until('it comes', () => view.frames.at(-1) === live.next - 1);
  const asked = () => nodes.opened.filter(({ from, to }) => from === second.id && to === 'owner').length;
  await until('it has asked again', () => asked() > 1);
  await until('there is room', () => nodes.ways.join() === `owner to ${second.id}`);
  await watch(first);
  const ways = [`owner to ${first.id}`, `${first.id} to ${second.id}`].toSorted();
  await until('its parent sends it', () => nodes.ways.join() === ways.join(), 600_000);
  live.send(GOP);
  await until('it goes on', () => view.frames.at(-1) === live.next - 1);
  t.true(isRun(view.frames), view.frames.join(' '));
});

test.serial('three nodes in between are asked, and then the owner sends it', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const live = new Live(nodes.add('owner'));
  const edges = RANKED.slice(0, 6).map((id) => nodes.add(id));
  await watch(edges[0] as RelayNode);
  for (const { id } of edges.slice(0, 5)) nodes.dead.add(id);
  const last = edges[5] as RelayNode;
  const view = await watch(last);
  live.send(1);
  await until('it comes', () => view.frames.length > 0);
  t.deepEqual(
    nodes.asked.filter(({ from }) => from === last.id).map(({ to, prefix }) => to + prefix),
    ['owner/branch/', ...[4, 3, 2].map((at) => `${RANKED[at]}/branch/`), 'owner/relay/'],
  );
});

test.serial(
  'a node that cannot be connected to is passed over for other streams, too, one that refuses is not',
  async (t) => {
    virtualTime(t);
    for (const [fault, asked] of [
      ['dead', 0],
      ['old', 1],
    ] as const) {
      const nodes = new RelayNodes(t, 1);
      const owner = nodes.add('owner');
      new Live(owner);
      const more = goLive(owner.registry, 'app', 'more', [VIDEO]);
      owner.application.announce(more);
      const weigh = weighing(joinKey('default', 'app', 'more'));
      // a pair that has the same order for both streams
      const pair = RANKED.slice(1).find((id) => weigh(RANKED[0] as string) < weigh(id)) as string;
      const [parent, child] = [RANKED[0] as string, pair].map((id) => nodes.add(id)) as [RelayNode, RelayNode];
      for (const name of ['talk', 'more']) (await parent.relays.find(parent.application, name))?.addRelay();
      nodes[fault].add(parent.id);
      await child.relays.find(child.application, 'talk');
      const before = nodes.asked.length;
      await child.relays.find(child.application, 'more');
      t.is(nodes.asked.slice(before).filter(({ to }) => to === parent.id).length, asked, fault);
    }
  },
);

test.serial('a relay that is in its place asks no node again', async (t) => {
  const { nodes, live, last } = await chain(t, 3);
  const { length } = nodes.asked;
  const since = performance.now();
  await until('it was time to look', () => performance.now() - since > 90_000, 200_000);
  live.send(GOP);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  t.is(nodes.asked.length, length);
});

test.serial('a relay whose place is at the owner goes there', async (t) => {
  const { nodes, live, last, edges } = await chain(t, 2);
  const [first, second] = edges as [RelayNode, RelayNode];
  nodes.rows = (rows) => rows.filter(({ id }) => id !== first.id);
  await until('the owner sends it', () => nodes.ways.includes(`owner to ${second.id}`), 120_000);
  live.send(GOP);
  await until('it goes on', () => last.frames.at(-1) === live.next - 1);
  t.true(isRun(last.frames), last.frames.join(' '));
  t.deepEqual(nodes.ways, ['owner to ' + first.id, 'owner to ' + second.id].toSorted());
});

test.serial('a relay goes from a node in between to a better one, and the owner is not asked', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const live = new Live(nodes.add('owner'));
  const [first, second, third] = RANKED.slice(0, 3).map((id) => nodes.add(id)) as [RelayNode, RelayNode, RelayNode];
  await watch(first);
  await watch(second);
  nodes.dead.add(second.id);
  const view = await watch(third);
  t.true(nodes.ways.includes(`${first.id} to ${third.id}`), nodes.ways.join(', '));
  nodes.dead.clear();
  live.send(GOP + 10);
  await until('it comes', () => view.frames.at(-1) === live.next - 1);
  const { length } = nodes.asked;
  await until('its parent sends it', () => nodes.ways.includes(`${second.id} to ${third.id}`), 120_000);
  live.send(GOP);
  await until('it goes on', () => view.frames.at(-1) === live.next - 1);
  t.true(isRun(view.frames), view.frames.join(' '));
  t.deepEqual(
    nodes.asked.slice(length).map(({ from, to }) => `${from} asks ${to}`),
    [`${third.id} asks ${second.id}`],
  );
});

test.serial('an owner of an older version sends it as ever', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t, 1);
  const live = new Live(nodes.add('owner'));
  nodes.old.add('owner');
  const edges = RANKED.slice(0, 3).map((id) => nodes.add(id));
  const views: Viewing[] = [];
  for (const edge of edges) views.push(await watch(edge));
  live.send(1);
  await until('it comes', () => views.every(({ frames }) => frames.length > 0));
  t.deepEqual(nodes.ways, edges.map(({ id }) => `owner to ${id}`).toSorted());
});

test.serial('a publisher that comes back elsewhere is followed on every level', async (t) => {
  const { nodes, live, views, last } = await chain(t, 3);
  live.send(10);
  await until('it comes', () => last.frames.at(-1) === live.next - 1);
  const before = last.packets.at(-1)?.dts ?? 0;
  live.output.input.close('the publisher went');
  const next = new Live(nodes.add('another'), 10 * GOP);
  await until('it is relayed', () => next.output.watched);
  next.send(GOP);
  await until('all go on', () => views.every(({ frames }) => frames.at(-1) === next.next - 1));
  for (const { packets } of views) t.true(packets.every(({ dts }, i) => i === 0 || dts > (packets[i - 1]?.dts ?? 0)));
  t.true((last.packets.at(-1)?.dts ?? 0) - before < 90_000 * 30, 'times go on, and do not jump');
  t.is(new Set(views.map(({ output }) => output.run?.id)).size, 1);
  // and in that run a parent is replaced as before
  const { to = '' } = nodes.opened.findLast(({ from }) => from === RANKED[2]) ?? {};
  const { length } = last.packets;
  nodes.kill(to);
  next.send(5);
  await until('it goes on', () => last.frames.at(-1) === next.next - 1);
  const since = last.packets.slice(length - 1);
  t.true(
    since.every(({ dts }, i) => i === 0 || dts === (since[i - 1]?.dts ?? 0) + FRAME),
    'exactly',
  );
});

test.serial('a publisher that comes to a node that relays for others is played from there', async (t) => {
  const { nodes, live, views, edges } = await chain(t, 3);
  live.output.input.close('the publisher went');
  const next = new Live(edges[1] as RelayNode, 10 * GOP);
  await until('it is relayed', () => next.output.watched);
  next.send(GOP);
  await until('all go on', () => views.every(({ frames }) => frames.at(-1) === next.next - 1));
  t.true(
    views.every(({ output }) => !output.closed),
    nodes.ways.join(', '),
  );
});

test.serial('a stream that ends for good ends on every level', async (t) => {
  const { live, views } = await chain(t, 3);
  const since = performance.now();
  live.output.input.end('deleted');
  await until('all have ended', () => views.every(({ output }) => output.closed));
  t.true(performance.now() - since < 5000);
});

test.serial('a stream that no node continues ends on every level in time', async (t) => {
  const { live, views } = await chain(t, 3);
  const since = performance.now();
  live.output.input.close('the publisher went');
  await until('all have ended', () => views.every(({ output }) => output.closed), 60_000);
  t.true(performance.now() - since < 40_000);
});

test.serial('tracks that change between the answers to describe and play are announced', async (t) => {
  virtualTime(t);
  const nodes = new RelayNodes(t);
  const live = new Live(nodes.add('owner'));
  nodes.add('edge');
  const client = await nodes.dial('edge', 'owner', '/relay/');
  t.teardown(() => client.close());
  live.output.setTracks([{ ...VIDEO, width: 640 } as Track]);
  const recorder = new Recorder();
  await client.play(recorder);
  await until('they are told', () => {
    const [track] = recorder.told.at(-1)?.tracks ?? [];
    return track?.type === 'video' && track.width === 640;
  });
  t.is(recorder.told.length, 2);
});

test.serial('new tracks are announced on every level', async (t) => {
  const { live, views } = await chain(t, 3);
  live.output.setTracks([{ ...VIDEO, width: 640 } as Track]);
  live.send(GOP);
  await until('all are told', () =>
    views.every(({ output: { tracks } }) => tracks[0]?.type === 'video' && tracks[0].width === 640),
  );
  await until('all go on', () => views.every(({ frames }) => frames.at(-1) === live.next - 1));
});

test.serial('a node that takes another one for the owner gets nothing from behind itself', async (t) => {
  const { nodes, edges, live } = await chain(t, 3);
  const [first, , third] = edges as [RelayNode, RelayNode, RelayNode];
  // for a relay that is in front of the one that is asked, whatever it takes that for
  const found = await nodes.ask(first.id, third.id, '/branch/');
  t.is(found, 404);
  t.is(await nodes.ask(third.id, first.id, '/branch/'), 200);
  t.is(await nodes.ask(third.id, first.id, '/relay/'), 404);
  t.is(await nodes.ask(third.id, 'owner', '/branch/'), 503);
  t.is(await nodes.ask(first.id, 'owner', '/branch/'), 200, 'it gets it already');
  live.send(1);
});

test.serial('a node that relays a stream to twice as many nodes as it should sends others on', async (t) => {
  const { nodes, edges, live } = await chain(t, 2);
  const [first] = edges as [RelayNode];
  const [third, fourth, fifth] = RANKED.slice(2, 5).map((id) => nodes.add(id)) as [RelayNode, RelayNode, RelayNode];
  const client = await nodes.dial(third.id, first.id, '/branch/');
  t.is(await nodes.ask(fourth.id, first.id, '/branch/'), 503);
  const view = await watch(fifth);
  live.send(GOP);
  await until('it comes', () => view.frames.at(-1) === live.next - 1);
  t.false(
    nodes.opened.some(({ prefix }) => prefix === '/relay/'),
    'the owner need not send it',
  );
  client.close();
  await until('there is room', async () => (await nodes.ask(fourth.id, first.id, '/branch/')) === 200);
});

test.serial('nodes that see each other differently all get the stream, without a loop', async (t) => {
  virtualTime(t);
  for (let seed = 1; seed <= 5; seed++) {
    const random = seeded(seed);
    const nodes = new RelayNodes(t, 2);
    const live = new Live(nodes.add('owner'));
    const edges = RANKED.map((id) => nodes.add(id));
    const hidden = new Set(
      edges.flatMap(({ id }) => RANKED.filter(() => random() < 0.3).map((other) => `${id} ${other}`)),
    );
    nodes.rows = (rows, id) => rows.filter((row) => !hidden.has(`${id} ${row.id}`));
    const views = await Promise.all(edges.map((edge) => watch(edge)));
    live.send(GOP + 1);
    await until('all have it', () => views.every(({ frames }) => frames.at(-1) === live.next - 1));
    const parents = new Map(nodes.ways.map((way) => way.split(' to ').toReversed() as [string, string]));
    for (const { id } of edges) {
      const way = [id];
      for (let at = parents.get(id); at !== undefined && way.length <= edges.length; at = parents.get(at)) way.push(at);
      t.is(way.at(-1), 'owner', way.join(' from '));
    }
    t.true([...parents.values()].filter((id) => id === 'owner').length <= 8, nodes.ways.join(', '));
  }
});
