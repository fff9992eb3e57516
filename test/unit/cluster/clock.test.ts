import test from 'ava';
import { Rejections } from '../../../cluster/rejections.ts';
import { ClockWatch, type ClockReport } from '../../../cluster/redis/clock-watch.ts';
import type { Connection } from '../../../cluster/redis/connection.ts';
import type { KnownPeers } from '../../../cluster/redis/known-peers.ts';
import { Nodes } from '../../../cluster/redis/nodes.ts';
import { Signatures } from '../../../cluster/redis/signatures.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';

function watch() {
  const reports: ClockReport[] = [];
  return { reports, clock: new ClockWatch((report) => reports.push(report)) };
}

test('a clock that differs by more than half a second is reported once, and once when it is right again', (t) => {
  const { reports, clock } = watch();
  for (const offsetMs of [0, 499, -499]) clock.observe(offsetMs, 2);
  t.deepEqual(reports, []);
  for (const offsetMs of [-810, -790, -800, -600, -500]) clock.observe(offsetMs, 2);
  t.deepEqual(reports, [{ isWrong: true, aheadMs: 800 }]);
  for (const offsetMs of [100, -100, -200, 100]) clock.observe(offsetMs, 2);
  t.deepEqual(reports.slice(1), [{ isWrong: false, aheadMs: 200 }]);
  for (let i = 0; i < 3; i++) clock.observe(3000, 2);
  t.deepEqual(reports.slice(2), [{ isWrong: true, aheadMs: -3000 }]);
});

test('a single comparison that differs says nothing', (t) => {
  const { reports, clock } = watch();
  for (const offsetMs of [2000, 2000, 0, 2000, 2000, 0]) clock.observe(offsetMs, 2);
  t.deepEqual(reports, []);
});

test('a slow answer says less about the clock', (t) => {
  const { reports, clock } = watch();
  for (let i = 0; i < 3; i++) clock.observe(900, 1000);
  t.deepEqual(reports, []);
  for (let i = 0; i < 3; i++) clock.observe(900, 100);
  t.is(reports.length, 1);
  for (let i = 0; i < 3; i++) clock.observe(100, 1000);
  t.is(reports.length, 1);
});

test("each beat compares the node's clock with that of Redis", async (t) => {
  const { reports, clock } = watch();
  let offsetMs = 0;
  const reply = () => ['present', String(Date.now() + offsetMs), '1', 1, 0, '0', '0', [], '', '', []];
  const nodes = new Nodes({
    self: { id: 'a', incarnation: '1' },
    connection: { run: async () => reply() } as unknown as Connection,
    timing: timingOf(undefined),
    known: { keep: () => {} } as unknown as KnownPeers,
    clock,
    signatures: new Signatures('test', ['secret']),
    rejections: new Rejections(({ reason }) => t.fail(reason)),
    onFault: (error) => t.fail(error.message),
  });
  const beats = async () => {
    for (let i = 0; i < 3; i++) await nodes.beat({ copy: { epoch: 0, revision: 0 }, highest: 0, reported: undefined });
  };
  await beats();
  t.deepEqual(reports, []);
  offsetMs = 5000;
  await beats();
  t.like(reports[0], { isWrong: true });
  t.true((reports[0]?.aheadMs ?? 0) < -4000);
  offsetMs = 0;
  await beats();
  t.like(reports[1], { isWrong: false });
});
