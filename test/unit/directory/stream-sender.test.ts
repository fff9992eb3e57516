import test, { type ExecutionContext } from 'ava';
import { weighing, type NodeRow } from '#cluster';
import { RelayTree } from '../../../src/directory/relay-tree.ts';
import { StreamSender } from '../../../src/directory/stream-sender.ts';
import { nodeRow as row } from '../../support/cluster/node-row.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const STREAM = 'a stream';
/** With a fan-out of 1 each of these is the parent of the next. */
const RANKED = Array.from({ length: 8 }, (_, i) => `node-${i}`).sort((a, b) => {
  const weigh = weighing(STREAM);
  return weigh(a) - weigh(b);
});
const nodes = RANKED.map((id) => row(id));
const [first, second, third, fourth, fifth] = nodes as [NodeRow, NodeRow, NodeRow, NodeRow, NodeRow];
const owner = row('owner');
const another = row('another');

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The choice of the sixth node, in a cluster that may change. */
function open(t: ExecutionContext, self: NodeRow = nodes[5] as NodeRow) {
  virtualTime(t);
  const rows = [owner, another, ...nodes];
  const hidden = new Set<NodeRow>();
  const tree = new RelayTree({ self, nodes: () => rows.filter((one) => one !== another && !hidden.has(one)) }, 1);
  const sender = new StreamSender(tree, STREAM, owner);
  const next = (): string => `${sender.next.role} ${sender.next.node.id}`;
  /** Brings the stream from the parent that the tree prefers. */
  const fromParent = (): void => {
    sender.refused(owner, 'full');
    sender.sends(sender.next.node);
  };
  return { tree, sender, next, hidden, fromParent };
}

test.serial('the owner is asked first, and sends the stream as long as it has room', (t) => {
  const { sender, next } = open(t);
  t.is(next(), 'owner owner');
  sender.sends(owner);
  t.is(next(), 'owner owner');
  t.is(sender.parent, undefined);
});

test.serial('the nearest parent of a full owner is asked', (t) => {
  const { sender, next } = open(t);
  t.true(sender.refused(owner, 'full'));
  t.is(next(), `parent ${fifth.id}`);
  t.is(sender.parent, undefined, 'it sends nothing yet');
  sender.sends(fifth);
  t.is(sender.parent?.id, fifth.id);
});

test.serial('an owner that is full while it sends the stream is left for a parent', (t) => {
  const { sender, next } = open(t);
  sender.sends(owner);
  t.true(sender.refused(owner, 'full'));
  t.is(next(), `parent ${fifth.id}`);
});

test.serial('the owner sends a stream that three parents have refused, and is not asked for room again', (t) => {
  for (const isPresent of [false, true]) {
    const { sender, next } = open(t);
    if (isPresent) sender.sends(owner);
    sender.refused(owner, 'full');
    for (const [at, parent] of [fifth, fourth, third].entries()) {
      t.is(next(), `parent ${parent.id}`);
      t.is(sender.refused(parent, 'failed'), at < 2 || !isPresent);
    }
    t.is(next(), 'forced owner owner');
    sender.sends(owner);
    t.false(sender.refused(owner, 'full'));
    t.is(next(), 'forced owner owner');
  }
});

test.serial('a node without a parent gets the stream from the owner', (t) => {
  const { sender, next } = open(t, first);
  t.true(sender.refused(owner, 'full'));
  t.is(next(), 'forced owner owner');
});

test.serial('an owner of an older version is asked as its version knows', (t) => {
  const { sender, next } = open(t);
  t.true(sender.refused(owner, 'unknown'));
  t.is(next(), 'forced owner owner');
  t.false(sender.refused(owner, 'failed'));
});

test.serial('no other node is asked instead of an owner that does not answer, or is unreachable', (t) => {
  for (const why of ['failed', 'unreachable'] as const) {
    const { sender, next } = open(t);
    t.false(sender.refused(owner, why));
    t.is(next(), 'owner owner');
  }
});

