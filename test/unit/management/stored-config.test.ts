import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { joinKey, type Change, type Json } from '#cluster';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { Registry } from '../../../src/core/registry.ts';
import { StoredConfig } from '../../../src/management/stored-config.ts';
import { createVhost } from '../../support/api/api.ts';
import { openAlone } from '../../support/cluster/cluster.ts';

const VHOST = { name: 'made', host: { names: ['made.example.com'] } };
const APP = { name: 'app', type: 'live' };
const VHOST_KEY = joinKey('made');
const APP_KEY = joinKey('made', 'app');

/** A store that others write to, the registry that follows it, and what was logged of that. */
async function open(t: ExecutionContext, registry = new Registry()) {
  const lines: string[] = [];
  const log = pino(
    { level: 'error' },
    { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const cluster = await openAlone();
  const { config: store } = cluster;
  const stored = new StoredConfig({ registry, store, certificates: new CertificateStore({ folder: '/', log }), log });
  t.teardown(async () => {
    stored.close();
    await cluster.close();
  });
  const seen = (key: string): number => store.entries().get(key)?.revision ?? 0;
  const change = (key: string, value?: Json): Change => ({
    key,
    seen: seen(key),
    ...(value !== undefined && { value }),
  });
  const write = async (...changes: Change[]): Promise<void> => {
    await store.write(changes);
    await store.sync();
  };
  return { registry, store, stored, lines, change, write };
}

test('resources that other nodes store are created, changed and removed; only those that changed are touched', async (t) => {
  const { registry, change, write, lines } = await open(t);
  await write(
    change(VHOST_KEY, VHOST),
    change(APP_KEY, APP),
    change(joinKey('made', 'other'), { ...APP, name: 'other' }),
  );
  const [first, other] = ['app', 'other'].map((name) => registry.vhost('made').application(name));
  await write(change(APP_KEY, { ...APP, publishers: { llhls: { segmentCount: 7 } } }));
  t.true(first?.closed);
  t.false(other?.closed);
  t.is(registry.vhost('made').application('app').config.publishers.llhls?.segmentCount, 7);
  await write(change(APP_KEY));
  t.deepEqual([...registry.vhost('made').applications.keys()], ['other']);
  await write(change(VHOST_KEY));
  t.true(other?.closed);
  t.false(registry.vhosts.has('made'));
  t.deepEqual(lines, []);
});

test('a resource that was removed and stored anew before this node was notified is another one', async (t) => {
  const { registry, store, change, write } = await open(t);
  await write(change(VHOST_KEY, VHOST), change(APP_KEY, APP));
  const before = registry.vhost('made');
  const application = before.application('app');
  await Promise.all([
    store.write([change(VHOST_KEY)]),
    store.write([
      { key: VHOST_KEY, value: VHOST, seen: 0 },
      { key: APP_KEY, value: APP, seen: 0 },
    ]),
  ]);
  await store.sync();
  t.true(application.closed);
  t.not(registry.vhost('made'), before);
  t.false(registry.vhost('made').application('app').closed);
});

test('a resource that Server.xml declares stays as it is, whatever is stored and removed under its name', async (t) => {
  const registry = new Registry();
  createVhost(registry, { ...VHOST, applications: [APP] });
  const { change, write, lines } = await open(t, registry);
  const application = registry.vhost('made').application('app');
  await write(change(VHOST_KEY, VHOST), change(APP_KEY, { ...APP, publishers: { llhls: {} } }));
  t.deepEqual(lines, [
    'a stored configuration object cannot be used: The virtual host already exists: [made]',
    'a stored configuration object cannot be used: The VirtualHost is read-only: [made]',
  ]);
  await write(change(APP_KEY));
  await write(change(VHOST_KEY));
  t.is(registry.vhost('made').application('app'), application);
  t.false(application.closed);
});

test('a stored resource that cannot be read does not prevent others, and is created when it is mended', async (t) => {
  const { registry, change, write, lines } = await open(t);
  await write(change(VHOST_KEY, { ...VHOST, host: 7 }), change(joinKey('good'), { ...VHOST, name: 'good' }));
  t.deepEqual([...registry.vhosts.keys()], ['good']);
  t.is(lines.length, 1);
  await write(change(VHOST_KEY, VHOST));
  t.deepEqual([...registry.vhosts.keys()], ['good', 'made']);
});

test('a closed stored configuration follows no more changes', async (t) => {
  const { registry, stored, change, write } = await open(t);
  stored.close();
  await write(change(VHOST_KEY, VHOST));
  t.is(registry.vhosts.size, 0);
});
