import test from 'ava';
import type { NodeRow } from '#cluster';
import { kilnError } from '../../../../src/errors.ts';
import {
  ResourceNeighbours,
  type ResourceAnswer,
  type ResourceRequest,
} from '../../../../src/webrtc/signalling/resource-neighbours.ts';
import { linkedNodes } from '../../../support/cluster/linked-nodes.ts';

const REQUEST: ResourceRequest = { method: 'DELETE', key: 'key.of b', endpoint: '/app/s' };

/** A node that asks another one, which answers with what it makes of requests. */
function pair(change?: (request: ResourceRequest) => Promise<ResourceAnswer>) {
  const nodes = linkedNodes('a', 'b');
  const rows = nodes.map(({ self }) => self as NodeRow);
  const [asking, answering] = nodes.map(
    ({ self, calls }) => new ResourceNeighbours({ self, nodes: () => rows }, calls),
  ) as [ResourceNeighbours, ResourceNeighbours];
  if (change !== undefined) answering.serve(change);
  return { asking, answering };
}

test('the answer and the errors of the node that has a session are those of this one', async (t) => {
  const answer = { status: 204, headers: { etag: '"x"' }, body: '' };
  const seen: ResourceRequest[] = [];
  const { asking } = pair(async (request) => {
    seen.push(request);
    return answer;
  });
  t.deepEqual(await asking.ask({ ...REQUEST, ifMatch: undefined, body: 'a=b' }), answer);
  t.deepEqual(seen, [{ ...REQUEST, body: 'a=b' }]);
  const refusing = pair(() => Promise.reject(kilnError('preconditionRequired'))).asking;
  await t.throwsAsync(refusing.ask(REQUEST), { name: 'KilnError', code: 'preconditionRequired', message: /If-Match/ });
});

test('an answer that is none leaves the outcome unknown', async (t) => {
  const answers: unknown[] = [
    null,
    { status: '200' },
    { status: 200, headers: { a: 1 }, body: '' },
    { status: 999, headers: {}, body: '' },
  ];
  for (const answer of answers) {
    const { asking } = pair(async () => answer as ResourceAnswer);
    await t.throwsAsync(asking.ask(REQUEST), { name: 'KilnError', code: 'ownerSilent' }, JSON.stringify(answer));
  }
});

test('a session of this node, or of none, is not forwarded', async (t) => {
  const { asking } = pair();
  for (const key of ['key.of a', 'key.of c', 'key']) t.is(await asking.ask({ ...REQUEST, key }), undefined);
  t.true(asking.newKey().endsWith('.of a'));
});
