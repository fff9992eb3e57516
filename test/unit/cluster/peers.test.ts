import test from 'ava';
import type { PeerPort } from '../../../cluster/peer/port.ts';
import type { Nodes } from '../../../cluster/redis/nodes.ts';
import { Peers } from '../../../cluster/redis/peers.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import type { PeerRequest } from '../../../cluster/types.ts';

/** Two nodes without Redis; what `a` says arrives when it is delivered. */
function twoNodes() {
  const self = (id: string) => ({ id, incarnation: `${id}1` });
  const sent: PeerRequest[] = [];
  const nodeOf = (id: string, other: string, port: Pick<PeerPort, 'call'>) =>
    new Peers({
      self: self(id),
      port: port as PeerPort,
      nodes: { peers: () => [{ id: other, lost: false }] } as unknown as Nodes,
      timing: timingOf(),
      isDegraded: () => true,
      holds: () => false,
      laterClaims: () => [],
    });
  const b = nodeOf('b', 'a', { call: () => Promise.reject(new Error('b asks nobody')) });
  const deliver = (request: PeerRequest) => b.answer(request, self('a'));
  const a = nodeOf('a', 'b', {
    call: async (_to, request) => {
      sent.push(request);
      return await deliver(request);
    },
  });
  return { a, b, deliver, sent };
}

test('a promise ends when Redis has what its asker holds', async (t) => {
  const { a, b } = twoNodes();
  t.true(b.mayClaim);
  await a.allWithoutStore([['k', 1]]);
  t.false(b.mayClaim);
  await a.confirm();
  t.true(b.mayClaim);
});

test('a promise of a later outage outlasts the end of an earlier one', async (t) => {
  const { a, b, deliver, sent } = twoNodes();
  await a.allWithoutStore([['k', 1]]);
  await a.confirm();
  const late = sent[1] as PeerRequest;
  await a.allWithoutStore([['k', 1]]);
  await deliver(late);
  t.false(b.mayClaim);
});

test('a node that asked its peers for no promise ends none', async (t) => {
  const { a, b, sent } = twoNodes();
  await a.confirm();
  t.deepEqual(sent, []);
  await a.allWithoutStore([]);
  const [question] = sent as [PeerRequest];
  await b.answer(question, { id: 'c', incarnation: 'c1' });
  await a.confirm();
  t.false(b.mayClaim, 'the other asker has confirmed nothing');
});
