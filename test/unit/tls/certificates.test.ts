import { rmSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { CertificateError } from '../../../src/config/certificate.ts';
import { CertificateFolder, issue } from '../../support/network/x509.ts';

function open(t: ExecutionContext) {
  const folder = new CertificateFolder(t);
  const lines: { level: number; msg: string; host?: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const store = new CertificateStore({ folder: folder.path, log });
  const host = (name: string, names: string[], issued = issue(name)) => ({
    name,
    host: { names, tls: folder.write(name, issued) },
  });
  return { store, folder, lines, host };
}

test('an exact name goes before a pattern, patterns go in order, the first one answers for the rest', async (t) => {
  const { store, host } = open(t);
  t.is(store.select('a.example'), undefined);
  t.is(store.initial, undefined);
  await store.load(host('first', ['*.example']));
  const first = store.select('a.example');
  await store.load(host('second', ['A.example', '*.org']));
  await store.load(host('third', ['*', 'a.example']));
  await store.load({ name: 'without', host: { names: ['plain.example'] } });
  t.truthy(first);
  const second = store.select('x.org');
  const third = store.select('anything');
  t.is(new Set([first, second, third]).size, 3);
  t.is(store.select('a.example'), second, 'exact');
  t.is(store.select('A.EXAMPLE'), second);
  t.is(store.select('b.example'), first);
  t.is(store.select('plain.example'), first);
  store.remove('first');
  t.is(store.select('b.example'), third);
  store.remove('second');
  t.is(store.select('a.example'), third);
});

test('a reload replaces the certificate; one that fails keeps it', async (t) => {
  const { store, host, folder, lines } = open(t);
  const vhost = host('v', ['*']);
  await store.load(vhost);
  const before = store.select('a');
  const { initial } = store;
  folder.write('v', { ...issue('v'), key: issue('other').key });
  await t.throwsAsync(store.load(vhost), { instanceOf: CertificateError, message: /is not the key/ });
  rmSync(vhost.host.tls.certPath);
  await t.throwsAsync(store.load(vhost), { instanceOf: CertificateError, message: /ENOENT/ });
  t.is(store.select('a'), before);
  t.is(store.initial, initial);
  const renewed = issue('v');
  folder.write('v', renewed);
  await store.load(vhost);
  t.not(store.select('a'), before);
  t.is(store.initial?.key, renewed.key);
  t.is(lines.filter(({ msg, host: name }) => msg === 'certificate loaded' && name === 'v').length, 2);
});

test('any change of certificates makes another initial object', async (t) => {
  const { store, host } = open(t);
  await store.load(host('first', ['a']));
  const { initial } = store;
  await store.load(host('second', ['b']));
  t.not(store.initial, initial);
  t.deepEqual(store.initial, initial);
});

test('a virtual host that goes while its certificate loads leaves none behind', async (t) => {
  const { store, host } = open(t);
  const loading = store.load(host('v', ['*']));
  store.remove('v');
  await loading;
  t.is(store.initial, undefined);
  await t.throwsAsync(store.load({ name: 'w', host: { names: ['*'], tls: { certPath: 'no', keyPath: 'no' } } }));
  t.is(store.select('w'), undefined);
});

test('loads at once end with what the last of them read', async (t) => {
  const { store, host, folder } = open(t);
  const vhost = host('v', ['*']);
  const broken = { ...vhost, host: { ...vhost.host, tls: { certPath: 'no', keyPath: 'no' } } };
  const loads = [store.load(vhost), store.load(broken), store.load(vhost)];
  t.deepEqual(
    (await Promise.allSettled(loads)).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  t.truthy(store.select('a'));
  const renewed = issue('v');
  folder.write('v', renewed);
  await Promise.all([store.load(vhost), store.load(vhost)]);
  t.is(store.initial?.key, renewed.key);
});

test('a certificate past its time is used, with a warning', async (t) => {
  const { store, host, lines } = open(t);
  await store.load(host('v', ['*'], issue('v', { from: new Date(0), until: new Date(Date.now() - 60_000) })));
  t.truthy(store.select('a'));
  t.is(lines[0]?.level, 40);
  t.regex(lines[0]?.msg ?? '', /^the certificate expired at /);
});
