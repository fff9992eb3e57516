import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Guard } from '../../../src/access/guard.ts';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import { CLIENT, playRequest, publishRequest } from '../../support/access/access.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { addVhost, goLive } from '../../support/server/live.ts';

/** A live `app/stream` behind limits; `asked` counts how often the guard was asked. */
async function open(t: ExecutionContext, limits: Partial<ApplicationConfig['limits']>, moveTo?: string) {
  const registry = new Registry();
  const providers = { rtmp: { maxConnection: 0 } } as unknown as ApplicationConfig['providers'];
  const publishers = {
    webrtc: { maxConnection: 0 },
    thumbnail: { maxConnection: 0 },
  } as ApplicationConfig['publishers'];
  const limited = { connectionsPerMinute: 0, publishesPerMinute: 0, ...limits };
  addVhost(registry, { hostNames: ['live.example'], applications: ['app'], providers, publishers, limits: limited });
  const onDemand = { name: 'demanded', hostNames: ['demanded.example'], applications: ['*'] };
  addVhost(registry, { ...onDemand, providers, publishers, limits: limited });
  addVhost(registry, { name: 'open', hostNames: ['open.example'], applications: ['app'], providers, publishers });
  goLive(registry, 'app', 'stream');
  let asked = 0;
  const guard: Guard = () => {
    asked++;
    return moveTo === undefined ? undefined : async () => ({ target: { hostName: moveTo } });
  };
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { access, cluster } = await aloneWith(registry, { guards: [guard], log });
  t.teardown(async () => {
    access.close();
    registry.close('the test is over');
    await cluster.close();
  });
  const from = (realAddress: string) => ({ client: { ...CLIENT, realAddress } });
  const watch = (address: string, more = {}) =>
    access.admitSession(playRequest({ ...from(address), ...more }), (output) => output);
  const publish = (address: string) => access.admitPublisher(publishRequest(from(address)));
  return { access, watch, publish, from, lines, asked: () => asked };
}

test('networks: the denied ones go before the allowed ones, and no guard is asked about them', async (t) => {
  const { access, watch, publish, asked, lines } = await open(t, {
    allow: '192.0.2.0/24,2001:db8::/32',
    deny: '192.0.2.7',
  });
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::1']) await t.notThrowsAsync(watch(address));
  const before = asked();
  for (const address of ['192.0.2.7', '::ffff:192.0.2.7', '198.51.100.1', '2001:db9::1', 'unknown', '']) {
    await t.throwsAsync(watch(address), { code: 'networkForbidden' }, address);
    await t.throwsAsync(publish(address), { code: 'networkForbidden' }, address);
  }
  t.is(asked(), before);
  t.is(lines[0]?.msg, 'WebRTC viewer refused: Clients of this network are not allowed');
  t.deepEqual(access.refusals.all(), [
    { direction: 'outgoing', protocol: 'webrtc', reason: 'networkForbidden', count: 6 },
    { direction: 'incoming', protocol: 'rtmp', reason: 'networkForbidden', count: 6 },
  ]);
});

test('a list of denied networks alone lets all others in', async (t) => {
  const { watch } = await open(t, { deny: '192.0.2.0/24' });
  await t.notThrowsAsync(watch('198.51.100.1'));
  await t.notThrowsAsync(watch('2001:db8::1'));
  await t.throwsAsync(watch('192.0.2.200'), { code: 'networkForbidden' });
});

test('the connections of an address in a minute are limited, and an IPv6 network of 64 bits counts as one', async (t) => {
  const { watch, publish } = await open(t, { connectionsPerMinute: 2, publishesPerMinute: 1 });
  for (const address of ['192.0.2.1', '192.0.2.1', '2001:db8::1', '2001:db8:0:0:ffff::1', '2001:db8:1::'])
    await t.notThrowsAsync(watch(address), address);
  await t.throwsAsync(watch('192.0.2.1'), { code: 'tooOften', message: /at most 2 a minute/ });
  await t.throwsAsync(watch('2001:db8::2'), { code: 'tooOften' });
  await t.notThrowsAsync(watch('192.0.2.2'));
  await t.notThrowsAsync(publish('192.0.2.1'));
  await t.throwsAsync(publish('192.0.2.1'), { code: 'tooOften', message: /at most 1 a minute/ });
});

test('names of applications that would be made on demand do not evade a limit', async (t) => {
  const { access, from } = await open(t, { publishesPerMinute: 2 });
  const publish = (app: string) =>
    access.admitPublisher(publishRequest({ ...from('192.0.2.1'), hostName: 'demanded.example', app }));
  for (const app of ['one', 'two']) await t.notThrowsAsync(publish(app));
  await t.throwsAsync(publish('three'), { code: 'tooOften' });
});

test('thumbnails are pictures and no connections', async (t) => {
  const { access, from } = await open(t, { connectionsPerMinute: 1 });
  const ask = () => access.admitViewer(playRequest({ ...from('192.0.2.1'), protocol: 'thumbnail' }), () => true);
  for (let i = 0; i < 3; i++) await t.notThrowsAsync(ask());
});

test('checks during a handshake do not count against limits', async (t) => {
  const { access, watch, from } = await open(t, { connectionsPerMinute: 1, deny: '198.51.100.0/24' });
  const check = (address: string) => access.duringHandshake.checkViewer(playRequest(from(address)), () => {});
  for (let i = 0; i < 3; i++) check('192.0.2.1');
  await watch('192.0.2.1');
  t.throws(() => check('192.0.2.1'), { code: 'tooOften' });
  t.throws(() => check('198.51.100.1'), { code: 'networkForbidden' });
});

test('a client that a guard sends to another application is subject to the limits of both', async (t) => {
  const { watch } = await open(t, { deny: '192.0.2.7', connectionsPerMinute: 1 }, 'live.example');
  const there = { hostName: 'open.example' };
  await t.throwsAsync(watch('192.0.2.7', there), { code: 'networkForbidden' });
  await t.notThrowsAsync(watch('192.0.2.1', there));
  await t.throwsAsync(watch('192.0.2.1', there), { code: 'tooOften' });
});
