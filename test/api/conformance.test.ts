import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { apiRoutes } from '../../src/api/app.ts';
import type { Registry } from '../../src/core/registry.ts';
import { apiOptions, basic, TOKEN } from '../support/api/api.ts';
import { openClient } from '../support/network/http-client.ts';
import { openTlsPort } from '../support/network/tls-port.ts';
import { RTMP, VIDEO } from '../unit/core/support.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One row of the spec's tables: a call on the sample server, and what must come of it. */
interface Row extends Omit<Call, 'body'> {
  readonly row: string;
  readonly body?: unknown;
  readonly status: number;
  /** The whole body, or a test of it; absent where the spec leaves it open. */
  readonly answer?: unknown;
}

const OK = { statusCode: 200, message: 'OK' };
const listed = (...response: string[]) => ({ ...OK, response });
const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });
const item = (statusCode: number, message: string) => ({ statusCode, message });

const NO_VHOST = error(404, 'Could not find the virtual host: [none]');
const NO_APP = error(404, 'Could not find the application: [made/none]');
const READ_ONLY = error(403, 'The VirtualHost is read-only: [default]');
const NO_SESSION = { statusCode: 404, message: 'Not Found', response: 'Could not find the session' };
const NO_STREAM = error(404, 'Could not find the stream: [made/#made#app/none]');

const VHOST = { name: 'new', host: { names: ['new.example.com'] } };
const APP = { name: 'new', type: 'live' };
const PROFILE = {
  name: 'new',
  outputStreamName: '${OriginStreamName}_new',
  encodes: { videos: [{ name: 'v', bypass: true }] },
};
const MADE = '/v1/vhosts/made';
const LIVE = `${MADE}/apps/app/streams/live`;
const STATS = '/v1/stats/current/vhosts/made';

const get = (path: string, status: number, answer?: unknown): Row => ({
  row: `GET ${path}`,
  method: 'GET',
  path,
  status,
  answer,
});
const call = (method: string, path: string, body: unknown, status: number, answer?: unknown): Row => ({
  row: `${method} ${path} ${JSON.stringify(body) ?? ''}`.trim(),
  method,
  path,
  body,
  status,
  answer,
});

