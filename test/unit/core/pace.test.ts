import test from 'ava';
import { Pace } from '../../../src/core/pace.ts';

/** A source whose packets came as fast as they are played, for so many seconds. */
function steady(seconds: number): Pace {
  const pace = new Pace();
  for (let i = 0; i < seconds * 25; i++) pace.note(500 + i / 25, i / 25);
  return pace;
}

test('a packet is early if it is ahead of those before, of a source that was seen to send in time', (t) => {
  t.true(steady(2).isEarly(503.1, 2, 1));
  t.false(steady(2).isEarly(502.9, 2, 1));
  t.false(steady(0.9).isEarly(510, 0.9, 1));
});

test('packets that are sent faster than they are played are not early', (t) => {
  const pace = new Pace();
  for (let i = 0; i < 200; i++) pace.note(i / 25, i / 50);
  t.false(pace.isEarly(20, 4, 1));
});

test('packets that were ahead long ago do not count for the pace', (t) => {
  const pace = steady(40);
  // it stood still for 20 s
  for (let i = 1000; i < 3000; i++) pace.note(500 + i / 25, 20 + i / 25);
  t.true(pace.isEarly(625, 140, 1));
});

test('a stall is not forgotten while what it held back comes', (t) => {
  const pace = steady(40);
  for (let i = 0; i < 1000; i++) pace.note(540 + i / 25, 80 + i / 1000);
  t.false(pace.isEarly(581.5, 81, 1));
});

test('a source goes on as fast from another time', (t) => {
  const pace = steady(2);
  pace.move(90, 2);
  pace.note(90.04, 2.04);
  t.false(pace.isEarly(91, 2.08, 1));
  t.true(pace.isEarly(91.2, 2.08, 1));
  pace.restart();
  t.false(pace.isEarly(600, 2.12, 1));
});
