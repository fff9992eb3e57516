import type { FastifyReply, FastifyRequest } from 'fastify';
import test from 'ava';
import Type from 'typebox';
import type { NodeIdentity } from '#cluster';
import { AllNodes } from '../../../../src/api/forwarding/all-nodes.ts';
import type { ApiAnswer, ApiRequest } from '../../../../src/api/forwarding/peer-request.ts';
import { kilnError } from '../../../../src/errors.ts';
import type { OtherNodes, Reply } from '../../../../src/peers/other-nodes.ts';

const answerOf = (status: number, body: unknown): ApiAnswer => ({ status, stale: false, body: JSON.stringify(body) });

/** Nodes by their ids, with what each answers; undefined: nothing. */
function open(nodes: Readonly<Record<string, ApiAnswer | undefined>>) {
  const asked: ApiRequest[] = [];
  const logged: string[] = [];
  const headers: string[] = [];
  const replyOf = (id: string): Reply<ApiAnswer> => ({
    node: { id } as NodeIdentity,
    answer: nodes[id],
    error: nodes[id] === undefined ? kilnError('ownerSilent') : undefined,
  });
  const others = {
    self: { id: 'self' },
    ask: async () => Object.keys(nodes).map(replyOf),
    askOne: async ({ id }: NodeIdentity, _call: unknown, request: ApiRequest) => {
      asked.push(request);
      return replyOf(id);
    },
  } as unknown as OtherNodes;
  const request = {
    ...{ url: '/x', id: 'r', host: 'h', method: 'DELETE', ip: '192.0.2.1', headers: { host: 'h' } },
    log: { warn: ({ node }: { node: string }) => logged.push(node) },
  } as unknown as FastifyRequest;
  const reply = {
    header: (name: string) => headers.push(name),
    code: (status: number) => ({ send: (body: string) => ({ status, body }) }),
  } as unknown as FastifyReply;
  return { nodes: new AllNodes({ position: '7' }, others, 'user'), asked, logged, headers, request, reply };
}

const Payload = Type.Object({ value: Type.Integer() });

test('what nodes answer is collected, and those that do not are named', async (t) => {
  const { nodes, request, reply, logged, headers } = open({
    a: answerOf(200, { response: { value: 1 } }),
    b: undefined,
    c: answerOf(200, { response: { value: 'other' } }),
    d: answerOf(404, {}),
  });
  const { answers, silent } = await nodes.each(request, reply, Payload);
  t.deepEqual(
    Array.from(answers, ([{ id }, { value }]) => [id, value]),
    [['a', 1]],
  );
  t.deepEqual(silent, ['b', 'c', 'd']);
  t.deepEqual(logged, ['b', 'c', 'd']);
  t.true(headers.includes('x-kiln-stale'));
  await nodes.each(request, reply, Payload);
  t.is(logged.length, 3, 'a reason is logged once');
});

test('a node that does not have an object is no node that does not answer', async (t) => {
  const { nodes, request, reply, headers } = open({
    a: answerOf(404, {}),
    b: answerOf(200, { response: { value: 2 } }),
  });
  const { answers, silent } = await nodes.each(request, reply, Payload, true);
  t.deepEqual([...answers.values()], [{ value: 2 }]);
  t.deepEqual(silent, []);
  t.deepEqual(headers, []);
});

test('a node that runs alone has no others', async (t) => {
  const { request, reply } = open({});
  t.deepEqual(await new AllNodes({ position: '7' }, undefined).each(request, reply, Payload), {
    answers: new Map(),
    silent: [],
  });
});

test('a change is passed to a node with its caller, and its answer back', async (t) => {
  const { nodes, asked, request, reply } = open({ a: answerOf(409, { message: 'no' }), b: undefined });
  t.deepEqual((await nodes.pass(request, reply, { id: 'a' } as NodeIdentity)) as unknown, {
    status: 409,
    body: '{"message":"no"}',
  });
  t.like(asked[0], { method: 'DELETE', url: '/x', user: 'user', remote: '192.0.2.1', position: '7' });
  const error = await t.throwsAsync(nodes.pass(request, reply, { id: 'b' } as NodeIdentity));
  t.like(error, { code: 'recordingNodeSilent', status: 504 });
  t.regex(String(error?.message), /\[b\]; it may or may not have been deleted/);
});
