import test from 'ava';
import { StepTimer } from '../../../../src/channels/scheduled/step-timer.ts';
import { VirtualClock } from '../../../support/channels/virtual-channel.ts';

function open() {
  const clock = new VirtualClock(0);
  const steps: number[] = [];
  const timer = new StepTimer(clock, () => void steps.push(clock.monotonic()));
  return { clock, steps, timer };
}

test('a step comes at its time, and reports the time since the last one', (t) => {
  const { clock, steps, timer } = open();
  timer.arm(250);
  clock.run(1000);
  t.deepEqual(steps, [250]);
  t.is(timer.begin(1000), 1000);
  t.is(timer.begin(1300), 300);
});

test('a timer that is woken calls one step at once, instead of the one to come', (t) => {
  const { clock, steps, timer } = open();
  timer.arm(250);
  clock.run(100);
  timer.wake();
  timer.wake();
  clock.run(1000);
  t.deepEqual(steps, [100]);
  timer.begin(1100);
  timer.wake();
  clock.run(1);
  t.is(steps.length, 2);
});

test('a step that begins before its time, and a closed timer, cancel the step to come', (t) => {
  const { clock, steps, timer } = open();
  timer.arm(250);
  timer.begin(100);
  clock.run(1000);
  timer.arm(250);
  timer.close();
  clock.run(1000);
  t.deepEqual(steps, []);
});
