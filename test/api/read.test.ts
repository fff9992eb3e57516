import test from 'ava';
import { openApi, VERSION } from '../support/api/api.ts';

test('the API tells its version and that of the server', async (t) => {
  const { call } = await openApi(t);
  const { status, body, headers, text } = await call('GET', '/v1/version');
  t.is(status, 200);
  t.deepEqual(body as unknown, { message: 'OK', response: VERSION, statusCode: 200 });
  t.is(headers['content-type'], 'application/json;charset=UTF-8');
  t.true(text.startsWith('{"message":"OK","response":{"gitVersion":'), 'keys are in alphabetical order');
});

test('virtual hosts are listed by name', async (t) => {
  const { call } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/vhosts')).body?.response, ['default', 'second']);
});

test('a virtual host is shown as it was given, without applications, with its template and distribution', async (t) => {
  const { call } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/vhosts/default')).body as unknown, {
    message: 'OK',
    response: { name: 'default', distribution: 'ovenmediaengine.com', host: { names: ['*'] } },
    statusCode: 200,
  });
  t.deepEqual((await call('GET', '/v1/vhosts/second')).body?.response, {
    name: 'second',
    distribution: 'example.com',
    host: { names: ['a.example.com', '*.example.org'] },
    signedPolicy: {
      policyQueryKeyName: 'policy',
      signatureQueryKeyName: 'signature',
      secretKey: 'shown',
      enables: { providers: 'rtmp' },
    },
    dynamicApplicationTemplate: { name: '*', type: 'live' },
  });
});

test('applications are listed by name, without the template, those made on demand too', async (t) => {
  const { call, registry } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/vhosts/default/apps')).body?.response, ['app', 'bare']);
  t.deepEqual((await call('GET', '/v1/vhosts/second/apps')).body?.response, []);
  const vhost = registry.vhost('second');
  if (vhost.template === undefined) return t.fail();
  vhost.createApplication({ ...vhost.template, name: 'made' }, true);
  t.deepEqual((await call('GET', '/v1/vhosts/second/apps')).body?.response, ['made']);
});

test('an application is shown as it was given', async (t) => {
  const { call } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/vhosts/default/apps/bare')).body?.response, {
    name: 'bare',
    type: 'live',
    dynamic: false,
  });
  t.deepEqual((await call('GET', '/v1/vhosts/default/apps/app')).body?.response, {
    name: 'app',
    type: 'live',
    dynamic: false,
    providers: { rtmp: {} },
    publishers: { llhls: { chunkDuration: 0.5 }, webrtc: {} },
    outputProfiles: { outputProfile: [PROFILE] },
  });
});

const PROFILE = {
  name: 'bypass',
  outputStreamName: '${OriginStreamName}_out',
  encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [], data: [] },
};

test('output profiles of an application are listed and shown', async (t) => {
  const { call } = await openApi(t);
  const base = '/v1/vhosts/default/apps/app/outputProfiles';
  t.deepEqual((await call('GET', base)).body?.response, ['bypass']);
  t.deepEqual((await call('GET', `${base}/bypass`)).body?.response, PROFILE);
  t.deepEqual((await call('GET', '/v1/vhosts/default/apps/bare/outputProfiles')).body?.response, ['default']);
  const { body } = await call('GET', '/v1/vhosts/default/apps/bare/outputProfiles/default');
  t.like(body?.response as object, {
    name: 'default',
    encodes: { videos: [{ name: 'bypass_video', bypass: true }], images: [] },
  });
});

