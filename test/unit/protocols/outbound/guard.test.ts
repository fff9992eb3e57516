import { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import test from 'ava';
import type { NodeRow } from '#cluster';
import { OutboundGuard } from '../../../../src/protocols/outbound/guard.ts';
import { PULLING } from '../../../support/pushing/outbound.ts';

const node: NodeRow = {
  id: 'b',
  incarnation: 'x',
  load: 0,
  full: false,
  info: {},
  address: 'http://192.0.2.7:7000',
  state: 'ready',
  uptimeMs: 0,
  silentMs: 0,
};
const named: NodeRow = { ...node, id: 'c', address: 'http://localhost:7001' };
const guard = new OutboundGuard({
  ...PULLING,
  nodes: () => [node, named],
  ports: { tcp: new Set([8081]), udp: new Set([10_000]) },
  stores: () => [
    { host: '192.0.2.9', port: 6379 },
    { host: 'localhost', port: 6380 },
  ],
});
const refused = { name: 'PullError', message: /pulling from/ };

test('link-local, unspecified and multicast addresses are never pulled from, in any form', async (t) => {
  for (const host of [
    '169.254.169.254',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    'fe80::1',
    'ff02::1',
    '::ffff:169.254.1.1',
  ]) {
    await t.throwsAsync(guard.addresses(host, 9000), refused, host);
  }
  await t.throwsAsync(guard.addresses('name.invalid', 9000), { name: 'PullError', message: /cannot be resolved/ });
});

test('the ports of the cluster are out of bounds on its own machines, and only there', async (t) => {
  for (const [host, port] of [
    ['127.0.0.1', 8081],
    ['127.9.9.9', 6380],
    ['::1', 8081],
    ['localhost', 8081],
    ['::ffff:127.0.0.1', 8081],
    ['192.0.2.7', 7000],
    ['192.0.2.7', 8081],
    ['192.0.2.9', 6379],
  ] as const)
    await t.throwsAsync(guard.addresses(host, port), refused, `${host} ${port}`);
  t.deepEqual(await guard.addresses('192.0.2.7', 9000), ['192.0.2.7']);
  t.deepEqual(await guard.addresses('192.0.2.1', 8081), ['192.0.2.1']);
  t.deepEqual(await guard.addresses('127.0.0.1', 9000), ['127.0.0.1']);
  t.true((await guard.addresses('localhost', 9000)).length > 0);
});

test('a forbidden address is so in every form, and by every name', async (t) => {
  const own = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal }) => !internal);
  for (const [host, port] of [
    ['::ffff:192.0.2.7', 7000],
    ['::ffff:c000:207', 7000],
    ['0:0:0:0:0:FFFF:C000:0207', 7000],
    ['::192.0.2.7', 7000],
    ['64:ff9b::c000:207', 7000],
    ['::ffff:c000:209', 6379],
    ['::ffff:7f00:1', 8081],
    ['127.0.0.1', 7001],
    ['127.0.0.1', 6380],
    ['::1', 6380],
    ['0:0:0:0:0:0:0:1', 7001],
    ['::ffff:a9fe:a9fe', 9000],
    ...own.flatMap(
      ({ address }) =>
        [
          [address, 8081],
          [address, 7001],
          [address, 6380],
        ] as const,
    ),
  ] as const)
    await t.throwsAsync(guard.addresses(host, port), refused, `${host} ${port}`);
});

test('a port is out of bounds only where it is what must not be reached', async (t) => {
  t.deepEqual(await guard.addresses('192.0.2.7', 6379), ['192.0.2.7']);
  t.deepEqual(await guard.addresses('192.0.2.9', 7000), ['192.0.2.9']);
  t.deepEqual(await guard.addresses('127.0.0.1', 7000), ['127.0.0.1']);
  t.deepEqual(await guard.addresses('::ffff:c000:207', 9000), ['::ffff:c000:207']);
  const unknown = new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [{ host: 'name.invalid', port: 6379 }],
  });
  await t.throwsAsync(unknown.addresses('192.0.2.1', 6379), { name: 'PullError' });
  t.deepEqual(await unknown.addresses('192.0.2.1', 6380), ['192.0.2.1']);
});

test('UDP and TCP ports are distinguished', async (t) => {
  for (const host of ['127.0.0.1', '192.0.2.7']) {
    await t.throwsAsync(guard.addresses(host, 10_000, 'udp'), refused, host);
    t.deepEqual(await guard.addresses(host, 10_000), [host]);
    t.deepEqual(await guard.addresses(host, 8081, 'udp'), [host]);
  }
  t.deepEqual(await guard.addresses('192.0.2.7', 7000, 'udp'), ['192.0.2.7']);
  t.deepEqual(await guard.addresses('192.0.2.9', 6379, 'udp'), ['192.0.2.9']);
  await t.throwsAsync(guard.addresses('169.254.1.1', 5000, 'udp'), refused);
});

test('nothing is pulled from outside the configured networks, in any form of its address', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('192.0.2.0', 28);
  networks.addSubnet('2001:db8::', 32, 'ipv6');
  const narrow = new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    allowed: { networks, element: 'Modules/Pull' },
  });
  for (const host of ['192.0.2.1', '::ffff:192.0.2.15', '2001:db8::1', '64:ff9b::c000:201']) {
    t.deepEqual(await narrow.addresses(host, 9000), [host]);
  }
  for (const host of ['192.0.2.16', '127.0.0.1', '::1', '2001:db9::1', '::ffff:127.0.0.1', 'localhost']) {
    await t.throwsAsync(narrow.addresses(host, 9000), { message: /is in none of the networks of Modules\/Pull/ }, host);
  }
  networks.addSubnet('169.254.0.0', 16);
  await t.throwsAsync(narrow.addresses('169.254.169.254', 80), refused, 'link-local stays out');
  const none = new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    allowed: { networks: new BlockList(), element: 'Modules/Pull' },
  });
  await t.throwsAsync(none.addresses('192.0.2.1', 9000), refused);
});

test('multicast groups are sent to over UDP, where the list of networks has them', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('239.1.0.0', 16);
  networks.addSubnet('ff3e::', 16, 'ipv6');
  const listed = new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    allowed: { networks, element: 'Modules/Push' },
  });
  t.deepEqual(await listed.addresses('239.1.2.3', 4000, 'udp'), ['239.1.2.3']);
  t.deepEqual(await listed.addresses('ff3e::1', 4000, 'udp'), ['ff3e::1']);
  await t.throwsAsync(listed.addresses('239.2.0.1', 4000, 'udp'), { message: /in none of the networks/ });
  await t.throwsAsync(listed.addresses('239.1.2.3', 4000, 'tcp'), { message: /is a multicast address$/ });
  await t.throwsAsync(guard.addresses('239.1.2.3', 4000, 'udp'), {
    message: /only a list of allowed networks permits/,
  });
});

test('the outbound guard says what speaks against a host', async (t) => {
  const objection = async (host: string, port: number) =>
    ((await guard.addresses(host, port).catch((error: Error) => error)) as Error).message;
  t.is(
    await objection('127.0.0.1', 8081),
    'pulling from 127.0.0.1:8081 is not allowed: the port belongs to this server or its cluster',
  );
  t.is(
    await objection('169.254.0.9', 9000),
    'pulling from 169.254.0.9:9000 is not allowed: 169.254.0.9 is a link-local, reserved or unspecified address',
  );
  for (const port of [0, 65_536, Number.NaN, -1])
    t.is(
      await objection('192.0.2.1', port),
      `pulling from 192.0.2.1:${port} is not allowed: that is not a port number`,
    );
});
