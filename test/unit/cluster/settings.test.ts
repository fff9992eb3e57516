import test from 'ava';
import { settingsIn, settingsReport, type StoreSettings } from '../../../cluster/redis/settings.ts';

const info = (...lines: string[]) => ['# Memory', ...lines, ''].join('\r\n');

test('settings of Redis are read from INFO', (t) => {
  t.deepEqual(settingsIn(info('maxmemory_policy:allkeys-lru', 'connected_slaves:0')), {
    evictionPolicy: 'allkeys-lru',
    writesAlone: false,
  });
  const replicated = info('maxmemory_policy:noeviction', 'connected_slaves:2');
  t.deepEqual(settingsIn(replicated), { evictionPolicy: 'noeviction', writesAlone: true });
  t.false(settingsIn(replicated + info('min_slaves_good_slaves:2')).writesAlone);
});

test('a Redis that says nothing is blamed for nothing', (t) => {
  t.deepEqual(settingsIn(''), { evictionPolicy: undefined, writesAlone: false });
});

test('settings are reported at first, and again only when they differ; a refused INFO reports nothing', async (t) => {
  const policies = ['noeviction', 'noeviction', undefined, 'allkeys-lru', 'noeviction'];
  const reports: StoreSettings[] = [];
  const report = settingsReport(
    async () => {
      const policy = policies.shift();
      if (policy === undefined) throw new Error('NOPERM');
      return info(`maxmemory_policy:${policy}`);
    },
    (settings) => reports.push(settings),
  );
  while (policies.length > 0) await report();
  t.deepEqual(
    reports.map(({ evictionPolicy }) => evictionPolicy),
    ['noeviction', 'allkeys-lru', 'noeviction'],
  );
});

test('an error of the one that hears of settings is not taken for a refused INFO', async (t) => {
  const report = settingsReport(
    async () => info('maxmemory_policy:noeviction'),
    () => {
      throw new Error('nobody listens');
    },
  );
  await t.throwsAsync(report, { message: 'nobody listens' });
});
