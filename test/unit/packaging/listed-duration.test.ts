import test from 'ava';
import { extinf, targetOf, tsExtinf, WholeMilliseconds } from '../../../src/packaging/listed-duration.ts';

/** Frames in a segment, at 30 per second, of streams whose segments are no whole microseconds. */
const FRAMES = [59, 61, 250];

const secondsOf = (line: string) => Number(/^#EXTINF:([\d.]+),$/.exec(line)?.[1]);

test('durations are whole microseconds, and never less than the actual ones', (t) => {
  t.is(extinf(2), '#EXTINF:2.000000,');
  t.is(extinf(0.1 + 0.2), '#EXTINF:0.300000,');
  t.is(extinf(61 / 30), '#EXTINF:2.033334,');
  for (let frames = 1; frames < 1000; frames++) {
    const [listed, actual] = [secondsOf(extinf(frames / 29.97)), frames / 29.97];
    t.true(listed > actual - 1e-8 && listed < actual + 1e-6, `${listed}, ${actual}`);
  }
});

test('sums of whole milliseconds exceed the actual ones by less than one', (t) => {
  for (const frames of FRAMES) {
    const durations = new WholeMilliseconds();
    let listed = 0;
    for (let count = 1; count <= 5000; count++) {
      listed += Math.round(secondsOf(tsExtinf(durations.next(frames / 30))) * 1000);
      const excess = listed - (count * frames * 1000) / 30;
      t.true(excess > -0.01 && excess < 1.01, `${count} segments of ${frames} frames: ${excess} ms`);
    }
  }
});

test('rounded as players do, no listed duration exceeds the target duration', (t) => {
  for (let micros = 2_498_000; micros < 2_502_000; micros += 7) {
    const seconds = micros / 1e6;
    const most = tsExtinf(Math.ceil(seconds * 1000 - 1e-3) / 1000);
    t.true(Math.round(secondsOf(most)) <= targetOf(seconds), most);
    t.true(Math.round(secondsOf(extinf(seconds))) <= targetOf(seconds), extinf(seconds));
  }
  t.is(targetOf(2), 2);
  t.is(targetOf(2.4), 2);
});

test('a segment that lasts less than a millisecond lasts one', (t) => {
  const durations = new WholeMilliseconds();
  t.deepEqual(
    [0.0004, 0.0004, 0, 0.01].map((seconds) => durations.next(seconds)),
    [0.001, 0.001, 0.001, 0.008],
  );
});
