import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import type { ApiAnswer, ApiRequest } from '../../../../src/api/forwarding/peer-request.ts';
import {
  ANSWERED_HERE,
  answerAtOwner,
  answeredBy,
  type StreamOwners,
} from '../../../../src/api/forwarding/stream-owner.ts';
import { kilnError } from '../../../../src/errors.ts';

const ANSWER: ApiAnswer = { status: 201, type: 'text/plain', stale: true, body: 'of the owner' };

/** A node that has the stream `here`; the owner of all others answers as `owner` says. */
function open(t: ExecutionContext, owner: () => Promise<ApiAnswer | undefined> = async () => ANSWER) {
  const asked: ApiRequest[] = [];
  const owners = {
    isHere: ({ stream }: { stream: string }) => stream === 'here',
    ask: (_name: unknown, request: ApiRequest, onAsked: (node: string) => void) => {
      asked.push(request);
      onAsked('b');
      return owner();
    },
  };
  const app = Fastify();
  const by: (string | undefined)[] = [];
  app.addHook('onResponse', async (request) => void by.push(answeredBy(request)));
  answerAtOwner(app, owners as unknown as StreamOwners, 'operator');
  let handled = 0;
  const handler = () => `handled ${++handled}`;
  const stream = '/vhosts/:vhost/apps/:app/streams/:stream';
  app.get(stream, { preHandler: (_request, _reply, done) => done() }, handler);
  app.post(`${stream}(^[^:]+$)::sendEvent`, handler);
  app.get(`/stats${stream}`, { config: ANSWERED_HERE }, handler);
  app.get('/vhosts/:vhost/apps/:app/streams', handler);
  t.teardown(() => app.close());
  return { app, asked, by };
}

const PATH = '/vhosts/default/apps/app/streams';

test('the owner of a stream answers for it, with its status, type and staleness', async (t) => {
  const { app, asked, by } = open(t);
  const { statusCode, headers, body } = await app.inject({ url: `${PATH}/there?a=b`, headers: { host: 'api' } });
  t.is(statusCode, 201);
  t.is(headers['content-type'], 'text/plain');
  t.is(headers['x-kiln-stale'], 'true');
  t.is(body, 'of the owner');
  t.like(asked[0], { method: 'GET', url: `${PATH}/there?a=b`, host: 'api', user: 'operator', body: undefined });
  t.deepEqual(by, ['b']);
});

test('a body is forwarded, and a HEAD as a GET, once', async (t) => {
  const { app, asked } = open(t);
  await app.inject({ method: 'POST', url: `${PATH}/there:sendEvent`, payload: { a: 1 } });
  const { statusCode, body, headers } = await app.inject({ method: 'HEAD', url: `${PATH}/there` });
  t.deepEqual([statusCode, body, headers['content-length']], [201, '', String(ANSWER.body.length)]);
  t.deepEqual(
    asked.map(({ method, body: sent }) => [method, sent]),
    [
      ['POST', '{"a":1}'],
      ['GET', undefined],
    ],
  );
});

test('this node answers for a stream that it has, or no node has, and where no stream is named', async (t) => {
  const { app, asked, by } = open(t, async () => undefined);
  t.is((await app.inject(`${PATH}/here`)).body, 'handled 1');
  t.is((await app.inject({ method: 'POST', url: `${PATH}/here:sendEvent` })).body, 'handled 2');
  t.is((await app.inject(`/stats${PATH}/there`)).body, 'handled 3');
  t.is((await app.inject(PATH)).body, 'handled 4');
  t.deepEqual(asked, []);
  t.is((await app.inject(`${PATH}/nowhere`)).body, 'handled 5');
  t.is(asked.length, 1);
  t.deepEqual(by, [undefined, undefined, undefined, undefined, 'b']);
});

test('an owner that cannot be reached fails the call', async (t) => {
  const { app } = open(t, async () => {
    throw kilnError('ownerUnreachable');
  });
  t.is((await app.inject(`${PATH}/there`)).json<{ message: string }>().message, kilnError('ownerUnreachable').message);
});
