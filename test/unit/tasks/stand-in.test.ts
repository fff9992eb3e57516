import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Application } from '../../../src/core/application.ts';
import type { TaskDefinition } from '../../../src/tasks/definition.ts';
import { StandIn } from '../../../src/tasks/stand-in.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

/** A stand-in whose run is ready when a promise resolves, and the reasons that it logs. */
function open(t: ExecutionContext, ready: Promise<void>) {
  virtualTime(t);
  const reasons: string[] = [];
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void reasons.push((JSON.parse(line) as { reason: string }).reason) },
  );
  const name = { kind: 'scheduled', vhost: 'default', app: 'app', id: 'news' };
  const wanted = { name, definition: {} as TaskDefinition, application: {} as Application };
  const standIn = new StandIn(() => ({ ready, run: async () => {}, close: () => {} }), wanted, log);
  t.teardown(() => standIn.close());
  return { standIn, reasons };
}

test('a standby run that cannot be made ready reports why', async (t) => {
  const { standIn, reasons } = open(t, Promise.reject(new Error('there is no such file')));
  t.false(await standIn.ready);
  t.deepEqual(reasons, ['there is no such file']);
});

test('a standby run that does not get ready in time is reported', async (t) => {
  const { standIn, reasons } = open(t, new Promise(() => {}));
  await delay(21_000);
  t.false(await standIn.ready);
  t.deepEqual(reasons, ['it was not ready within 20 seconds']);
});

test('a run that is ready, and not needed, says nothing', async (t) => {
  const { standIn, reasons } = open(t, Promise.resolve());
  t.true(await standIn.ready);
  await delay(40_000);
  t.deepEqual(reasons, []);
});
