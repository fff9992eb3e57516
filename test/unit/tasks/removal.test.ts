import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { TaskDefinitions } from '../../../src/tasks/definitions.ts';
import { dynamicConfig } from '../../support/api/api.ts';
import { until } from '../../support/time/until.ts';

const definition = { spec: {}, persistent: true, stored: true };

test('definitions of tasks are deleted with their application or virtual host, and no others', async (t) => {
  const registry = new Registry();
  const { cluster, config } = await dynamicConfig(registry);
  await config.restore();
  const app = (name: string) => ({ name, type: 'live' });
  for (const name of ['v', 'w']) {
    await config.createVhosts([{ name, host: { names: [name] }, applications: [app('one'), app('two'), app('*')] }]);
  }
  const definitions = new TaskDefinitions(cluster.config);
  const name = (vhost: string, application: string, id: string) => ({ kind: 'fake', vhost, app: application, id });
  for (const [vhost, application] of [
    ['v', 'one'],
    ['v', 'two'],
    ['v', 'demanded'],
    ['w', 'one'],
  ] as const) {
    await definitions.create(name(vhost, application, 'a/b #1'), definition);
  }
  registry.vhost('v').demandApplication('demanded');
  const left = () => [...definitions.names()].map(({ vhost, app: application }) => `${vhost}/${application}`).sort();
  await config.deleteApplication('v', 'one');
  t.deepEqual(left(), ['v/demanded', 'v/two', 'w/one']);
  await config.deleteApplication('v', 'demanded');
  t.deepEqual(left(), ['v/two', 'w/one']);
  t.false(definitions.isLeftOver(name('v', 'one', 'x'), definition), 'its template may make it again');
  await config.deleteVhost('v');
  t.deepEqual(left(), ['w/one']);
  t.true(definitions.isLeftOver(name('v', 'two', 'x'), definition));
  t.false(definitions.isLeftOver(name('v', 'two', 'x'), { ...definition, stored: false }));
  t.deepEqual([...registry.vhosts.keys()], ['w'], 'no definition is taken for a virtual host');
});

test('an application is deleted while the progress of its tasks is written down all the time', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-removal-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const registry = new Registry();
  const { cluster, config } = await dynamicConfig(registry, join(folder, 'config.json'));
  await config.restore();
  await config.createVhosts([{ name: 'v', host: { names: ['v'] }, applications: [{ name: 'one', type: 'live' }] }]);
  const definitions = new TaskDefinitions(cluster.config);
  const name = { kind: 'fake', vhost: 'v', app: 'one', id: 'a' };
  await definitions.create(name, { ...definition, uid: 'u' });
  let step = 0;
  const done = new AbortController();
  const saving = (async () => {
    while (!done.signal.aborted) {
      step += 1;
      await definitions.save(name, { uid: 'u', fence: 1, step, value: step });
    }
  })();
  await until('progress is written', () => step > 2);
  try {
    await config.deleteApplication('v', 'one');
  } finally {
    done.abort();
    await saving;
  }
  t.deepEqual([...definitions.names()], []);
});
