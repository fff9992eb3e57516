import test from 'ava';
import { readinessOf, type NodeState } from '../../../src/server/readiness.ts';

const CLUSTER = { draining: false, state: 'connected', rejected: { entries: 0, rows: 0, certificates: 0 } } as const;
const READY: NodeState = { unready: undefined, leaving: false, cluster: CLUSTER, full: undefined };

test('a node is ready once it has started and until it drains', (t) => {
  t.deepEqual(readinessOf(READY), { ready: true, full: undefined });
  t.deepEqual(readinessOf({ ...READY, cluster: undefined }), { ready: true, full: undefined });
  t.deepEqual(readinessOf({ ...READY, unready: 'starting' }), { ready: false, reason: 'starting' });
  t.deepEqual(readinessOf({ ...READY, leaving: true }), { ready: false, reason: 'draining' });
  t.deepEqual(readinessOf({ ...READY, cluster: { ...CLUSTER, draining: true } }), { ready: false, reason: 'draining' });
  t.deepEqual(readinessOf({ ...READY, unready: 'stopping', leaving: true }), { ready: false, reason: 'stopping' });
});

test('a node that is full or degraded stays ready and says so; without its store that is the reason', (t) => {
  t.deepEqual(readinessOf({ ...READY, full: 'viewers' }), { ready: true, full: 'viewers' });
  const rejected = { entries: 1, rows: 0, certificates: 2 };
  t.deepEqual(readinessOf({ ...READY, cluster: { ...CLUSTER, rejected } }), {
    ready: true,
    full: undefined,
    degraded:
      'refused, because it is not authenticated as part of this cluster: configuration entries 1, node rows 0, certificates 2',
  });
  t.deepEqual(readinessOf({ ...READY, full: 'CPU', cluster: { ...CLUSTER, state: 'degraded', rejected } }), {
    ready: true,
    full: 'CPU',
    degraded: 'the store of the cluster cannot be reached',
  });
});
