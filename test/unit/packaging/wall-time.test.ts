import test from 'ava';
import { wallClock } from '../../../src/packaging/cut.ts';
import { WallTime } from '../../../src/packaging/wall-time.ts';

const START = 1_700_000_000_000;

/** When segments of 2 s are told to begin that come so many milliseconds late. */
function told(...late: number[]): number[] {
  const time = new WallTime();
  time.begin(0, START);
  return late.map((ms, i) => {
    const media = 2 * (i + 1);
    time.note(media, START + media * 1000 + ms);
    return wallClock(time.anchor, media) - START - media * 1000;
  });
}

test('a source that was held up and caught up leaves the times of its segments as they were', (t) => {
  t.deepEqual(told(0, 3000, 1500, 0, 5000, 10), [0, 0, 0, 0, 0, 0]);
  t.deepEqual(told(0, 10_000, 8000, 6000, 4000, 2000, 0), [0, 0, 0, 0, 0, 0, 0]);
});

test('a clock that is behind for good gets another time, by the segment that is the least late', (t) => {
  t.deepEqual(told(0, 3000, 2500, 4000, 2600, 2500), [0, 0, 0, 2500, 2500, 2500]);
});

test('one that is ahead gets it at once', (t) => {
  t.deepEqual(told(0, -1500, -1500, -900, 0), [0, -1500, -1500, -1500, -1500]);
});
