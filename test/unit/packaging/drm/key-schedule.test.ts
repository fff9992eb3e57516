import test from 'ava';
import type { DrmKey } from '../../../../src/config/drm-info.ts';
import { KeySchedule } from '../../../../src/packaging/drm/key-schedule.ts';

const keyOf = (byte: number): DrmKey => ({
  ...{ scheme: 'cbcs', keyformat: 'fairplay', pssh: [], keyUrl: 'skd://k' },
  ...{ keyId: Buffer.alloc(16, byte), key: Buffer.alloc(16, byte), iv: Buffer.alloc(16, byte) },
});
const [ONE, TWO, THREE] = [keyOf(1), keyOf(2), keyOf(3)] as const;

test('keys by segment, for tracks that lag too', (t) => {
  const schedule = new KeySchedule(ONE);
  t.is(schedule.at(0), ONE);
  schedule.change(TWO, 5);
  schedule.change(THREE, 9);
  t.deepEqual(
    [0, 4, 5, 8, 9, 100].map((msn) => schedule.at(msn)),
    [ONE, ONE, TWO, TWO, THREE, THREE],
  );
  t.is(schedule.newest, THREE);
  t.deepEqual(
    [4, 5, 6, 9].map((msn) => schedule.changesAt(msn)),
    [false, true, false, true],
  );
});

test('a later change of the same segment replaces the one before, and old keys are forgotten', (t) => {
  const schedule = new KeySchedule(ONE);
  schedule.change(TWO, 5);
  schedule.change(THREE, 5);
  t.is(schedule.at(5), THREE);
  for (let msn = 6; msn < 1000; msn++) schedule.change(msn % 2 === 0 ? ONE : TWO, msn);
  t.deepEqual([schedule.at(998), schedule.at(999)], [ONE, TWO]);
});
