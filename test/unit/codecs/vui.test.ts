import test from 'ava';
import { isUsual, lookOf, sampleShape, videoRange, type Colour } from '../../../src/codecs/vui.ts';

const colour = (primaries: number, transfer: number, matrix: number, fullRange = false): Colour => ({
  primaries,
  transfer,
  matrix,
  fullRange,
});

test('shapes of samples are in lowest terms, and those that are square or incredible are none', (t) => {
  t.deepEqual(sampleShape({ num: 128, den: 90 }), { num: 64, den: 45 });
  t.deepEqual(sampleShape({ num: 10, den: 11 }), { num: 10, den: 11 });
  t.deepEqual(sampleShape({ num: 80, den: 33 }), { num: 80, den: 33 });
  for (const [num, den] of [
    [1, 1],
    [7, 7],
    [320, 321],
    [65_535, 1],
    [1, 65_535],
  ] as const)
    t.is(sampleShape({ num, den }), undefined, `${num}:${den}`);
});

test('ranges of video by their transfer characteristics', (t) => {
  t.is(videoRange(colour(9, 16, 9)), 'PQ');
  t.is(videoRange(colour(9, 18, 9)), 'HLG');
  t.is(videoRange(colour(9, 14, 9)), 'SDR');
  t.is(videoRange(undefined), 'SDR');
});

test('limited BT.709 is what players assume', (t) => {
  t.true(isUsual(colour(1, 1, 1)));
  t.true(isUsual(colour(2, 2, 1)));
  t.false(isUsual(colour(1, 1, 1, true)));
  t.false(isUsual(colour(9, 16, 9)));
  t.deepEqual(lookOf({ sar: undefined, colour: colour(2, 2, 2) }), {}, 'nothing is told');
  t.deepEqual(lookOf({ colour: colour(2, 2, 2, true) }), { colour: colour(2, 2, 2, true) });
});
