import test from 'ava';
import type { HlsPublisherConfig } from '../../../../../src/config/model.ts';
import { firstMsn } from '../../../../../src/publishers/hls/package/first-msn.ts';

/** The smallest segments that can be configured. */
const config = (more: Partial<HlsPublisherConfig> = {}): HlsPublisherConfig =>
  ({ serverTimeBasedSegmentNumbering: false, originMode: false, segmentDuration: 0.5, ...more }) as HlsPublisherConfig;

test('a stream begins with 0, or goes on', (t) => {
  t.is(firstMsn(config(), undefined), 0);
  t.is(firstMsn(config(), { msn: 7 } as never), 7);
});

test('media sequence numbers in OriginMode go by the clock, faster than segments come, and older players can read them', (t) => {
  const origin = config({ originMode: true });
  const first = firstMsn(origin, undefined);
  t.true(Math.abs(first - (Date.now() - Date.UTC(2026, 0)) / 250) < 1000);
  t.true(first + (10 * 365 * 86_400) / 0.25 < 2 ** 31, 'in ten years as well');
  t.is(firstMsn(origin, { msn: first + 1000 } as never), first + 1000);
});