test.serial('the owner is asked first when a parent is lost, and that parent not for some seconds', async (t) => {
  const { sender, next, fromParent } = open(t);
  fromParent();
  t.true(sender.refused(fifth, 'failed'));
  t.is(next(), 'owner owner');
  t.is(sender.parent, undefined);
  sender.refused(owner, 'full');
  t.is(next(), `parent ${fourth.id}`);
  await after(6000);
  sender.begin();
  sender.refused(owner, 'full');
  t.is(next(), `parent ${fifth.id}`);
});

test.serial('an unreachable node is asked for no stream, one that refuses is asked for others', (t) => {
  for (const [why, asked] of [
    ['unreachable', fourth],
    ['failed', fifth],
    ['full', fifth],
    ['unknown', fifth],
  ] as const) {
    const { tree, sender } = open(t);
    sender.refused(owner, 'full');
    t.true(sender.refused(fifth, why));
    t.is(sender.next.node.id, fourth.id);
    const other = new StreamSender(tree, STREAM, owner);
    other.refused(owner, 'full');
    t.is(other.next.node.id, asked.id, why);
  }
});

test.serial('requests to a parent are given up when it is left', (t) => {
  const { sender, fromParent } = open(t);
  for (const leave of [() => sender.refused(fifth, 'failed'), () => sender.begin()]) {
    sender.begin();
    fromParent();
    const { left } = sender;
    t.false(left.aborted);
    leave();
    t.true(left.aborted);
    t.false(sender.left.aborted);
  }
});

test.serial('reports of nodes that are not asked any more change nothing', (t) => {
  const { sender, next, fromParent } = open(t);
  fromParent();
  t.false(sender.refused(owner, 'full'));
  t.false(sender.refused(second, 'failed'));
  sender.sends(owner);
  t.is(next(), `parent ${fifth.id}`);
  t.is(sender.parent?.id, fifth.id);
});

test.serial('a node follows another owner: at once without a parent, with one by that', (t) => {
  const { sender, next, fromParent } = open(t);
  t.false(sender.moved(owner));
  sender.sends(owner);
  t.true(sender.moved(another));
  t.is(next(), 'owner another');
  sender.moved(owner);
  fromParent();
  t.false(sender.moved(another));
  t.is(next(), `parent ${fifth.id}`);
  t.is(sender.owner.id, 'another');
});

test.serial('a request to a parent goes on, whichever node is the owner', (t) => {
  const { sender, next } = open(t);
  sender.refused(owner, 'full');
  t.false(sender.moved(another));
  t.is(next(), `parent ${fifth.id}`);
});

test.serial('a parent that becomes the owner is asked as such', (t) => {
  const { sender, next, fromParent } = open(t);
  fromParent();
  t.true(sender.moved(fifth));
  t.is(next(), `owner ${fifth.id}`);
});

test.serial('a node that becomes the owner gets the stream from itself', (t) => {
  const { tree, sender, next, fromParent } = open(t);
  fromParent();
  t.true(sender.moved(tree.self));
  t.is(next(), `forced owner ${tree.self.id}`);
  t.false(sender.look());
});

test.serial('a parent that waits for the owner itself is left after three seconds of that', async (t) => {
  const { sender, next, fromParent } = open(t);
  fromParent();
  t.false(sender.refused(fifth, 'waiting'));
  await after(2500);
  t.false(sender.refused(fifth, 'waiting'));
  sender.sends(fifth);
  await after(2500);
  t.false(sender.refused(fifth, 'waiting'), 'it has sent something meanwhile');
  t.is(next(), `parent ${fifth.id}`);
  await after(3500);
  t.true(sender.refused(fifth, 'waiting'));
  t.is(next(), 'owner owner');
});

