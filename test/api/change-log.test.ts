import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { apiRoutes } from '../../src/api/app.ts';
import { jsonLogger } from '../../src/log/log.ts';
import type { AuditEntry, AuditLog } from '../../src/management/audit/log.ts';
import { apiOptions, basic, TOKEN } from '../support/api/api.ts';
import { RTMP, VIDEO, video } from '../unit/core/support.ts';

const VHOST = { name: 'made', host: { names: ['made.example'] } };

async function open(t: ExecutionContext) {
  const lines: string[] = [];
  const log = jsonLogger('debug', { write: (line: string) => void lines.push(line) });
  const app = Fastify();
  t.teardown(() => app.close());
  const options = await apiOptions();
  const audited: AuditEntry[] = [];
  const audit = { add: (entry: AuditEntry) => audited.push(entry) } as unknown as AuditLog;
  await app.register(apiRoutes({ ...options, log, audit }));
  const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object, token = TOKEN) =>
    app.inject({ method, url, headers: { authorization: basic(token) }, remoteAddress: '203.0.113.9', payload });
  const { registry } = options;
  return {
    call,
    registry,
    audited,
    logged: () => lines.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

test('a change is logged with the client that asked for it; reads and rejected calls are not', async (t) => {
  const { call, logged } = await open(t);
  t.is((await call('POST', '/v1/vhosts?secret=x', [VHOST])).statusCode, 200);
  t.is((await call('GET', '/v1/vhosts')).statusCode, 200);
  t.is((await call('DELETE', '/v1/vhosts/none')).statusCode, 404);
  t.is((await call('DELETE', '/v1/vhosts/made', undefined, 'wrong:token')).statusCode, 401);
  const gone = await call('DELETE', '/v1/vhosts/made');
  t.is(gone.statusCode, 200);
  const lines = logged();
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['POST /v1/vhosts (made)', 'DELETE /v1/vhosts/made'],
  );
  t.like(lines[1], { level: 'info', event: 'api.changed', module: 'api', remote: '203.0.113.9', status: 200 });
  t.is(lines[1]?.requestId, gone.headers['x-request-id']);
});

test('a PATCH that changes nothing is not logged', async (t) => {
  const { call, logged } = await open(t);
  const profile = { outputStreamName: 'x', encodes: { videos: [{ name: 'v', bypass: true }] } };
  await call('POST', '/v1/vhosts', [VHOST]);
  await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live' }]);
  await call('POST', '/v1/vhosts/made/apps/app/outputProfiles', [{ ...profile, name: 'p' }]);
  t.is(logged().length, 3);
  for (const [path, nothing, something] of [
    ['/v1/vhosts/made/apps/app', {}, { publishers: { llhls: { segmentCount: 7 } } }],
    ['/v1/vhosts/made/apps/app/outputProfiles/p', profile, { ...profile, outputStreamName: 'y' }],
  ] as const) {
    t.is((await call('PATCH', path, nothing)).statusCode, 200);
    t.deepEqual(logged(), []);
    t.is((await call('PATCH', path, something)).statusCode, 200);
    t.like(logged()[0], { msg: `PATCH ${path}` });
  }
});

test('tasks are logged by their ids when they are made, and not when they are listed', async (t) => {
  const { call, logged } = await open(t);
  const applications = [{ name: 'app', type: 'live', publishers: { file: { rootPath: '/nowhere' } } }];
  await call('POST', '/v1/vhosts', [{ ...VHOST, applications }]);
  logged();
  const task = { id: 'later', stream: { name: 'stream' } };
  t.is((await call('POST', '/v1/vhosts/made/apps/app:startRecord', task)).statusCode, 200);
  t.is((await call('POST', '/v1/vhosts/made/apps/app:records', {})).statusCode, 200);
  const changes = logged().filter(({ event }) => event === 'api.changed');
  t.deepEqual(
    changes.map(({ msg }) => msg),
    ['POST /v1/vhosts/made/apps/app:startRecord (later)'],
  );
});

