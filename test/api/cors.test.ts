import test from 'ava';
import { openApi } from '../support/api/api.ts';

const METHODS = 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE';

const cases: [name: string, urls: string[], origin: string | undefined, allowed: string | undefined][] = [
  ['everybody', ['https://a.example', '*'], 'http://b.example', '*'],
  ['everybody, without an origin', ['*'], undefined, '*'],
  ['null alone', ['null'], 'http://a.example', 'null'],
  ['null among others', ['null', 'a.example'], 'null', 'null'],
  ['null among others, another', ['null', 'a.example'], 'http://b.example', undefined],
  ['a name of any scheme: http', ['a.example'], 'http://a.example', 'http://a.example'],
  ['a name of any scheme: https', ['a.example'], 'https://a.example', 'https://a.example'],
  ['a name of any scheme: of an app', ['a.example'], 'capacitor://a.example', 'capacitor://a.example'],
  ['a name with a scheme', ['https://a.example'], 'https://a.example', 'https://a.example'],
  ['a name with another scheme', ['https://a.example'], 'http://a.example', undefined],
  ['a name without the port', ['a.example'], 'http://a.example:8080', undefined],
  ['a name with any port', ['a.example:*'], 'http://a.example:8080', 'http://a.example:8080'],
  ['a wildcard', ['https://*.a.example'], 'https://x.y.a.example', 'https://x.y.a.example'],
  ['a wildcard that needs a dot', ['https://*.a.example'], 'https://a.example', undefined],
  ['one character', ['a?.example'], 'http://a1.example', 'http://a1.example'],
  ['one character too many', ['a?.example'], 'http://a12.example', undefined],
  ['a dot is a dot', ['a.example'], 'http://aXexample', undefined],
  ['no suffix', ['a.example'], 'http://a.example.evil', undefined],
  ['no prefix', ['a.example'], 'http://evil-a.example', undefined],
  ['no origin', ['a.example'], undefined, undefined],
  ['nobody', [], 'http://a.example', undefined],
];

for (const [name, url, origin, allowed] of cases) {
  test(name, async (t) => {
    const { call, app } = await openApi(t, { crossDomains: { url, header: [{ key: 'X-Custom', value: 'yes' }] } });
    const asked = { ...(origin !== undefined && { origin }), 'access-control-request-headers': 'authorization, x-a' };
    const preflight = await app.inject({ method: 'OPTIONS', url: '/any/path', headers: asked });
    const answers = [
      { method: 'GET', ...(await call('GET', '/v1/version', asked)) },
      { method: 'GET refused', ...(await call('GET', '/v1/version', { ...asked, authorization: 'no' })) },
      { method: 'OPTIONS', headers: preflight.headers },
    ];
    for (const { method, headers } of answers) {
      t.is(headers['access-control-allow-origin'], allowed, method);
      t.is(headers['access-control-allow-credentials'], allowed && 'true', method);
      t.is(headers['access-control-allow-methods'], allowed && METHODS, method);
      t.is(headers['access-control-allow-headers'], allowed && 'authorization, x-a', method);
      t.is(headers['x-custom'], allowed && 'yes', method);
      t.regex(String(headers.vary), /^Origin\b/, method);
    }
  });
}

test('OPTIONS is 204 on every path, without credentials and whatever the host', async (t) => {
  for (const crossDomains of [undefined, { url: ['a.example'], header: [] }, { url: ['*'], header: [] }]) {
    const { app } = await openApi(t, { crossDomains, hostNames: ['api.example'] });
    for (const url of ['/v1/vhosts', '/v1/nothing', '/', '/openapi.json']) {
      const response = await app.inject({ method: 'OPTIONS', url, headers: { origin: 'http://a.example' } });
      t.is(response.statusCode, 204);
      t.is(response.body, '');
      t.is(response.headers['content-type'], undefined);
      t.is(response.headers['content-length'], undefined);
    }
  }
});

test('an API without CrossDomains answers with its methods alone', async (t) => {
  const { call } = await openApi(t);
  const { headers } = await call('GET', '/v1/version', { origin: 'http://a.example' });
  t.is(headers['access-control-allow-methods'], METHODS);
  t.is(headers['access-control-allow-origin'], undefined);
  t.is(headers['access-control-allow-credentials'], undefined);
  t.is(headers.vary, 'Origin');
});
