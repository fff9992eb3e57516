import Fastify from 'fastify';
import test from 'ava';
import { apiRoutes } from '../../src/api/app.ts';
import { healthRoutes, type Readiness } from '../../src/web/health.ts';
import { TOKEN, apiOptions, basic, openApi } from '../support/api/api.ts';

const MISSING = 'Authorization header is required to call API';
const MALFORMED = 'Invalid authorization header';
const FORMAT = 'Invalid credential format';
const WRONG = 'Invalid credential';

const refused: Record<string, [header: string | undefined, text: string]> = {
  'no header': [undefined, MISSING],
  'an empty header': ['', MISSING],
  'a scheme alone': ['Basic', MALFORMED],
  'a scheme and a space': ['Basic ', MALFORMED],
  'three words': [`${basic(TOKEN)} more`, MALFORMED],
  'two spaces': [`Basic  ${Buffer.from(TOKEN).toString('base64')}`, MALFORMED],
  'another scheme': ['Bearer abc', 'Not supported credential type: Bearer'],
  'a long scheme': [`${'x'.repeat(500)} abc`, `Not supported credential type: ${'x'.repeat(32)}`],
  'no base64': ['Basic !!!!', FORMAT],
  'no base64 but a token68': ['Basic ab~c', FORMAT],
  'a wrong token': [basic('user-id:wrong'), WRONG],
  'the start of the token': [basic(TOKEN.slice(0, -1)), WRONG],
  'the token and more': [basic(`${TOKEN}x`), WRONG],
  'the token in other case': [basic(TOKEN.toUpperCase()), WRONG],
  'a token without a colon': [basic('user-id'), WRONG],
  'control characters': [basic('user\x00:x'), WRONG],
  'an empty token': ['Basic =', FORMAT],
};

for (const [name, [header, text]] of Object.entries(refused)) {
  test(`a request without the right token is answered 401: ${name}`, async (t) => {
    const { app } = await openApi(t);
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      for (const url of ['/v1/version', '/v1/vhosts/default/apps/app/streams/s', '/nothing', '/openapi.json']) {
        const headers = header === undefined ? {} : { authorization: header };
        const response = await app.inject({ method, url, headers });
        t.is(response.statusCode, 401);
        t.deepEqual(response.json(), { message: `[HTTP] ${text} (401)`, statusCode: 401 });
        t.is(response.headers['www-authenticate'], 'Basic realm="Kiln"');
        t.is(response.headers['content-type'], 'application/json;charset=UTF-8');
      }
    }
  });
}

test('the token is taken with any case of the scheme', async (t) => {
  const { call } = await openApi(t);
  for (const scheme of ['Basic', 'basic', 'BASIC']) {
    const authorization = basic(TOKEN).replace('Basic', scheme);
    const { status, headers } = await call('GET', '/v1/version', { authorization });
    t.is(status, 200);
    t.is(headers['www-authenticate'], undefined);
  }
});

test('access tokens of every shape are accepted', async (t) => {
  for (const accessToken of ['no-colon', ':', 'a:b:c', 'ключ', ' spaced out ', 'x'.repeat(2000)]) {
    const { call } = await openApi(t, { accessToken });
    t.is((await call('GET', '/v1/version', { authorization: basic(accessToken) })).status, 200, accessToken);
    t.is((await call('GET', '/v1/version')).status, 401);
    t.is((await call('GET', '/v1/version', { authorization: basic(`${accessToken}:`) })).status, 401);
  }
});

test('hosts that are not named are refused before credentials are looked at', async (t) => {
  const { call } = await openApi(t, { hostNames: ['api.example.com', '*.internal', '127.0.0.?', '::1'] });
  const statusOf = async (host: string) => (await call('GET', '/v1/version', { host })).status;
  for (const host of ['api.example.com', 'API.example.com:8081', 'a.b.internal', '127.0.0.1:80', '[::1]:8081']) {
    t.is(await statusOf(host), 200, host);
  }
  for (const host of ['example.com', 'xapi.example.com', 'apiXexample.com', 'internal', '127.0.0.11', '[::2]']) {
    t.is(await statusOf(host), 403, host);
  }
  const { body, headers } = await call('GET', '/v1/version', { host: 'evil.example', authorization: 'none' });
  t.deepEqual(body as unknown, { message: '[HTTP] Host is not allowed: [evil.example] (403)', statusCode: 403 });
  t.is(headers['www-authenticate'], undefined);
});

test('health checks need neither a token nor a named host', async (t) => {
  const app = Fastify();
  let state: Readiness = { ready: true };
  await app.register(healthRoutes(() => state));
  await app.register(apiRoutes(await apiOptions({ hostNames: ['api.example.com'] })));
  t.teardown(() => app.close());
  const get = (url: string) => app.inject({ url, headers: { host: 'other' } });
  const live = await get('/livez');
  t.is(live.statusCode, 200);
  t.deepEqual(live.json(), { status: 'ok' });
  t.is(live.headers['cache-control'], 'no-store');
  t.deepEqual((await get('/readyz')).json(), { status: 'ready' });
  state = { ready: true, degraded: 'no store' };
  t.is((await get('/readyz')).statusCode, 200);
  t.deepEqual((await get('/readyz')).json(), { status: 'ready', degraded: 'no store' });
  state = { ready: true, full: 'load 95 % of at most 90 %' };
  t.is((await get('/readyz')).statusCode, 200);
  const asked = await get('/readyz?new=1');
  t.is(asked.statusCode, 503);
  t.deepEqual(asked.json(), { status: 'not ready', reason: 'full: load 95 % of at most 90 %' });
  state = { ready: true };
  t.is((await get('/readyz?new=1')).statusCode, 200);
  state = { ready: false, reason: 'draining' };
  const ready = await get('/readyz');
  t.is(ready.statusCode, 503);
  t.deepEqual(ready.json(), { status: 'not ready', reason: 'draining' });
  t.is((await get('/livez')).statusCode, 200);
  t.is((await get('/v1/version')).statusCode, 403);
});
