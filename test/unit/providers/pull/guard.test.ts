import test from 'ava';
import type { NodeRow } from '#cluster';
import { PullGuard } from '../../../../src/providers/pull/guard.ts';

const node: NodeRow = {
  id: 'b', incarnation: 'x', load: 0, full: false, info: {}, address: 'http://192.0.2.7:7000', state: 'ready', uptimeMs: 0, silentMs: 0,
};
const guard = new PullGuard({ nodes: () => [node], ports: new Set([8081, 6379]), hosts: new Set(['192.0.2.9']) });
const refused = { name: 'PullError', message: /nothing is pulled from/ };

test('link-local, unspecified and multicast addresses are never pulled from, in any form', async (t) => {
  for (const host of ['169.254.169.254', '0.0.0.0', '224.0.0.1', '255.255.255.255', '::', 'fe80::1', 'ff02::1', '::ffff:169.254.1.1']) {
    await t.throwsAsync(guard.addresses(host, 9000), refused, host);
  }
  await t.throwsAsync(guard.addresses('name.invalid', 9000), { name: 'PullError', message: /cannot be resolved/ });
});

test('the ports of the cluster are out of bounds on its own machines, and only there', async (t) => {
  for (const [host, port] of [
    ['127.0.0.1', 8081], ['127.9.9.9', 6379], ['::1', 8081], ['localhost', 8081], ['::ffff:127.0.0.1', 8081],
    ['192.0.2.7', 7000], ['192.0.2.7', 8081], ['127.0.0.1', 7000], ['192.0.2.9', 6379],
  ] as const) await t.throwsAsync(guard.addresses(host, port), refused, `${host} ${port}`);
  t.deepEqual(await guard.addresses('192.0.2.7', 9000), ['192.0.2.7']);
  t.deepEqual(await guard.addresses('192.0.2.1', 8081), ['192.0.2.1']);
  t.deepEqual(await guard.addresses('127.0.0.1', 9000), ['127.0.0.1']);
  t.true((await guard.addresses('localhost', 9000)).length > 0);
});
