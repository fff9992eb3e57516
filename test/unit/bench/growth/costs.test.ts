import test from 'ava';
import { costLines, extrapolation, type Size } from '../../../bench/growth/costs.ts';

const size = (count: number, cpu: number, idle = 50): Size => ({
  count,
  cpu,
  loop: cpu + 1,
  loopAtRest: 1,
  p50: 4,
  p99: 9.5,
  use: { idle, threads: {} },
});

test('each size has a line with the cost of a unit, the delay and the idle time', (t) => {
  const [one, ten, fifty] = costLines('streams', 'stream', [size(1, 1.4), size(10, 8), size(50, 40)]);
  t.deepEqual(one, {
    what: 'streams: CPU per stream, 1',
    measured: '1.400 %; delay p50 4.0, p99 9.5 ms',
    reference: '50 % of the machine idle',
  });
  t.is(ten?.reference, '0.57 of that with 1; 50 % of the machine idle');
  t.is(ten?.met, undefined);
  t.is(fifty?.reference, '1.00 of that with 10; 50 % of the machine idle');
  t.true(fifty?.met);
});

test('a unit may cost 15 % more among many than among few, and any less', (t) => {
  const met = (cpu: number) => costLines('viewers', 'viewer', [size(100, 10), size(400, cpu)])[1]?.met;
  t.true(met(20));
  t.true(met(45.9));
  t.false(met(46.1));
});

test('a size that left no CPU is no figure, and none is held against it', (t) => {
  const lines = costLines('streams', 'stream', [size(10, 8), size(50, 90, 1), size(100, 95)]);
  t.deepEqual(lines[1], {
    what: 'streams: CPU per stream, 50',
    measured: 'no figure: no CPU was left',
    reference: '1 % of the machine was idle',
  });
  t.is(lines[2]?.met, undefined);
});

test('the largest size that left some CPU tells how many fill an event loop', (t) => {
  const sizes = [size(10, 10), size(40, 33), size(80, 90, 1)];
  t.deepEqual(extrapolation('streams', 'stream', sizes), {
    what: 'streams: streams that fill one event loop, extrapolated',
    measured: 'about 120',
    reference: '34 % of it with 40',
  });
  const none = 'no figure: no size left any CPU';
  t.is(extrapolation('streams', 'stream', [size(80, 90, 1)]).measured, none);
  t.is(extrapolation('streams', 'stream', [size(1, 1), size(80, 90, 1)]).measured, none);
});