test('a missing resource is reported in order: virtual host, application, then the rest', async (t) => {
  const { call } = await openApi(t);
  const cases: [path: string, text: string][] = [
    ['/v1/vhosts/x', 'Could not find the virtual host: [x]'],
    ['/v1/vhosts/x/apps', 'Could not find the virtual host: [x]'],
    ['/v1/vhosts/x/apps/y', 'Could not find the virtual host: [x]'],
    ['/v1/vhosts/x/apps/y/streams/z', 'Could not find the virtual host: [x]'],
    ['/v1/vhosts/default/apps/y', 'Could not find the application: [default/y]'],
    ['/v1/vhosts/default/apps/y/outputProfiles', 'Could not find the application: [default/y]'],
    ['/v1/vhosts/default/apps/y/streams', 'Could not find the application: [default/y]'],
    ['/v1/vhosts/default/apps/y/streams/z', 'Could not find the application: [default/y]'],
    ['/v1/vhosts/default/apps/app/outputProfiles/z', 'Could not find the output profile: [default/app/z]'],
    ['/v1/vhosts/default/apps/app/streams/z', 'Could not find the stream: [default/#default#app/z]'],
    ['/v1/stats/current/vhosts/x', 'Could not find the virtual host: [x]'],
    ['/v1/stats/current/vhosts/default/apps/y', 'Could not find the application: [default/y]'],
    ['/v1/stats/current/vhosts/default/apps/app/streams/z', 'Could not find the stream: [default/#default#app/z]'],
    ['/v1/vhosts/second/apps/*', 'Could not find the application: [second/*]'],
    ['/v1/vhosts/%C3%A4%23%2F%20', 'Could not find the virtual host: [ä#/ ]'],
    ['/v1/vhosts/__proto__', 'Could not find the virtual host: [__proto__]'],
    ['/v1/nothing', 'Controller not found'],
    ['/v1/vhosts/', 'Could not find the virtual host: []'],
    ['/v1/vhosts//apps', 'Could not find the virtual host: []'],
    ['/V1/vhosts', 'Controller not found'],
    ['/', 'Controller not found'],
  ];
  for (const [path, text] of cases) {
    const { status, body, headers } = await call('GET', path);
    t.is(status, 404, path);
    t.deepEqual(body as unknown, { message: `[HTTP] ${text} (404)`, statusCode: 404 }, path);
    t.is(headers['content-type'], 'application/json;charset=UTF-8');
  }
});

test('a wrong method is an unknown controller, never 405', async (t) => {
  const { call } = await openApi(t);
  for (const [method, path] of [
    ['PUT', '/v1/vhosts'],
    ['PATCH', '/v1/vhosts/default'],
    ['DELETE', '/v1/version'],
    ['POST', '/v1/version'],
  ] as const) {
    const { status, body } = await call(method, path, {}, method === 'DELETE' ? undefined : '{}');
    t.is(status, 404, path);
    t.is(body?.message, '[HTTP] Controller not found (404)');
  }
});

test('every GET answers HEAD with the same headers and no body', async (t) => {
  const { call } = await openApi(t);
  for (const path of ['/v1/version', '/v1/vhosts/default/apps/app', '/v1/stats/current', '/v1/vhosts/x', '/x']) {
    const get = await call('GET', path);
    const head = await call('HEAD', path);
    t.is(head.status, get.status, path);
    t.is(head.text, '');
    t.is(head.headers['content-length'], get.headers['content-length']);
    t.is(head.headers['content-type'], get.headers['content-type']);
  }
});

test('a malformed body is answered in the envelope', async (t) => {
  const { call } = await openApi(t);
  const { status, body } = await call('POST', '/v1/version', { 'content-type': 'application/json' }, '{"a":');
  t.is(status, 400);
  t.regex(body?.message ?? '', /^\[HTTP\] .+ \(400\)$/);
  t.is((await call('POST', '/v1/version', {}, '{"__proto__":{"a":1}}')).status, 400);
});

test('a body is read whose type is empty, sent twice or lacks a semicolon', async (t) => {
  const { call } = await openApi(t);
  const post = (type: string) => call('POST', '/v1/vhosts/default/apps/app:pushes', { 'content-type': type }, '{}');
  for (const type of ['', 'application/json, application/json', 'application/json charset=utf-8'])
    t.is((await post(type)).status, 200, type);
  for (const type of ['json', 'application/json, text/plain']) t.is((await post(type)).status, 415, type);
});

test('the request id of a call comes back with its answer', async (t) => {
  const { call } = await openApi(t);
  t.truthy((await call('GET', '/v1/version')).headers['x-request-id']);
});
