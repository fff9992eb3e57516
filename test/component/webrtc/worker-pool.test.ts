import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createLogger } from '../../../src/log/log.ts';
import { WorkerPool } from '../../../src/webrtc/worker-pool.ts';
import { freePorts } from '../../support/network/ports.ts';
import { until, untilWorks } from '../../support/time/until.ts';

const LOCAL = '127.0.0.1';
const ANY = { address: LOCAL, first: 0, last: 0, protocol: 'udp' as const };
const WAY = { protocol: undefined, entries: [ANY] };

interface Options {
  readonly iceCandidate?: Parameters<typeof WorkerPool.create>[0][number]['iceCandidate'];
  readonly iceWorkerCount?: number;
  readonly cores?: number;
}

async function create(t: ExecutionContext, { iceCandidate = [ANY], iceWorkerCount, cores }: Options = {}) {
  const config = { iceCandidate, enableLinkLocalAddress: false, ...(iceWorkerCount && { iceWorkerCount }) };
  const pool = await WorkerPool.create([config], createLogger('silent'), cores);
  t.teardown(() => pool.close());
  return pool;
}

/** Places a peer for good. @returns its worker */
function place(pool: WorkerPool) {
  const worker = pool.pick(WAY, () => false);
  worker.sessions++;
  return worker;
}

async function udp(port: number): Promise<void> {
  const socket = createSocket('udp4').bind(port, LOCAL);
  await once(socket, 'listening');
  socket.close();
}

async function tcp(port: number): Promise<void> {
  const server = createServer().listen(port, LOCAL);
  await once(server, 'listening');
  server.close();
}

test('addresses of both families that are not local are announced for one port', async (t) => {
  const [port] = freePorts(1) as [number];
  const iceCandidate = ['198.51.100.3', '2001:db8::7'].map((address) => {
    return { address, first: port, last: port, protocol: 'udp' as const };
  });
  const pool = await create(t, { iceCandidate });
  await pool.ready();
  t.deepEqual(
    pool.workers[0]?.candidates.map(({ address }) => address),
    ['198.51.100.3', '2001:db8::7'],
  );
});

test('IceWorkerCount says how many workers there are, as far as there are ports', async (t) => {
  for (const [iceWorkerCount, cores, workers] of [
    [1, 4, 1],
    [2, 1, 2],
    [undefined, 1, 1],
  ] as const) {
    const pool = await create(t, { cores, ...(iceWorkerCount && { iceWorkerCount }) });
    await pool.ready();
    await until('all run', () => {
      place(pool);
      return pool.workers.length >= workers;
    });
    t.deepEqual(
      pool.workers.map(({ index }) => index),
      Array.from({ length: workers }, (_, index) => index),
    );
  }
});

test('nothing runs before the first peer, and nobody else gets the ports', async (t) => {
  const [port] = freePorts(1) as [number];
  const iceCandidate = (['udp', 'tcp'] as const).map((protocol) => {
    return { address: LOCAL, first: port, last: port, protocol };
  });
  const pool = await create(t, { iceCandidate });
  t.is(pool.workers.length, 0);
  await t.throwsAsync(udp(port), { code: 'EADDRINUSE' });
  await t.throwsAsync(tcp(port), { code: 'EADDRINUSE' });
  await Promise.all([pool.ready(), pool.ready()]);
  t.is(pool.workers.length, 1);
  t.deepEqual(
    pool.workers[0]?.candidates.map(({ protocol, port: opened }) => [protocol, opened]),
    [
      ['udp', port],
      ['tcp', port],
    ],
  );
  await t.throwsAsync(udp(port), { code: 'EADDRINUSE' });
  await t.throwsAsync(tcp(port), { code: 'EADDRINUSE' });
});

test('a port that is taken is reported at once, and the others are free again', async (t) => {
  const [first, second] = freePorts(2) as [number, number];
  const taken = createSocket('udp4').bind(second, LOCAL);
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const iceCandidate = [first, second].map((port) => {
    return { address: LOCAL, first: port, last: port, protocol: 'udp' as const };
  });
  await t.throwsAsync(create(t, { iceCandidate }), { code: 'EADDRINUSE' });
  await t.notThrowsAsync(untilWorks('the port is free', () => udp(first)));
});

test('ports of workers that were never started are free after the end', async (t) => {
  const [port] = freePorts(1) as [number];
  const pool = await create(t, { iceCandidate: [{ address: LOCAL, first: port, last: port, protocol: 'udp' }] });
  pool.close();
  await t.notThrowsAsync(untilWorks('the port is free', () => udp(port)));
  await pool.ready();
  t.is(pool.workers.length, 0);
});

test('a second worker starts for a peer that would not be alone, and takes the next', async (t) => {
  const pool = await create(t, { iceWorkerCount: 2 });
  await pool.ready();
  const first = place(pool);
  t.is(pool.workers.length, 1);
  t.is(place(pool), first);
  await until('both run', () => pool.workers.length === 2);
  t.not(place(pool), first);
});

test('peers of a stream stay with its worker, and the next one starts before they need it', async (t) => {
  const pool = await create(t, { iceWorkerCount: 2 });
  await pool.ready();
  const first = place(pool);
  const next = () => pool.pick(WAY, (worker) => worker === first);
  for (; first.sessions <= 25; first.sessions++) t.is(next(), first);
  t.is(pool.workers.length, 1);
  await until('another runs', () => next() === first && pool.workers.length === 2);
  first.sessions = 49;
  t.is(next(), first);
  first.sessions = 51;
  t.not(next(), first);
});

test('who comes when the only worker has died waits for the next one', async (t) => {
  const pool = await create(t, { iceWorkerCount: 1 });
  await pool.ready();
  const pid = pool.workers[0]?.pid as number;
  process.kill(pid, 'SIGKILL');
  await until('it has ended', () => pool.died === 1);
  t.is(pool.workers.length, 0);
  await pool.ready();
  t.is(pool.workers.length, 1);
  t.not(pool.workers[0]?.pid, pid);
});

test('nobody waits for the next worker of a pool that is closed', async (t) => {
  const pool = await create(t, { iceWorkerCount: 1 });
  await pool.ready();
  process.kill(pool.workers[0]?.pid as number, 'SIGKILL');
  await until('it has ended', () => pool.died === 1);
  const waits = pool.ready();
  pool.close();
  await t.notThrowsAsync(waits);
});

test('in place of a worker that died another one starts at once, and it is replaced', async (t) => {
  const pool = await create(t, { iceWorkerCount: 2 });
  await pool.ready();
  const pid = pool.workers[0]?.pid as number;
  process.kill(pid, 'SIGKILL');
  await until('it has ended', () => pool.workers.every((worker) => worker.pid !== pid));
  await pool.ready();
  t.true(pool.workers.length > 0);
  await until('both run', () => pool.workers.length === 2);
  t.is(pool.died, 1);
});
