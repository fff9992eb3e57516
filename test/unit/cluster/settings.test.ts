import test from 'ava';
import { settingsIn } from '../../../cluster/redis/settings.ts';

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
