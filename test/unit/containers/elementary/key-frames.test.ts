import test from 'ava';
import type { StartKind } from '../../../../src/codecs/recovery-point.ts';
import { KeyFrames } from '../../../../src/containers/elementary/key-frames.ts';

/** Which of some pictures are key frames, and of which kind, by a map of those that decoding can start at. */
function keysOf(pictures: number, start: (picture: number) => StartKind | undefined) {
  const frames = new KeyFrames();
  return Array.from({ length: pictures }, (_, i) => [i, frames.next(start(i))] as const).filter(([, key]) => key);
}

test('a stream of open GOPs is cut at its recovery points, from some seconds behind its only IDR picture on', (t) => {
  const keys = keysOf(400, (i) => (i === 0 ? 'idr' : i % 50 === 0 ? 'open' : undefined));
  t.deepEqual(keys, [
    [0, true],
    [150, 'open'],
    [200, 'open'],
    [250, 'open'],
    [300, 'open'],
    [350, 'open'],
  ]);
});

test('an elementary stream that is joined begins with its first recovery point', (t) => {
  t.deepEqual(
    keysOf(100, (i) => (i % 50 === 20 ? 'open' : undefined)),
    [
      [20, 'open'],
      [70, 'open'],
    ],
  );
  t.deepEqual(keysOf(60, (i) => (i % 25 === 20 ? 'gradual' : undefined))[0], [20, 'open']);
});

test('a source that has IDR pictures is cut only there, also where they are rare', (t) => {
  const often = keysOf(300, (i) => (i % 100 === 0 ? 'idr' : i % 10 === 0 ? 'open' : undefined));
  t.deepEqual(
    often.map(([i]) => i),
    [0, 100, 200],
  );
  const rare = keysOf(1000, (i) => (i % 200 === 0 ? 'idr' : i % 10 === 0 ? 'open' : undefined));
  t.deepEqual(
    rare.filter(([i]) => i >= 200),
    [200, 400, 600, 800].map((i) => [i, true]),
  );
});

test('a gradual refresh is one where nothing better comes', (t) => {
  const keys = keysOf(400, (i) => (i % 100 === 0 ? 'open' : i % 25 === 0 ? 'gradual' : undefined));
  t.true(keys.every(([i]) => i % 100 === 0));
  const alone = keysOf(300, (i) => (i === 0 ? 'idr' : i % 25 === 0 ? 'gradual' : undefined));
  t.deepEqual(
    alone.map(([i]) => i),
    [0, 150, 175, 200, 225, 250, 275],
  );
});
