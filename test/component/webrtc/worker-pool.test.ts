import test from 'ava';
import { createLogger } from '../../../src/log/log.ts';
import { WorkerPool } from '../../../src/webrtc/worker-pool.ts';
import { freePorts } from '../../support/network/ports.ts';

test('addresses of both families that are not local are announced for one port', async (t) => {
  const [port] = freePorts(1) as [number];
  const iceCandidate = ['198.51.100.3', '2001:db8::7'].map((address) => {
    return { address, first: port, last: port, protocol: 'udp' as const };
  });
  const pool = await WorkerPool.create([{ iceCandidate, enableLinkLocalAddress: false }], createLogger('silent'));
  t.teardown(() => pool.close());
  t.deepEqual(
    pool.workers[0]?.candidates.map(({ address }) => address),
    ['198.51.100.3', '2001:db8::7'],
  );
});

test('IceWorkerCount says how many workers there are, as far as there are ports', async (t) => {
  const any = { address: '127.0.0.1', first: 0, last: 0, protocol: 'udp' as const };
  for (const [iceWorkerCount, cores, workers] of [
    [1, 4, 1],
    [2, 1, 2],
    [undefined, 1, 1],
  ] as const) {
    const config = { iceCandidate: [any], enableLinkLocalAddress: false, iceWorkerCount };
    const pool = await WorkerPool.create([config], createLogger('silent'), cores);
    t.teardown(() => pool.close());
    t.is(pool.workers.length, workers);
  }
});
