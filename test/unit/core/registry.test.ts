import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { RTMP, vhostConfig } from './support.ts';

const vhost = (name: string, names: string[], applications: object[] = []) =>
  vhostConfig({ name, host: { names }, applications });

test('host names: wildcards, case, order of creation', (t) => {
  const registry = new Registry();
  registry.createVhost(vhost('exact', ['live.example.com', '10.0.0.1']), true);
  registry.createVhost(vhost('wild', ['*.example.com', 'edge-?.example.net']), true);
  registry.createVhost(vhost('rest', ['*']), false);
  const resolve = (host: string) => registry.resolve(host)?.name;
  t.is(resolve('live.example.com'), 'exact');
  t.is(resolve('LIVE.Example.COM'), 'exact');
  t.is(resolve('10.0.0.1'), 'exact');
  t.is(resolve('10x0.0.1'), 'rest', 'a dot is a dot');
  t.is(resolve('other.example.com'), 'wild');
  t.is(resolve('a.b.example.com'), 'wild');
  t.is(resolve('example.com'), 'rest');
  t.is(resolve('edge-1.example.net'), 'wild');
  t.is(resolve('edge-12.example.net'), 'rest');
  t.is(resolve('live.example.com.evil.org'), 'rest');
  t.is(resolve(''), 'rest');
});

test('an IPv6 address is a host name, with the brackets of URLs and without', (t) => {
  const registry = new Registry();
  registry.createVhost(vhost('plain', ['2001:db8::1']), true);
  registry.createVhost(vhost('bracketed', ['[2001:db8::2]']), true);
  for (const host of ['2001:db8::1', '[2001:DB8::1]']) t.is(registry.resolve(host)?.name, 'plain');
  for (const host of ['2001:db8::2', '[2001:db8::2]']) t.is(registry.resolve(host)?.name, 'bracketed');
  t.is(registry.resolve('[2001:db8::3]'), undefined);
});

test('no virtual host answers to a name that none has', (t) => {
  const registry = new Registry();
  t.is(registry.resolve('example.com'), undefined);
  registry.createVhost(vhost('default', ['(a+)+$', 'x[1].com']), true);
  t.is(registry.resolve('a'), undefined, 'names are no regular expressions');
  t.is(registry.resolve('x[1].com')?.name, 'default');
});

test('a long host name does not hold up the process', (t) => {
  const registry = new Registry();
  registry.createVhost(vhost('default', ['*a*a*a*a*a*b']), true);
  t.is(registry.resolve('a'.repeat(100_000)), undefined);
});

test('names of virtual hosts are unique until they are deleted', (t) => {
  const registry = new Registry();
  const first = registry.createVhost(vhost('v', ['*']), false);
  t.throws(() => registry.createVhost(vhost('v', ['*']), false), { code: 'vhostExists' });
  t.is(registry.vhost('v'), first);
  registry.deleteVhost('v', 'deleted');
  t.throws(() => registry.vhost('v'), { code: 'vhostNotFound' });
  t.throws(() => registry.deleteVhost('v', 'deleted'), { code: 'vhostNotFound' });
  t.is(registry.resolve('any'), undefined);
  t.notThrows(() => registry.createVhost(vhost('v', ['*']), false));
});

test('applications come from the configuration, but for the template', (t) => {
  const registry = new Registry();
  const applications = [
    { name: 'app', type: 'live' },
    { name: '*', type: 'live' },
  ];
  const host = registry.createVhost(vhost('v', ['*'], applications), true);
  t.deepEqual([...host.applications.keys()], ['app']);
  t.is(host.template?.name, '*');
  t.false(host.application('app').dynamic);
  t.throws(() => host.application('*'), { code: 'applicationNotFound' });
  const { config } = host.application('app');
  t.throws(() => host.createApplication(config), { code: 'applicationExists' });
  t.true(host.createApplication({ ...config, name: 'made' }, true).dynamic);
});

test('an application that was closed makes room for another of its name', (t) => {
  const host = new Registry().createVhost(vhost('v', ['*'], [{ name: 'app', type: 'live' }]), true);
  const old = host.application('app');
  old.close('restart');
  const fresh = host.createApplication(old.config);
  t.is(host.application('app'), fresh);
});

test('closing cascades from the registry to every stream', (t) => {
  const registry = new Registry();
  const reasons: string[] = [];
  for (const name of ['a', 'b']) {
    const host = registry.createVhost(vhost(name, [name], [{ name: 'app', type: 'live' }]), true);
    const input = host.application('app').publish('live', RTMP, { replace: false, maxConnections: 0 });
    input.on('close', (reason) => reasons.push(`${name}: ${reason}`));
  }
  registry.close('shutdown');
  registry.close('shutdown');
  t.deepEqual(reasons, ['a: shutdown', 'b: shutdown']);
  t.is(registry.counters.providers.rtmp, 0);
});

test('a deleted virtual host ends its streams and makes no more applications', (t) => {
  const registry = new Registry();
  const host = registry.createVhost(vhost('v', ['*'], [{ name: 'app', type: 'live' }]), true);
  const { config } = host.application('app');
  const input = host.application('app').publish('live', RTMP, { replace: false, maxConnections: 0 });
  registry.deleteVhost('v', 'deleted');
  t.true(input.closed);
  t.is(host.applications.size, 0);
  t.throws(() => host.createApplication(config, true), { code: 'vhostNotFound' });
});
