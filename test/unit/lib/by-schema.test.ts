import Fastify from 'fastify';
import test from 'ava';
import Type from 'typebox';
import { answerError } from '../../../src/api/envelope.ts';
import { goBySchemas } from '../../../src/lib/by-schema.ts';

test('a request that does not fit the schema of its route is 400 with what is wrong where', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  goBySchemas(app);
  app.setErrorHandler(answerError);
  const body = Type.Object({ name: Type.String(), urls: Type.Array(Type.String(), { minItems: 1 }) });
  app.post('/', { schema: { body } }, (request) => request.body);
  const post = (payload: object) => app.inject({ method: 'POST', url: '/', payload });
  const fine = { name: 'a', urls: ['b'], more: true };
  t.deepEqual((await post(fine)).json(), fine);
  for (const [payload, message] of [
    [{ urls: ['b'] }, /^\[HTTP\] body .*name.* \(400\)$/],
    [{ name: 'a', urls: [1] }, /^\[HTTP\] body\/urls\/0 .*string \(400\)$/],
    [{ name: 'a', urls: [] }, /^\[HTTP\] body\/urls .* \(400\)$/],
    [[], /^\[HTTP\] body .* \(400\)$/],
  ] as const) {
    const response = await post(payload);
    t.is(response.statusCode, 400);
    t.regex(response.json<{ message: string }>().message, message);
  }
});

test('an answer has what its schema names, and nothing else', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  goBySchemas(app);
  const answer = Type.Object({
    name: Type.String(),
    sizes: Type.Array(Type.Integer()),
    more: Type.Optional(Type.String()),
  });
  app.get('/', { schema: { response: { 200: answer } } }, () => ({ name: 'ü"', sizes: [1, 2], secret: 'x' }));
  for (let i = 0; i < 2; i++) t.is((await app.inject('/')).body, '{"name":"ü\\"","sizes":[1,2]}');
});
