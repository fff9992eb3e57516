import test from 'ava';
import { spliceInterstitials } from '../../../../../src/publishers/hls/package/splice-interstitials.ts';

const NAMES = { vhost: 'default', app: 'app', stream: 'a&b' };
const DATE = Date.UTC(2026, 0, 1, 12);

test('the asset list of a break is that of the application, with the values of the break', (t) => {
  const config = {
    assetList:
      'https://ads/${VHostName}/${AppName}/${StreamName}?id=${EventId}&ms=${DurationMs}&at=${StartDate}&${Other}',
    snap: ['OUT' as const, 'IN' as const, 'OUT' as const],
    restrict: ['SKIP' as const],
  };
  const of = spliceInterstitials(config, NAMES, (reason) => t.fail(reason));
  t.deepEqual(of?.({ eventId: 7, durationMs: 30_000, date: DATE }), {
    assetList: 'https://ads/default/app/a%26b?id=7&ms=30000&at=2026-01-01T12%3A00%3A00.000Z&$%7BOther}',
    duration: 30_000,
    resumeOffset: 30_000,
    playoutLimit: 30_000,
    snap: ['OUT', 'IN'],
    restrict: ['SKIP'],
  });
  t.deepEqual(
    spliceInterstitials(
      { assetList: 'https://ads/${EventId}-${DurationMs}', snap: [], restrict: [] },
      NAMES,
      t.fail,
    )?.({ eventId: undefined, durationMs: undefined, date: DATE }),
    { assetList: 'https://ads/-' },
  );
});

test('an application without a rule has none, and a URL that grows too long is told', (t) => {
  t.is(spliceInterstitials(undefined, NAMES, t.fail), undefined);
  const faults: string[] = [];
  const config = { assetList: 'https://ads/${StreamName}', snap: [], restrict: [] };
  const of = spliceInterstitials(config, { ...NAMES, stream: 'ü'.repeat(400) }, (reason) => faults.push(reason));
  t.is(of?.({ eventId: 1, durationMs: 1, date: DATE }), undefined);
  t.deepEqual(faults, [`https://ads/${encodeURIComponent('ü'.repeat(400))}`]);
});

test('a break of more than a day has no known length', (t) => {
  const of = spliceInterstitials({ assetList: 'https://ads/', snap: [], restrict: [] }, NAMES, t.fail);
  t.deepEqual(of?.({ eventId: 1, durationMs: 86_400_001, date: DATE }), { assetList: 'https://ads/' });
});
