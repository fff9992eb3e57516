import test from 'ava';
import { Timetable } from '../../../../src/channels/scheduled/timetable.ts';
import { item, schedule } from '../../../support/channels/virtual-channel.ts';

const T0 = Date.UTC(2026, 2, 28, 22);
const lengthOf = (): number => 10_000;

function brief(timetable: Timetable, at: number): unknown {
  const planned = timetable.at(T0 + at);
  return planned && [planned.item.url, planned.begins - T0];
}

test('the next item begins in place of one that is passed over, and the rest follows that', (t) => {
  const items = [item('a'), item('b'), item('c')];
  const timetable = new Timetable(schedule([{ name: 'p', scheduled: T0, repeat: true, items }]), lengthOf);
  const failed = timetable.at(T0 + 10_000);
  t.is(failed?.item.url, 'b');
  // it is known to fail before it begins
  if (failed !== undefined) timetable.pass(failed, T0 + 8000);
  t.deepEqual(brief(timetable, 9999), ['a', 0]);
  t.deepEqual(brief(timetable, 10_000), ['c', 10_000]);
  t.deepEqual(brief(timetable, 20_000), ['a', 20_000]);
  t.deepEqual(brief(timetable, 30_000), ['b', 30_000]);
  const again = timetable.at(T0 + 33_000);
  if (again !== undefined) timetable.pass(again, T0 + 33_000.4);
  t.deepEqual(brief(timetable, 33_001), ['c', 33_001]);
  t.is(timetable.definition(timetable.at(T0 + 40_000)?.program ?? ({} as never)).scheduled, T0);
});

test('nothing follows the last item of a program that does not repeat, and the next program begins when it is scheduled', (t) => {
  const programs = [
    { name: 'p', scheduled: T0, repeat: false, items: [item('a')] },
    { name: 'q', scheduled: T0 + 8000, repeat: false, items: [item('b')] },
  ];
  const timetable = new Timetable(schedule(programs), lengthOf);
  const failed = timetable.at(T0);
  if (failed !== undefined) timetable.pass(failed, T0 + 10);
  t.is(brief(timetable, 5000), undefined);
  t.is(timetable.after(T0 + 5000), T0 + 8000);
  t.deepEqual(brief(timetable, 8000), ['b', 8000]);
});

test('the fallback program begins with its first item each time', (t) => {
  const timetable = new Timetable(schedule([], [item('f'), item('g')]), lengthOf);
  t.is(timetable.fallbackAt(T0 + 3000)?.begins, T0 + 3000);
  t.is(timetable.fallbackAt(T0 + 13_000)?.item.url, 'g');
  t.is(timetable.fallbackAt(T0 + 23_000)?.item.url, 'f');
  timetable.endFallback();
  t.is(timetable.fallbackAt(T0 + 34_000)?.begins, T0 + 34_000);
  t.is(new Timetable(schedule([]), lengthOf).fallbackAt(T0), undefined);
});