test('events that are sent with a stream leave no line at info level', async (t) => {
  const { call, logged, registry } = await open(t);
  const input = registry
    .vhost('default')
    .application('app')
    .publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  input.write(video(1, true));
  const event = { eventFormat: 'id3v2', events: [{ frameType: 'TIT2', data: 'x' }] };
  const path = '/v1/vhosts/default/apps/app/streams/live';
  t.is((await call('POST', `${path}:sendEvent`, event)).statusCode, 200);
  t.is((await call('POST', `${path}:sendEvents`, [event])).statusCode, 200);
  t.deepEqual(
    logged().flatMap(({ event: name, level }) => (name === 'api.changed' ? [level] : [])),
    ['debug', 'debug'],
  );
});

test('the audit log has each admitted call that may have changed something, with its outcome', async (t) => {
  const { call, audited } = await open(t);
  const made = await call('POST', '/v1/vhosts?secret=x', [VHOST]);
  await call('GET', '/v1/vhosts');
  await call('POST', '/v1/vhosts/made/apps/app:records', {});
  await call('DELETE', '/v1/vhosts/none');
  await call('DELETE', '/v1/vhosts/made', undefined, 'wrong:token');
  await call('POST', '/v1/vhosts/made/apps', [{ name: 'x'.repeat(1000), type: 'live' }]);
  t.like(audited[0], {
    user: TOKEN.split(':')[0],
    remote: '203.0.113.9',
    method: 'POST',
    path: '/v1/vhosts',
    names: ['made'],
    status: 200,
    requestId: String(made.headers['x-request-id']),
  });
  t.deepEqual(audited.map(({ method, path, status }) => `${method} ${path} ${status}`).slice(1), [
    'DELETE /v1/vhosts/none 404',
    `POST /v1/vhosts/made/apps ${audited[2]?.status}`,
  ]);
  t.is(audited[2]?.names?.[0]?.length, 200);
  t.notRegex(JSON.stringify(audited), new RegExp(`secret=x|${TOKEN.split(':')[1]}`));
});

test('the creation of a channel is noted with the name of its stream', async (t) => {
  const { call, audited } = await open(t);
  const app = '/v1/vhosts/default/apps/app';
  await call('POST', `${app}/scheduledChannels`, { stream: { name: 'tv' } });
  await call('POST', `${app}/multiplexChannels`, { outputStream: { name: 'both' } });
  t.deepEqual(
    audited.map(({ path, names, status }) => [path, names, status]),
    [
      [`${app}/scheduledChannels`, ['tv'], 403],
      [`${app}/multiplexChannels`, ['both'], 403],
    ],
  );
});

/** What of the API's calls is left out: what only lists, and events that are sent with a stream, many a second. */
const LEFT_OUT = /:(?:records|pushes|hlsDumps|sendEvent|sendEvents|sendSubtitles)$/;

test("every call of the API that may change something is sealed with its caller, the caller's address, and the id of the request", async (t) => {
  const { call, audited } = await open(t);
  const { paths } = (await call('GET', '/openapi.json')).json<{ readonly paths: Readonly<Record<string, object>> }>();
  const samples: Readonly<Record<string, string>> = { vhost: 'made', app: 'app', session: 'own:records', node: 'kiln' };
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).flatMap((method) =>
      method === 'get'
        ? []
        : {
            method: method.toUpperCase() as 'POST',
            path: path.replace(/{(\w+)}/g, (_, name) => samples[name] ?? name),
          },
    ),
  );
  for (const { method, path } of calls) {
    const { headers, statusCode } = await call(method, `${path}?token=x`, {});
    const line = {
      user: TOKEN.split(':')[0],
      remote: '203.0.113.9',
      method,
      path,
      requestId: String(headers['x-request-id']),
      status: statusCode,
    };
    const lines = audited.splice(0).map(({ names: _, ...others }) => others);
    t.deepEqual(lines, method === 'POST' && LEFT_OUT.test(path) ? [] : [line], `${method} ${path}`);
  }
  t.true(calls.length > 30, String(calls.length));
});
