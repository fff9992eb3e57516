import Fastify from 'fastify';
import test from 'ava';
import { CallCounts } from '../../src/api/call-counts.ts';
import { apiRoutes } from '../../src/api/app.ts';
import { Exposition } from '../../src/stats/metrics/exposition.ts';
import { gauge } from '../../src/stats/metrics/family.ts';
import { metricsRoutes } from '../../src/web/metrics.ts';
import { apiOptions, basic, TOKEN } from '../support/api/api.ts';

const routes = metricsRoutes(new Exposition([gauge('kiln_level', 'The level.', () => 1)]));
const TEXT = '# HELP kiln_level The level.\n# TYPE kiln_level gauge\nkiln_level 1\n';

test('the metrics on the port of the API need the token', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  await app.register(apiRoutes({ ...(await apiOptions({ etag: true })), beside: routes }));
  const { statusCode, headers, body } = await app.inject({
    url: '/metrics',
    headers: { authorization: basic(TOKEN) },
  });
  t.is(statusCode, 200);
  t.is(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  t.is(headers['etag'], undefined);
  t.is(body, TEXT);
  t.is((await app.inject({ url: '/metrics' })).statusCode, 401);
  t.is((await app.inject({ url: '/metrics', headers: { authorization: basic('user:wrong') } })).statusCode, 401);
  t.is(
    (await app.inject({ method: 'POST', url: '/metrics', headers: { authorization: basic(TOKEN) } })).statusCode,
    404,
  );
});

test('the metrics on a port of their own need no token', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  await app.register(routes);
  const { statusCode, body } = await app.inject({
    url: '/metrics',
    headers: { accept: 'application/openmetrics-text' },
  });
  t.is(statusCode, 200);
  t.is(body, `${TEXT}# EOF\n`);
});

test('calls are counted by route, whatever their path', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  const calls = new CallCounts();
  await app.register(apiRoutes({ ...(await apiOptions()), calls }));
  const authorization = basic(TOKEN);
  for (const name of ['default', 'second', 'none'])
    await app.inject({ url: `/v1/vhosts/${name}/apps?now`, headers: { authorization } });
  await app.inject({ url: '/v1/anything', headers: { authorization } });
  await app.inject({ url: '/v1/vhosts' });
  await app.inject({ method: 'DELETE', url: '/v1/vhosts/second', headers: { authorization } });
  t.deepEqual(
    Array.from(calls.all, ({ method, route, status, count }) => `${method} ${route} ${status} ${count}`).sort(),
    [
      'DELETE /v1/vhosts/:vhost 403 1',
      'GET /v1/vhosts 401 1',
      'GET /v1/vhosts/:vhost/apps 200 2',
      'GET /v1/vhosts/:vhost/apps 404 1',
      'GET none 404 1',
    ],
  );
});
