import test from 'ava';
import { basic, openApi, TOKEN } from '../support/api/api.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
type Method = (typeof METHODS)[number];

const UNKNOWN = { message: '[HTTP] Controller not found (404)', statusCode: 404 };

/** Names in the place of the parameters of a path. */
const NAMES: Readonly<Record<string, string>> = {
  vhost: 'second',
  app: 'app',
  stream: 's',
  profile: 'p',
  session: 'viewer',
  node: 'a',
};

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Every path that the API describes, with names in it, and its methods. */
async function describedPaths(call: Awaited<ReturnType<typeof openApi>>['call']) {
  const { paths } = (await call('GET', '/openapi.json')).body as unknown as Described;
  return Object.entries(paths).map(([path, methods]) => ({
    path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => NAMES[name] ?? name),
    methods: Object.keys(methods).map((method) => method.toUpperCase()),
  }));
}

test('an action is asked for by POST, a list also by GET: other methods are not allowed, whatever it is about', async (t) => {
  const { call } = await openApi(t);
  const actions = (await describedPaths(call)).filter(({ path }) => path.includes(':'));
  t.deepEqual(
    actions.map(({ path }) => path),
    [
      '/v1/vhosts/second/apps/app:startRecord',
      '/v1/vhosts/second/apps/app:stopRecord',
      '/v1/vhosts/second/apps/app:records',
      '/v1/vhosts/second/apps/app/streams/s:startHlsDump',
      '/v1/vhosts/second/apps/app/streams/s:stopHlsDump',
      '/v1/vhosts/second/apps/app/streams/s:hlsDumps',
      '/v1/vhosts/second/apps/app/streams/s:rotateKey',
      '/v1/vhosts/second/apps/app/streams/s:concludeHlsLive',
      '/v1/vhosts/second/apps/app/streams/s:sendEvent',
      '/v1/vhosts/second/apps/app/streams/s:sendEvents',
      '/v1/vhosts/second/apps/app/streams/s:sendSubtitles',
      '/v1/vhosts/second/apps/app/streams/s:startStandby',
      '/v1/vhosts/second/apps/app/streams/s:stopStandby',
      '/v1/vhosts:reloadAllCertificates',
      '/v1/vhosts/second:reloadCertificate',
      '/v1/managers/api:reloadCertificate',
      '/v1/vhosts/second/apps/app:startPush',
      '/v1/vhosts/second/apps/app:stopPush',
      '/v1/vhosts/second/apps/app:pushes',
      '/v1/cluster/nodes/a:drain',
      '/v1/cluster/nodes/a:undrain',
    ],
  );
  for (const { path, methods } of actions) {
    const allowed = methods.includes('GET') ? ['GET', 'HEAD', 'POST'] : ['POST'];
    for (const method of METHODS.filter((one) => !allowed.includes(one))) {
      for (const asked of [path, `${path}?x=1:2`, path.replace('second', 'none').replace('/a:', '/none:')]) {
        const { status, headers, body, text } = await call(method, asked, {}, method === 'PUT' ? '{}' : undefined);
        t.is(status, 405, `${method} ${asked}`);
        t.deepEqual(String(headers.allow).split(', ').sort(), allowed);
        if (method === 'HEAD') t.is(text, '');
        else t.deepEqual(body, { message: `[HTTP] ${method} is not allowed here (405)`, statusCode: 405 });
      }
    }
  }
});

test('an action that is not there is not a part of a name, on any resource, by any method', async (t) => {
  const { call } = await openApi(t);
  const resources = (await describedPaths(call)).filter(({ path }) => !path.includes(':') && !path.endsWith('/viewer'));
  t.true(resources.length > 15);
  for (const { path } of resources) {
    for (const suffix of [':nothing', ':', '::', ':a:b', ':records/', ':reloadCertificate:', ':%3A', ':..']) {
      for (const method of METHODS) {
        const { status, headers, body } = await call(method, `${path}${suffix}`);
        t.is(status, 404, `${method} ${path}${suffix}`);
        t.is(headers.allow, undefined);
        if (method !== 'HEAD') t.deepEqual(body, UNKNOWN, `${method} ${path}${suffix}`);
      }
    }
  }
});

