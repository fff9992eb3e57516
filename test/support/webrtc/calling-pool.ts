import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { WorkerPool } from '../../../src/webrtc/worker-pool.ts';

/** A media worker for calls to servers. */
export async function callingPool(t: Pick<ExecutionContext, 'teardown'>): Promise<WorkerPool> {
  const entry = { address: '127.0.0.1', protocol: 'udp', first: 0, last: 0 } as const;
  const config = { iceCandidate: [entry], enableLinkLocalAddress: false, iceWorkerCount: 1 };
  const pool = await WorkerPool.create([config], pino({ level: 'silent' }));
  t.teardown(() => pool.close());
  return pool;
}
