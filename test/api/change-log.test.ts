import Fastify from 'fastify';
import test from 'ava';
import { apiRoutes } from '../../src/api/app.ts';
import { jsonLogger } from '../../src/log.ts';
import { apiOptions, basic, TOKEN } from '../support/api.ts';

test('what changes something is logged with who asked for it; reads and refused calls are not', async (t) => {
  const lines: string[] = [];
  const log = jsonLogger('info', { write: (line: string) => void lines.push(line) });
  const app = Fastify();
  t.teardown(() => app.close());
  await app.register(apiRoutes({ ...(await apiOptions()), log }));
  const call = (method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object, token = TOKEN) =>
    app.inject({ method, url, headers: { authorization: basic(token) }, remoteAddress: '203.0.113.9', payload });
  const vhost = { name: 'made', host: { names: ['made.example'] } };
  t.is((await call('POST', '/v1/vhosts?secret=x', [vhost])).statusCode, 200);
  t.is((await call('GET', '/v1/vhosts')).statusCode, 200);
  t.is((await call('DELETE', '/v1/vhosts/none')).statusCode, 404);
  t.is((await call('DELETE', '/v1/vhosts/made', undefined, 'wrong:token')).statusCode, 401);
  const gone = await call('DELETE', '/v1/vhosts/made');
  t.is(gone.statusCode, 200);
  const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  t.deepEqual(
    logged.map(({ msg }) => msg),
    ['POST /v1/vhosts (made)', 'DELETE /v1/vhosts/made'],
  );
  t.like(logged[1], { level: 'info', event: 'api.changed', module: 'api', remote: '203.0.113.9', status: 200 });
  t.is(logged[1]?.requestId, gone.headers['x-request-id']);
});
