import test, { type ExecutionContext } from 'ava';
import type { Life, Nodes } from '../../../cluster/redis/nodes.ts';
import { Peers } from '../../../cluster/redis/peers.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import type { NodeIdentity } from '../../../cluster/types.ts';
import { peerPort } from '../../support/cluster/peer-port.ts';

const ASKER = { id: 'a', incarnation: '1' } as const;
const ASKED = { id: 'b', incarnation: '1' } as const;

/** A port of a node that knows where the other one is. */
const portOf = (
  t: ExecutionContext,
  self: NodeIdentity,
  { address, ...clock }: { readonly address?: string; readonly aheadMs?: number },
) => peerPort(t, self, { secrets: ['secret'], addressOf: () => address, ...clock });

const ANSWER = { status: 200, headers: {}, body: Buffer.from('{}') };

/** What becomes known of a node, by what it says to another one. */
async function ask(
  t: ExecutionContext,
  node: NodeIdentity,
  { aheadMs = 0, answers = true, ttl = 20_000 }: { aheadMs?: number; answers?: boolean; ttl?: number } = {},
): Promise<Life> {
  const asked = portOf(t, ASKED, { aheadMs });
  const address = await asked.listen(() => (answers ? Promise.resolve(ANSWER) : new Promise<never>(() => {})));
  const peers = new Peers({
    self: ASKER,
    port: portOf(t, ASKER, { address }),
    nodes: { addressOf: (id: string) => (id === ASKED.id ? address : undefined) } as unknown as Nodes,
    timing: timingOf({ ttl }),
    isDegraded: () => false,
    holds: () => false,
    laterClaims: () => [],
  });
  return await peers.ask(node);
}

test('a node lives whose clock was set while it had no Redis', async (t) => {
  t.is(await ask(t, ASKED), 'lives');
  t.is(await ask(t, ASKED, { aheadMs: 3_600_000 }), 'lives');
  t.is(await ask(t, ASKED, { aheadMs: -3_600_000 }), 'lives');
});

test('a node that is not known here may live', async (t) => {
  t.is(await ask(t, { id: 'c', incarnation: '1' }), 'unknown');
});

test('a life of a node is over when another one answers', async (t) => {
  t.is(await ask(t, { ...ASKED, incarnation: '0' }), 'over');
  t.is(await ask(t, { ...ASKED, incarnation: '0' }, { aheadMs: 3_600_000 }), 'over');
});

test('a node that accepts a connection and does not answer is silent', async (t) => {
  t.is(await ask(t, ASKED, { answers: false, ttl: 500 }), 'silent');
});