const ROWS: readonly Row[] = [
  // Virtual hosts
  get('/v1/vhosts', 200, listed('default', 'second', 'made')),
  call('POST', '/v1/vhosts', [VHOST], 200, [{ ...OK, response: { ...VHOST, distribution: 'ovenmediaengine.com' } }]),
  call('POST', '/v1/vhosts', [VHOST, { ...VHOST, name: 'made' }], 207),
  call('POST', '/v1/vhosts', [{ ...VHOST, name: 'made' }], 409, [item(409, 'Conflict')]),
  call('POST', '/v1/vhosts', {}, 400, error(400, 'Request body must be an array')),
  call('POST', '/v1/vhosts', [{ name: 'new' }], 400),
  get(MADE, 200),
  get('/v1/vhosts/none', 404, NO_VHOST),
  call('DELETE', MADE, undefined, 200, OK),
  call('DELETE', '/v1/vhosts/none', undefined, 404, NO_VHOST),
  call('DELETE', '/v1/vhosts/default', undefined, 403, READ_ONLY),
  call('POST', '/v1/vhosts:reloadAllCertificates', {}, 200, OK),
  call('POST', `${MADE}:reloadCertificate`, {}, 500),
  call('POST', '/v1/vhosts/none:reloadCertificate', {}, 404, NO_VHOST),
  call(
    'POST',
    '/v1/managers/api:reloadCertificate',
    undefined,
    400,
    error(400, 'TLS is not enabled for the API Server'),
  ),

  // Applications
  get(`${MADE}/apps`, 200, listed('app')),
  get('/v1/vhosts/none/apps', 404, NO_VHOST),
  call('POST', `${MADE}/apps`, [APP], 200),
  call('POST', `${MADE}/apps`, [APP, { ...APP, name: 'app' }], 207),
  call('POST', `${MADE}/apps`, [{ ...APP, name: 'app' }], 409, [item(409, 'Conflict')]),
  call('POST', `${MADE}/apps`, APP, 400, error(400, 'Request body must be an array')),
  call('POST', `${MADE}/apps`, [{ name: 'new' }], 400),
  call('POST', `${MADE}/apps`, [{ ...APP, name: '*' }], 400),
  call('POST', `${MADE}/apps`, [{ ...APP, type: 'vod' }], 400),
  call('POST', '/v1/vhosts/none/apps', [APP], 404, NO_VHOST),
  call('POST', '/v1/vhosts/default/apps', [APP], 403, READ_ONLY),
  get(`${MADE}/apps/app`, 200),
  get(`${MADE}/apps/none`, 404, NO_APP),
  call('PATCH', `${MADE}/apps/app`, { providers: { webrtc: { timeout: 60000 } } }, 200),
  call('PATCH', `${MADE}/apps/app`, { name: 'other' }, 400, error(400, 'Cannot change [name] using this API')),
  call(
    'PATCH',
    `${MADE}/apps/app`,
    { outputProfiles: {} },
    400,
    error(400, 'Cannot change [outputProfiles] using this API'),
  ),
  call('PATCH', `${MADE}/apps/none`, {}, 404, NO_APP),
  call('PATCH', '/v1/vhosts/default/apps/app', {}, 403, READ_ONLY),
  call('DELETE', `${MADE}/apps/app`, undefined, 200, OK),
  call('DELETE', `${MADE}/apps/none`, undefined, 404, NO_APP),
  call('DELETE', '/v1/vhosts/default/apps/app', undefined, 403, READ_ONLY),

  // Output profiles
  get(`${MADE}/apps/app/outputProfiles`, 200, listed('bypass')),
  get(`${MADE}/apps/none/outputProfiles`, 404, NO_APP),
  call('POST', `${MADE}/apps/app/outputProfiles`, [PROFILE], 200),
  call('POST', `${MADE}/apps/app/outputProfiles`, [PROFILE, { ...PROFILE, name: 'bypass' }], 207),
  call('POST', `${MADE}/apps/app/outputProfiles`, [{ ...PROFILE, name: 'bypass' }], 409, [item(409, 'Conflict')]),
  call('POST', `${MADE}/apps/app/outputProfiles`, [{ ...PROFILE, encodes: {} }], 400),
  call('POST', `${MADE}/apps/none/outputProfiles`, [PROFILE], 404, NO_APP),
  call('POST', '/v1/vhosts/default/apps/app/outputProfiles', [PROFILE], 403, READ_ONLY),
  get(`${MADE}/apps/app/outputProfiles/bypass`, 200),
  get(`${MADE}/apps/app/outputProfiles/none`, 404, error(404, 'Could not find the output profile: [made/app/none]')),
  call('DELETE', `${MADE}/apps/app/outputProfiles/bypass`, undefined, 200, OK),
  call('DELETE', `${MADE}/apps/app/outputProfiles/none`, undefined, 404),
  call('DELETE', '/v1/vhosts/default/apps/app/outputProfiles/bypass', undefined, 403, READ_ONLY),

  // Streams and sessions
  get(`${MADE}/apps/app/streams`, 200, listed('live')),
  get(`${MADE}/apps/none/streams`, 404, NO_APP),
  call('POST', `${MADE}/apps/app/streams`, [], 400, error(400, 'Request body must be an object')),
  call('POST', `${MADE}/apps/app/streams`, { name: 'new' }, 400),
  call('POST', `${MADE}/apps/app/streams`, { name: 'new', urls: ['rtsp://a/b', 'ovt://a/b/c'] }, 400),
  call(
    'POST',
    `${MADE}/apps/app/streams`,
    { name: 'live', urls: ['rtsp://a/b'] },
    409,
    error(409, 'Stream already exists'),
  ),
  call('POST', `${MADE}/apps/none/streams`, { name: 'new', urls: ['rtsp://a/b'] }, 404, NO_APP),
  call('POST', `${MADE}/apps/app/streams`, { name: 'new', urls: ['gopher://a/b'] }, 502),
  get(LIVE, 200),
  get(`${MADE}/apps/app/streams/none`, 404, NO_STREAM),
  get(`${MADE}/apps/none/streams/live`, 404, NO_APP),
  call('DELETE', LIVE, undefined, 200, OK),
  get(`${LIVE}/sessions`, 200, listed('viewer')),
  get(`${MADE}/apps/app/streams/none/sessions`, 404, NO_STREAM),
  call('DELETE', `${LIVE}/sessions/viewer`, undefined, 200, OK),
  call('DELETE', `${LIVE}/sessions/none`, undefined, 404, NO_SESSION),

  // Statistics, codecs, version
  get(STATS, 200),
  get('/v1/stats/current/vhosts/none', 404, NO_VHOST),
  get(`${STATS}/apps/app`, 200),
  get(`${STATS}/apps/none`, 404, NO_APP),
  get(`${STATS}/apps/app/streams/live`, 200),
  get(`${STATS}/apps/app/streams/none`, 404, NO_STREAM),
  get(`${STATS}/apps/app/streams/live/sessions/viewer`, 200),
  get(`${STATS}/apps/app/streams/live/sessions/none`, 404, NO_SESSION),
  get(STATS.replace('v1', 'v2'), 200),
  get('/v2/stats/current/vhosts/none', 404, NO_VHOST),
  get(`${STATS}/apps/app`.replace('v1', 'v2'), 200),
  get(`${STATS}/apps/none`.replace('v1', 'v2'), 404, NO_APP),
  get(`${STATS}/apps/app/streams/live`.replace('v1', 'v2'), 200),
  get(`${STATS}/apps/app/streams/none`.replace('v1', 'v2'), 404, NO_STREAM),
  get('/v2/internals/codecs', 200),
  get('/v1/stats/current/internals', 200, { ...OK, response: ['/v1/stats/current/internals/queues'] }),
  get('/v1/stats/current/internals/queues', 200, { ...OK, response: [] }),
  get('/v2/internals/queues', 200, { ...OK, response: [] }),
  get('/v1/version', 200, { ...OK, response: { version: '1.2.3', gitVersion: 'v1.2.3-4-gabcdef0' } }),

  // Authentication, unknown routes and methods
  {
    ...get('/v1/version', 401, error(401, 'Authorization header is required to call API')),
    row: 'no credentials',
    headers: { authorization: '' },
  },
  {
    ...get('/v1/version', 401, error(401, 'Invalid credential')),
    row: 'wrong credentials',
    headers: { authorization: basic('wrong') },
  },
  get('/v1/nothing', 404, error(404, 'Controller not found')),
  call('PUT', '/v1/version', {}, 404, error(404, 'Controller not found')),
  call('PUT', MADE, {}, 404, error(404, 'Controller not found')),
  call('PUT', '/v1/vhosts/default', {}, 403, READ_ONLY),
  call('HEAD', '/v1/vhosts', undefined, 200),
  { row: 'OPTIONS needs no credentials', method: 'OPTIONS', path: MADE, headers: { authorization: '' }, status: 204 },
];

