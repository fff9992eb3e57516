import test, { type ExecutionContext } from 'ava';
import { Distrust } from '../../../cluster/distrust.ts';
import { PeerPort } from '../../../cluster/peer/port.ts';
import type { Nodes } from '../../../cluster/redis/nodes.ts';
import { Peers } from '../../../cluster/redis/peers.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import type { NodeIdentity } from '../../../cluster/types.ts';

const ASKER = { id: 'a', incarnation: '1' } as const;
const ASKED = { id: 'b', incarnation: '1' } as const;

/** A port of a node that knows where the other one is. */
function portOf(
  t: ExecutionContext,
  self: NodeIdentity,
  { address, aheadMs = 0 }: { address?: string; aheadMs?: number },
) {
  const port = new PeerPort({
    host: '127.0.0.1',
    port: 0,
    secrets: ['secret'],
    self,
    now: () => Date.now() + aheadMs,
    addressOf: () => address,
    distrust: new Distrust(({ reason }) => t.fail(reason)),
    onReached: () => {},
    onRefused: () => {},
    onFault: (error) => t.fail(error.message),
  });
  t.teardown(() => port.close());
  return port;
}

/** @returns whether a node lives, by what it says to another one */
async function lives(
  t: ExecutionContext,
  node: NodeIdentity,
  { aheadMs }: { aheadMs: number },
): Promise<boolean | undefined> {
  const answer = { status: 200, headers: {}, body: Buffer.from('{}') };
  const address = await portOf(t, ASKED, { aheadMs }).listen(async () => answer);
  const peers = new Peers({
    self: ASKER,
    port: portOf(t, ASKER, { address }),
    nodes: { addressOf: (id: string) => (id === ASKED.id ? address : undefined) } as unknown as Nodes,
    timing: timingOf({ ttl: 20_000 }),
    isDegraded: () => false,
    holds: () => false,
    superseding: () => [],
  });
  return await peers.lives(node);
}

test('a node lives whose clock was set while it had no Redis', async (t) => {
  t.true(await lives(t, ASKED, { aheadMs: 0 }));
  t.true(await lives(t, ASKED, { aheadMs: 3_600_000 }));
  t.true(await lives(t, ASKED, { aheadMs: -3_600_000 }));
});

test('a node that is not known here may live', async (t) => {
  t.is(await lives(t, { id: 'c', incarnation: '1' }, { aheadMs: 0 }), undefined);
});

test('a life of a node is over when another one answers', async (t) => {
  t.false(await lives(t, { ...ASKED, incarnation: '0' }, { aheadMs: 0 }));
  t.false(await lives(t, { ...ASKED, incarnation: '0' }, { aheadMs: 3_600_000 }));
});