test('a colon in a name is written %3A, and no name has one', async (t) => {
  const { call, registry } = await openApi(t);
  const rows: readonly (readonly [method: Method, path: string, text: string])[] = [
    ['GET', '/v1/vhosts/a%3Ab', 'Could not find the virtual host: [a:b]'],
    ['GET', '/v1/vhosts/default%3areloadCertificate', 'Could not find the virtual host: [default:reloadCertificate]'],
    ['POST', '/v1/vhosts/default%3AreloadCertificate', 'Controller not found'],
    ['POST', '/v1/vhosts%3AreloadAllCertificates', 'Controller not found'],
    ['POST', '/v1/cluster/nodes/a%3Adrain', 'Controller not found'],
    ['GET', '/v1/vhosts/default/apps/app%3Ax', 'Could not find the application: [default/app:x]'],
    ['GET', '/v1/vhosts/default/apps/app%3Arecords', 'Controller not found'],
    ['GET', '/v1/vhosts/default/apps/app/streams/a%3Ab', 'Could not find the stream: [default/#default#app/a:b]'],
    ['GET', '/v1/vhosts/default/apps/app/outputProfiles/a%3Ab', 'Could not find the output profile: [default/app/a:b]'],
    ['GET', '/v1/vhosts/default:x/apps/app', 'Controller not found'],
    ['GET', '/v1/vhosts/default/apps/app:x/streams', 'Controller not found'],
    ['GET', '/v1/stats/current/vhosts/default%3Ab', 'Could not find the virtual host: [default:b]'],
  ];
  for (const [method, path, text] of rows) {
    const { status, body } = await call(method, path);
    t.is(status, 404, `${method} ${path}`);
    t.is(body?.message, `[HTTP] ${text} (404)`, `${method} ${path}`);
  }
  t.false(registry.vhost('default').application('app').closed);
});

test('sessions have any name that their viewers chose: a colon begins no action there', async (t) => {
  const { call, registry } = await openApi(t);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([{ id: 0, name: '', type: 'data', codec: 'ID3v2', timebase: { num: 1, den: 1000 }, bypass: false }]);
  const output = application.addOutput(input, 'live');
  const { out, createdTime } = output.counters;
  const kicked: string[] = [];
  const names = ['a:b', ':', 'tv:drain', '2001:db8::1', 'a%3Ab', 'a/b', 'a?b#c', 'a;b'];
  for (const id of names) output.addSession({ id, kind: 'webrtc', createdTime, out, kick: () => void kicked.push(id) });
  const sessions = '/v1/vhosts/default/apps/app/streams/live/sessions';
  t.deepEqual((await call('GET', sessions)).body?.response, names);
  for (const id of names) {
    // as they are where URLs can carry that, and encoded
    const forms = /[%/?#]/.test(id) ? [encodeURIComponent(id)] : [id, encodeURIComponent(id)];
    for (const form of forms) {
      const { status } = await call('GET', `/v1/stats/current/${sessions.slice('/v1/'.length)}/${form}`);
      t.is(status, 200, form);
    }
    t.is((await call('DELETE', `${sessions}/${forms[0]}`)).status, 200, id);
  }
  t.deepEqual(kicked, names);
  t.is((await call('GET', `${sessions}:x`)).status, 404);
  t.deepEqual((await call('GET', `${sessions}:x`)).body, UNKNOWN);
});

test('a client without the right credentials does not learn which actions there are', async (t) => {
  const { app } = await openApi(t);
  for (const url of ['/v1/vhosts:reloadAllCertificates', '/v1/vhosts/default/apps/app:records']) {
    const { statusCode, headers } = await app.inject({
      method: 'GET',
      url,
      headers: { authorization: basic('wrong') },
    });
    t.is(statusCode, 401, url);
    t.is(headers.allow, undefined);
    const preflight = await app.inject({ method: 'OPTIONS', url, headers: { authorization: basic(TOKEN) } });
    t.is(preflight.statusCode, 204);
  }
});