/** The sample server's state, with `made` that can be changed, its stream `live` and a viewer. */
async function prepare() {
  const options = await apiOptions();
  const { registry, dynamic } = options;
  await dynamic.createVhosts([
    {
      name: 'made',
      host: { names: ['made.example.com'] },
      applications: [
        {
          name: 'app',
          type: 'live',
          providers: {},
          publishers: {},
          outputProfiles: { outputProfile: [{ ...PROFILE, name: 'bypass' }] },
        },
      ],
    },
  ]);
  addViewer(registry);
  return options;
}

function addViewer(registry: Registry): void {
  const application = registry.vhost('made').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'live');
  const { out, createdTime } = output.counters;
  output.addSession({ id: 'viewer', kind: 'webrtc', createdTime, out, kick: () => {} });
}

function check(t: ExecutionContext, { status, answer, method }: Row, given: Answer): void {
  t.is(given.status, status, given.text);
  if (status !== 204) t.is(given.headers['content-type'], 'application/json;charset=UTF-8');
  if (status === 401) t.is(given.headers['www-authenticate'], 'Basic realm="Kiln"');
  if (method === 'HEAD' || status === 204) {
    t.is(given.text, '');
    return;
  }
  const body = JSON.parse(given.text) as { statusCode?: number; message?: string };
  if (answer !== undefined) t.deepEqual(body, answer);
  if (Array.isArray(body)) return;
  t.is(body.statusCode, status, 'the envelope says what the status line says');
  t.is(typeof body.message, 'string');
}

/** What goes out for a row. An empty authorization means none. */
function outgoing({ method, path, body, headers }: Row): Call {
  const { authorization = basic(TOKEN) } = headers ?? {};
  return {
    method,
    path,
    headers: {
      ...(authorization !== '' && { authorization }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
}

for (const row of ROWS) {
  test(`${row.row} -> ${row.status}`, async (t) => {
    const app = Fastify();
    t.teardown(() => app.close());
    await app.register(apiRoutes(await prepare()));
    const { method, path, headers, body } = outgoing(row);
    const answer = await app.inject({ method: method as 'GET', url: path, headers, payload: body });
    check(t, row, { status: answer.statusCode, headers: answer.headers, text: answer.body });
  });
}

for (const protocol of ['h1', 'h2'] as const) {
  test(`every row over a TLS socket, ${protocol}`, async (t) => {
    for (const row of ROWS) {
      const port = await openTlsPort(t, apiRoutes(await prepare()));
      const client = await openClient(t, protocol, port);
      const { path, ...rest } = outgoing(row);
      const { status, headers, body } = await client.call(path, rest);
      check(t, row, { status, headers, text: body.toString() });
    }
  });
}
