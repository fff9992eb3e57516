import test from 'ava';
import { pino } from 'pino';
import { OutcomeUnknownError, UnreachableError, type NodeRow, type PeerHandler, type PeerResponse } from '#cluster';
import { kilnError } from '../../../../src/errors.ts';
import { PeerCalls } from '../../../../src/origins/peer-calls.ts';
import {
  ResourceNeighbours,
  type ResourceAnswer,
  type ResourceRequest,
} from '../../../../src/webrtc/signalling/resource-neighbours.ts';

const REQUEST: ResourceRequest = {
  method: 'DELETE',
  key: 'key.2',
  endpoint: '/app/s',
  ifMatch: undefined,
  type: undefined,
  body: undefined,
};
const silent = pino({ level: 'silent' });

/** A node that asks, and what the other one answers it. */
function asking(answer: () => Promise<PeerResponse>): ResourceNeighbours {
  const self = { id: 'a', incarnation: '1' };
  const nodes = (): readonly NodeRow[] => [{ id: 'b', incarnation: '2' } as NodeRow];
  return new ResourceNeighbours({ self, nodes, forward: answer }, new PeerCalls({ serve: () => {} }, silent));
}

/** The other one, answering with what it makes of requests. */
function answering(change: (request: ResourceRequest) => Promise<ResourceAnswer>): () => Promise<PeerResponse> {
  let handler: PeerHandler | undefined;
  const calls = new PeerCalls({ serve: (taken) => void (handler = taken) }, silent);
  new ResourceNeighbours(
    { self: { id: 'b', incarnation: '2' }, nodes: () => [], forward: async () => reply(500, '') },
    calls,
  ).serve(change);
  const call = { method: 'POST', path: '/webrtc/', headers: {}, body: Buffer.from(JSON.stringify(REQUEST)) };
  return async () => (await handler?.(call, { id: 'a', incarnation: '1' })) ?? reply(500, '');
}

function reply(status: number, text: string): PeerResponse {
  return { status, headers: {}, body: Buffer.from(text) };
}

test('the answer and the errors of the node that has a session are those of this one', async (t) => {
  const answer = { status: 204, headers: { etag: '"x"' }, body: '' };
  t.deepEqual(await asking(answering(async () => answer)).ask(REQUEST), answer);
  const refusing = asking(answering(async () => Promise.reject(kilnError('preconditionRequired'))));
  await t.throwsAsync(refusing.ask(REQUEST), { name: 'KilnError', code: 'preconditionRequired', message: /If-Match/ });
});

test('whatever else it answers, its outcome is not known', async (t) => {
  const answers = [
    reply(404, ''),
    reply(500, ''),
    reply(200, ''),
    reply(200, 'null'),
    reply(200, '{"status":"200"}'),
    reply(200, '{"error":{}}'),
    reply(200, '{"status":200,"headers":{"a":1},"body":""}'),
    reply(200, '{"status":999,"headers":{},"body":""}'),
    reply(503, JSON.stringify({ status: 200, headers: {}, body: '' })),
  ];
  for (const answer of answers) {
    await t.throwsAsync(
      asking(async () => answer).ask(REQUEST),
      { name: 'KilnError', code: 'ownerSilent' },
      answer.body.toString(),
    );
  }
  await t.throwsAsync(asking(() => Promise.reject(new OutcomeUnknownError('gone'))).ask(REQUEST), {
    code: 'ownerSilent',
  });
  await t.throwsAsync(asking(() => Promise.reject(new UnreachableError('away'))).ask(REQUEST), {
    code: 'ownerUnreachable',
  });
});

test("a session of this node, or of none, is nobody else's", async (t) => {
  const neighbours = asking(async () => reply(500, ''));
  for (const key of ['key.1', 'key.3', 'key']) t.is(await neighbours.ask({ ...REQUEST, key }), undefined);
});
