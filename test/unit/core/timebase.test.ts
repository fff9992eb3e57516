import test from 'ava';
import { MILLISECONDS, rescale, toSeconds, VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import { seeded } from '../codecs/vectors.ts';

const AUDIO = { num: 1, den: 44_100 };

test('milliseconds and 90 kHz', (t) => {
  t.is(rescale(40, MILLISECONDS, VIDEO_TIMEBASE), 3600);
  t.is(rescale(3600, VIDEO_TIMEBASE, MILLISECONDS), 40);
  t.is(rescale(7, VIDEO_TIMEBASE, VIDEO_TIMEBASE), 7);
});

test('the nearest tick, also below zero', (t) => {
  t.is(rescale(1024, AUDIO, MILLISECONDS), 23);
  t.is(rescale(-1024, AUDIO, MILLISECONDS), -23);
  t.is(rescale(-45, VIDEO_TIMEBASE, MILLISECONDS), 0);
  t.is(rescale(-46, VIDEO_TIMEBASE, MILLISECONDS), -1);
});

test('exact where a product of floats is not', (t) => {
  const random = seeded(7);
  const bases = [MILLISECONDS, VIDEO_TIMEBASE, AUDIO, { num: 1, den: 48_000 }, { num: 1001, den: 30_000 }];
  for (let i = 0; i < 2000; i++) {
    const from = bases[i % bases.length] as typeof AUDIO;
    const to = bases[Math.floor(random() * bases.length)] as typeof AUDIO;
    const value = Math.floor((random() - 0.5) * 2 ** 40);
    const multiply = BigInt(from.num * to.den);
    const divide = BigInt(from.den * to.num);
    const difference = BigInt(rescale(value, from, to)) * divide - BigInt(value) * multiply;
    const distance = difference < 0n ? -difference : difference;
    t.true(2n * distance <= divide, `${value} from 1/${from.den} to 1/${to.den}`);
  }
});

test('seconds are converted between timebases', (t) => {
  t.is(toSeconds(45_000, VIDEO_TIMEBASE), 0.5);
  t.is(toSeconds(30_000, { num: 1001, den: 30_000 }), 1001);
});