test.serial('a better node is looked for after half a minute, then less and less often', (t) => {
  const { sender } = open(t);
  const within = (seconds: number): void => {
    const { lookInMs } = sender;
    t.true(lookInMs >= 0.74 * seconds * 1000 && lookInMs <= 1.26 * seconds * 1000, `${lookInMs} ms, not ${seconds} s`);
  };
  within(30);
  for (const seconds of [60, 120, 240, 240]) {
    sender.look();
    within(seconds);
  }
  sender.begin();
  within(30);
});

test.serial('a node that is in its place asks no other', (t) => {
  const { sender, next, fromParent } = open(t);
  fromParent();
  t.false(sender.look());
  t.is(next(), `parent ${fifth.id}`);
  const { sender: near, next: nearest } = open(t, first);
  near.sends(owner);
  t.false(near.look());
  t.is(nearest(), 'owner owner');
});

test.serial('a node that gets the stream from the owner asks whether it has room', (t) => {
  for (const isForced of [false, true]) {
    const { sender, next } = open(t);
    if (isForced) sender.refused(owner, 'unknown');
    sender.sends(owner);
    t.true(sender.look());
    t.is(next(), 'owner owner');
    sender.sends(owner);
    t.is(next(), 'owner owner', 'it has');
    sender.look();
    t.true(sender.refused(owner, 'full'));
    t.is(next(), `parent ${fifth.id}`);
  }
});

test.serial('a node goes to a better parent, or stays where it is when those in front refuse', async (t) => {
  const { sender, next, hidden } = open(t);
  hidden.add(fifth).add(fourth);
  sender.refused(owner, 'full');
  sender.sends(third);
  hidden.clear();
  t.true(sender.look());
  t.is(next(), `parent ${fifth.id}`);
  t.is(sender.parent?.id, third.id, 'which sends it meanwhile');
  t.true(sender.refused(fifth, 'failed'));
  t.is(next(), `parent ${fourth.id}`);
  t.false(sender.refused(fourth, 'failed'));
  t.is(next(), `parent ${third.id}`);
  await after(6000);
  t.true(sender.look());
  sender.sends(fifth);
  t.is(sender.parent?.id, fifth.id);
});

test.serial('a node stays with its parent when three better ones refuse', (t) => {
  const { sender, next, hidden } = open(t);
  for (const one of [fifth, fourth, third, second]) hidden.add(one);
  sender.refused(owner, 'full');
  sender.sends(first);
  hidden.clear();
  sender.look();
  for (const one of [fifth, fourth, third]) {
    t.is(next(), `parent ${one.id}`);
    sender.refused(one, 'failed');
  }
  t.is(next(), `parent ${first.id}`);
  t.is(sender.parent?.id, first.id);
});

test.serial('a parent that is lost while a better one is asked for is left for the owner', (t) => {
  const { sender, next, hidden } = open(t);
  hidden.add(fifth);
  sender.refused(owner, 'full');
  sender.sends(fourth);
  hidden.clear();
  sender.look();
  t.true(sender.refused(fourth, 'failed'));
  t.is(next(), 'owner owner');
});

test.serial('a node whose place is at the owner asks that, and stays where it is if the owner cannot', (t) => {
  for (const why of ['full', 'unknown', 'failed', 'unreachable'] as const) {
    const { sender, next, hidden, fromParent } = open(t);
    fromParent();
    for (const one of nodes.slice(0, 5)) hidden.add(one);
    t.true(sender.look());
    t.is(next(), 'owner owner');
    t.false(sender.refused(owner, why), why);
    t.is(next(), `parent ${fifth.id}`);
    sender.look();
    sender.sends(owner);
    t.is(sender.parent, undefined);
  }
});

test.serial('a new owner ends the search for a better node', (t) => {
  const { sender, next, hidden, fromParent } = open(t);
  fromParent();
  for (const one of nodes.slice(0, 5)) hidden.add(one);
  sender.look();
  t.false(sender.moved(another));
  t.is(next(), `parent ${fifth.id}`);
});
