import test from 'ava';
import { Rejections } from '../../../../cluster/rejections.ts';
import { ClockWatch } from '../../../../cluster/redis/clock-watch.ts';
import type { Connection } from '../../../../cluster/redis/connection.ts';
import type { KnownPeers } from '../../../../cluster/redis/known-peers.ts';
import { Nodes } from '../../../../cluster/redis/nodes.ts';
import { Signatures } from '../../../../cluster/redis/signatures.ts';
import { timingOf } from '../../../../cluster/redis/timing.ts';

const signatures = new Signatures('test', ['secret']);
const ROW = signatures.signRow('b', '2', JSON.stringify({ load: 0, full: false, info: {} }));

test('the answer to a beat that is older than the death of a node does not bring it back', async (t) => {
  const answers: ((reply: unknown) => void)[] = [];
  const nodes = new Nodes({
    self: { id: 'a', incarnation: '1' },
    connection: { run: () => new Promise((resolve) => answers.push(resolve)) } as unknown as Connection,
    timing: timingOf(undefined),
    known: { keep: () => {} } as unknown as KnownPeers,
    clock: new ClockWatch(() => {}),
    signatures,
    rejections: new Rejections(({ reason }) => t.fail(reason)),
    onFault: (error) => t.fail(error.message),
  });
  const send = () => nodes.beat({ copy: { epoch: 0, revision: 0 }, highest: 0, reported: undefined });
  const answer = (fate = '') => {
    const row = ['b', 0, 0, `2 0 ${ROW}`, fate];
    answers.shift()?.(['present', String(Date.now()), '1', 1, 0, '0', '0', [row], '', '', []]);
  };
  const states = () => nodes.rows().map(({ state }) => state);
  const dead = { id: 'b', incarnation: '2' };

  const first = send();
  answer();
  await first;
  t.deepEqual(states(), ['ready']);

  const older = send();
  t.true(nodes.markDead(dead));
  t.deepEqual(states(), ['lost']);
  answer();
  await older;
  t.deepEqual(states(), ['lost']);
  t.false(nodes.markDead(dead), 'it is reported once');

  // it lives, and has joined again
  const newer = send();
  answer();
  await newer;
  t.deepEqual(states(), ['ready']);

  // a beat may tell of a death before its message comes
  const last = send();
  answer('gone');
  await last;
  t.deepEqual(states(), ['lost']);
  t.true(nodes.markDead(dead));
  t.false(nodes.markDead(dead), 'it is reported once');
});
