import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { createLogger } from '../../../src/log.ts';
import { IdleApplications } from '../../../src/management/idle-applications.ts';
import { RTMP, vhostConfig } from '../core/support.ts';

test('an application made on demand goes when it had no stream for a minute; others stay', (t) => {
  const registry = new Registry();
  const application = { name: 'declared', type: 'live', providers: {}, publishers: {} };
  const applications = [application, { ...application, name: '*' }];
  const vhost = registry.createVhost(vhostConfig({ name: 'v', host: { names: ['*'] }, applications }), true);
  const idle = new IdleApplications(registry, createLogger('silent'));
  t.teardown(() => idle.close());
  const unused = vhost.demandApplication('unused');
  const used = vhost.demandApplication('used');
  const input = used.publish('s', RTMP, { replace: false, maxConnections: 0 });
  for (const now of [0, 10_000, 59_000]) idle.check(now);
  t.deepEqual([...vhost.applications.keys()], ['declared', 'unused', 'used']);
  idle.check(60_000);
  t.true(unused.closed);
  t.deepEqual([...vhost.applications.keys()], ['declared', 'used']);
  input.close('gone');
  idle.check(100_000);
  idle.check(159_000);
  t.false(used.closed, 'the minute begins when it was first seen idle');
  used.publish('s', RTMP, { replace: false, maxConnections: 0 });
  idle.check(170_000);
  t.false(used.closed);
});
