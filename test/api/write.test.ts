import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { ConfigStore } from '#cluster';
import { CertificateStore } from '../../src/tls/certificates.ts';
import type { Application } from '../../src/core/application.ts';
import { Registry } from '../../src/core/registry.ts';
import type { KilnError } from '../../src/errors.ts';
import { DynamicConfig } from '../../src/management/dynamic-config.ts';
import { createVhost, dynamicConfig, openApi, sampleRegistry } from '../support/api/api.ts';
import { openAlone } from '../support/cluster/cluster.ts';
import { RTMP } from '../unit/core/support.ts';

const VHOST = { name: 'made', host: { names: ['made.example.com'] } };
const APP = { name: 'app', type: 'live' };
const PROFILE = {
  name: 'p',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'v', bypass: true }] },
};
const APPS = '/v1/vhosts/made/apps';
const PROFILES = `${APPS}/app/outputProfiles`;

interface Result {
  readonly statusCode: number;
  readonly message: string;
  readonly response?: Record<string, unknown>;
}

/** Calls with a JSON body; the answer is an envelope, or the results of a batch. */
async function open(t: ExecutionContext, registry?: Registry) {
  const api = await openApi(t, {}, registry);
  const send = async (method: 'POST' | 'PATCH' | 'DELETE' | 'PUT', path: string, body?: unknown) => {
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await api.call(
      method,
      path,
      payload === undefined ? {} : { 'content-type': 'application/json' },
      payload,
    );
    return {
      status: answer.status,
      body: answer.body as unknown as Result,
      results: answer.body as unknown as Result[],
    };
  };
  return { ...api, send };
}

/** The same, with the virtual host `made` and its application `app`. */
async function openMade(t: ExecutionContext) {
  const api = await open(t);
  await api.send('POST', '/v1/vhosts', [
    { ...VHOST, applications: [{ ...APP, outputProfiles: { outputProfile: [PROFILE] } }] },
  ]);
  return api;
}

test('virtual hosts are created, shown as given, and deleted with all below', async (t) => {
  const { send, call, registry } = await open(t);
  const { status, results } = await send('POST', '/v1/vhosts', [
    {
      ...VHOST,
      signedPolicy: { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' },
      applications: [APP],
    },
  ]);
  t.is(status, 200);
  const shown = {
    ...VHOST,
    distribution: 'ovenmediaengine.com',
    signedPolicy: { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' },
  };
  t.deepEqual(results, [{ statusCode: 200, message: 'OK', response: shown }]);
  t.deepEqual((await call('GET', '/v1/vhosts/made')).body?.response, shown);
  t.deepEqual((await call('GET', APPS)).body?.response, ['app']);
  const application = registry.vhost('made').application('app');
  t.deepEqual((await send('DELETE', '/v1/vhosts/made')).body, { statusCode: 200, message: 'OK' });
  t.true(application.closed);
  t.is((await call('GET', '/v1/vhosts/made')).status, 404);
  t.is((await send('POST', '/v1/vhosts', [VHOST])).status, 200);
  t.deepEqual((await call('GET', APPS)).body?.response, [], 'nothing of the deleted one comes back');
});

test('applications of a virtual host are created as given, without defaults, and `*` is its template', async (t) => {
  const { send, call } = await open(t);
  await send('POST', '/v1/vhosts', [
    { ...VHOST, applications: [APP, { name: '*', type: 'live', providers: { rtmp: {} } }] },
  ]);
  t.deepEqual((await call('GET', APPS)).body?.response, ['app']);
  t.deepEqual((await call('GET', `${APPS}/app`)).body?.response, { ...APP, dynamic: false });
  t.like((await call('GET', '/v1/vhosts/made')).body?.response as object, {
    dynamicApplicationTemplate: { name: '*', type: 'live', providers: { rtmp: {} } },
  });
});

test('batches: one result an item in their order, 207 when they differ, their common status when not', async (t) => {
  const { send } = await open(t);
  t.is((await send('POST', '/v1/vhosts', [])).status, 200);
  const mixed = await send('POST', '/v1/vhosts', [VHOST, VHOST, { ...VHOST, name: 'other' }]);
  t.is(mixed.status, 207);
  t.deepEqual(
    mixed.results.map(({ statusCode, message }) => [statusCode, message]),
    [
      [200, 'OK'],
      [409, 'Conflict'],
      [200, 'OK'],
    ],
  );
  t.false('response' in (mixed.results[1] ?? {}));
  const conflicts = await send('POST', '/v1/vhosts', [VHOST, { name: 'default', host: { names: ['*'] } }]);
  t.is(conflicts.status, 409);
  t.true(Array.isArray(conflicts.results));
  const wrong = await send('POST', '/v1/vhosts', [
    { ...VHOST, name: 'bad', distribution: 5 },
    { ...VHOST, name: 'good' },
  ]);
  t.is(wrong.status, 207);
  t.deepEqual(
    wrong.results.map(({ statusCode, message }) => [statusCode, message]),
    [
      [400, 'Bad Request'],
      [200, 'OK'],
    ],
  );
});

test('a batch that lacks a required value makes nothing', async (t) => {
  const { send, call } = await openMade(t);
  const vhosts = await send('POST', '/v1/vhosts', [{ ...VHOST, name: 'first' }, { name: 'second' }]);
  t.is(vhosts.status, 400);
  t.deepEqual(vhosts.body, { statusCode: 400, message: '[Config] host: is missing' });
  t.is((await call('GET', '/v1/vhosts/first')).status, 404);
  const apps = await send('POST', APPS, [{ ...APP, name: 'first' }, { name: 'second' }]);
  t.deepEqual(apps.body, { statusCode: 400, message: '[Config] type: is missing' });
  t.is((await call('GET', `${APPS}/first`)).status, 404);
  const profiles = await send('POST', PROFILES, [{ ...PROFILE, name: 'first' }, { name: 'second' }]);
  t.is(profiles.status, 400);
  t.is((await call('GET', `${PROFILES}/first`)).status, 404);
});

test('bodies that are no array, no object or no JSON are refused, everywhere', async (t) => {
  const { send } = await openMade(t);
  for (const path of ['/v1/vhosts', APPS, PROFILES]) {
    for (const body of [{}, 'null', '1', '"text"']) {
      t.deepEqual((await send('POST', path, body)).body, {
        statusCode: 400,
        message: '[HTTP] Request body must be an array (400)',
      });
    }
    t.is((await send('POST', path)).status, 400);
    t.is((await send('POST', path, '[{]')).status, 400);
    t.is((await send('POST', path, [null])).status, 400, 'items that are no objects');
    t.is((await send('POST', path, `[${'['.repeat(100_000)}`)).status, 400);
  }
  for (const path of [`${APPS}/app`, `${PROFILES}/p`]) {
    for (const body of [[], 'null', '1']) {
      t.deepEqual((await send('PATCH', path, body)).body, {
        statusCode: 400,
        message: '[HTTP] Request body must be an object (400)',
      });
    }
  }
  t.is((await send('POST', '/v1/vhosts', `["${'x'.repeat(1024 * 1024)}"]`)).status, 413);
});

test('names that no URL or message could carry are refused', async (t) => {
  const { send } = await openMade(t);
  for (const name of [
    '',
    'a/b',
    'a:b',
    'a#b',
    'a?b',
    'a%2fb',
    'a\\b',
    'a\u0000',
    'a\n',
    '\u202ea',
    ' a',
    'x'.repeat(256),
    '\ud800',
    '.',
    '..',
  ]) {
    t.is((await send('POST', '/v1/vhosts', [{ ...VHOST, name }])).status, 400, JSON.stringify(name));
    t.is((await send('POST', APPS, [{ ...APP, name }])).status, 400, JSON.stringify(name));
    t.is((await send('POST', PROFILES, [{ ...PROFILE, name }])).status, 400, JSON.stringify(name));
  }
  for (const name of ['größe', 'a b', '放送', 'x'.repeat(255), '__proto__', '...']) {
    t.is((await send('POST', APPS, [{ ...APP, name }])).status, 200, name);
  }
});

test('a batch has a limit, beyond which nothing is made', async (t) => {
  const { send, call } = await openMade(t);
  for (const path of ['/v1/vhosts', APPS, PROFILES]) {
    const before = (await call('GET', path)).body?.response;
    const { status, body } = await send(
      'POST',
      path,
      Array.from({ length: 1001 }, (_, i) => ({ ...VHOST, ...APP, ...PROFILE, name: `n${i}` })),
    );
    t.deepEqual([status, body.message], [400, '[HTTP] Request body must have at most 1000 items (400)']);
    t.deepEqual((await call('GET', path)).body?.response, before);
  }
});

test('an application gets defaults for what is not given', async (t) => {
  const { send, call } = await openMade(t);
  const { status, results } = await send('POST', APPS, [{ name: 'plain', type: 'LIVE' }]);
  t.is(status, 200);
  t.like(results[0]?.response, {
    name: 'plain',
    type: 'live',
    providers: { ovt: {}, rtspPull: {}, webrtc: {}, srt: {}, rtmp: {} },
    publishers: { llhls: {}, webrtc: {}, ovt: {} },
  });
  t.false('dynamic' in (results[0]?.response ?? {}));
  t.deepEqual((await call('GET', `${APPS}/plain/outputProfiles`)).body?.response, ['default']);
  const given = await send('POST', APPS, [
    { ...APP, name: 'given', providers: {}, publishers: { llhls: { segmentCount: 6 } } },
  ]);
  t.like(given.results[0]?.response, { providers: {}, publishers: { llhls: { segmentCount: 6 } } });
});

test('applications: the errors of creating them', async (t) => {
  const { send } = await openMade(t);
  t.deepEqual((await send('POST', '/v1/vhosts/none/apps', [APP])).body, {
    statusCode: 404,
    message: '[HTTP] Could not find the virtual host: [none] (404)',
  });
  t.is((await send('POST', APPS, [{ ...APP, name: '*' }])).status, 400);
  t.is((await send('POST', APPS, [{ ...APP, name: 'v', type: 'vod' }])).status, 400);
  t.is((await send('POST', APPS, [APP])).status, 409);
  const batch = await send('POST', APPS, [
    { ...APP, name: 'new' },
    { ...APP, name: 'new' },
  ]);
  t.is(batch.status, 207);
  t.deepEqual(
    batch.results.map(({ statusCode }) => statusCode),
    [200, 409],
  );
});

test('PATCH merges objects, replaces lists and values, restarts the application, and answers it', async (t) => {
  const { send, registry } = await openMade(t);
  const before = registry.vhost('made').application('app');
  const first = await send('PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: 60000 }, rtmp: {} } });
  t.is(first.status, 200);
  t.like(first.body.response, { name: 'app', dynamic: false, providers: { webrtc: { timeout: 60000 }, rtmp: {} } });
  t.true(before.closed);
  const after = registry.vhost('made').application('app');
  t.not(after, before);
  t.is(after.config.providers.webrtc?.timeout, 60000);
  const second = await send('PATCH', `${APPS}/app`, { providers: { webrtc: { firInterval: 100 } } });
  t.like(second.body.response, { providers: { webrtc: { timeout: 60000, firInterval: 100 }, rtmp: {} } });
  t.deepEqual(
    registry
      .vhost('made')
      .application('app')
      .config.outputProfiles.outputProfile.map(({ name }) => name),
    ['p'],
  );
});

test('a PATCH, of an application or a profile, that changes nothing disconnects no client and stores nothing', async (t) => {
  const { send, registry, options } = await open(t);
  const encode = { name: 'v', codec: 'h264', bitrate: 131_072, width: 640, height: 360, preset: 'fast' };
  const profile = { ...PROFILE, encodes: { videos: [encode] } };
  const providers = { rtmp: { maxConnection: 5, timestampMode: 'Original' }, webrtc: { timeout: 60_000 } };
  await send('POST', '/v1/vhosts', [
    { ...VHOST, applications: [{ ...APP, providers, outputProfiles: { outputProfile: [profile] } }] },
  ]);
  const application = registry.vhost('made').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  const shown = (await send('PATCH', `${APPS}/app`, {})).body.response;
  const stored = new Map(options.cluster.config.entries());
  const { name: _, ...same } = profile;
  const patches: readonly (readonly [path: string, change: object])[] = [
    [`${APPS}/app`, {}],
    [`${APPS}/app`, { type: 'LIVE' }],
    [`${APPS}/app`, { providers: {} }],
    [`${APPS}/app`, { providers }],
    [`${APPS}/app`, { providers: { webrtc: { timeout: 60_000 }, rtmp: { timestampMode: 'original' } } }],
    // what is the default
    [`${APPS}/app`, { providers: { webrtc: { firInterval: 3000 }, rtmp: { blockDuplicateStreamName: true } } }],
    [`${APPS}/app`, { publishers: {} }],
    [`${APPS}/app`, { providers: { unknown: 1 } }],
    [`${PROFILES}/p`, same],
    [`${PROFILES}/p`, { encodes: same.encodes, outputStreamName: same.outputStreamName }],
    [`${PROFILES}/p`, { ...same, encodes: { videos: [{ ...encode, bitrate: '128k', preset: 'FAST' }], audios: [] } }],
    [`${PROFILES}/p`, { ...same, encodes: { videos: [{ ...encode, bypass: false, lookahead: -1 }] } }],
  ];
  for (const [path, change] of patches) {
    const { status, body } = await send('PATCH', path, change);
    t.is(status, 200, JSON.stringify(change));
    const whole = path.endsWith('/app')
      ? shown
      : { ...profile, encodes: { ...profile.encodes, audios: [], images: [], data: [] } };
    t.deepEqual(body.response, whole, JSON.stringify(change));
  }
  const refused: readonly (readonly [method: 'PATCH' | 'POST', path: string, body: unknown, status: number])[] = [
    ['PATCH', `${APPS}/app`, { type: 'vod' }, 400],
    ['PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: '60000' } } }, 400],
    ['PATCH', `${APPS}/app`, { providers: null }, 400],
    ['PATCH', `${APPS}/app`, { name: 'app' }, 400],
    ['PATCH', `${PROFILES}/p`, { ...same, encodes: {} }, 400],
    ['PATCH', `${PROFILES}/p`, {}, 400],
    ['POST', PROFILES, [profile], 409],
    ['POST', PROFILES, [], 200],
    ['POST', PROFILES, [{ ...PROFILE, name: 'q' }, { name: 'r' }], 400],
    ['POST', APPS, [{ ...APP, type: 'vod' }], 400],
  ];
  for (const [method, path, body, status] of refused) {
    t.is((await send(method, path, body)).status, status, JSON.stringify(body));
  }
  t.is(registry.vhost('made').application('app'), application);
  t.false(input.closed);
  t.deepEqual(new Map(options.cluster.config.entries()), stored, 'no node hears of anything');
  t.is((await send('PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: 60_001 } } })).status, 200);
  t.true(input.closed);
});

test('PATCH refuses what it cannot change, and a wrong value changes nothing', async (t) => {
  const { send, registry } = await openMade(t);
  const application = registry.vhost('made').application('app');
  for (const key of ['name', 'dynamic', 'outputProfiles']) {
    t.deepEqual((await send('PATCH', `${APPS}/app`, { [key]: 'x', providers: {} })).body, {
      statusCode: 400,
      message: `[HTTP] Cannot change [${key}] using this API (400)`,
    });
  }
  t.is((await send('PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: 'soon' } } })).status, 400);
  t.is((await send('PATCH', `${APPS}/app`, '{"__proto__":{"polluted":true},"providers":{}}')).status, 400);
  t.is(({} as Record<string, unknown>).polluted, undefined);
  t.is((await send('PATCH', `${APPS}/none`, {})).status, 404);
  t.is((await send('PATCH', '/v1/vhosts/none/apps/app', {})).status, 404);
  t.is(registry.vhost('made').application('app'), application);
  t.false(application.closed);
});

test('DELETE of an application', async (t) => {
  const { send, call } = await openMade(t);
  t.deepEqual((await send('DELETE', `${APPS}/app`)).body, { statusCode: 200, message: 'OK' });
  t.deepEqual((await call('GET', APPS)).body?.response, []);
  t.is((await send('DELETE', `${APPS}/app`)).status, 404);
  t.is((await send('DELETE', '/v1/vhosts/none/apps/app')).status, 404);
});

test('output profiles: create, show, replace, delete, each restarting the application', async (t) => {
  const { send, call, registry } = await openMade(t);
  let application = registry.vhost('made').application('app');
  const restarted = () => {
    const was = application;
    application = registry.vhost('made').application('app');
    return was.closed && application !== was;
  };
  const created = await send('POST', PROFILES, [{ ...PROFILE, name: 'q' }, PROFILE]);
  t.is(created.status, 207);
  t.deepEqual(
    created.results.map(({ statusCode }) => statusCode),
    [200, 409],
  );
  t.like(created.results[0]?.response, { name: 'q', encodes: { videos: [{ name: 'v', bypass: true }], audios: [] } });
  t.true(restarted());
  t.is((await send('POST', PROFILES, [PROFILE])).status, 409);
  t.false(restarted(), 'nothing was added: nothing restarts');
  t.deepEqual((await call('GET', PROFILES)).body?.response, ['p', 'q']);

  const { name: _, ...rest } = PROFILE;
  const replaced = await send('PATCH', `${PROFILES}/q`, { ...rest, outputStreamName: 'fixed' });
  t.is(replaced.status, 200);
  t.like((await call('GET', `${PROFILES}/q`)).body?.response as object, { name: 'q', outputStreamName: 'fixed' });
  t.true(restarted());
  t.is((await send('PATCH', `${PROFILES}/q`, PROFILE)).status, 400);
  t.is((await send('PATCH', `${PROFILES}/none`, rest)).status, 404);

  t.is((await send('DELETE', `${PROFILES}/q`)).status, 200);
  t.true(restarted());
  t.is((await send('DELETE', `${PROFILES}/q`)).status, 404);
  t.is((await send('DELETE', `${PROFILES}/p`)).status, 200);
  t.deepEqual((await call('GET', PROFILES)).body?.response, []);
});

test('an output profile needs an encode', async (t) => {
  const { send } = await openMade(t);
  for (const encodes of [{}, { videos: [], audios: [] }, { images: [{ codec: 'jpeg' }] }]) {
    t.is((await send('POST', PROFILES, [{ ...PROFILE, name: 'q', encodes }])).status, 400, JSON.stringify(encodes));
  }
});

test('a resource that Server.xml declares is read-only, before the rest of a call is checked', async (t) => {
  const { send, registry } = await open(t);
  const expected = { statusCode: 403, message: '[HTTP] The VirtualHost is read-only: [default] (403)' };
  const base = '/v1/vhosts/default';
  const calls = [
    ['DELETE', base],
    ['PUT', base, {}],
    ['POST', `${base}/apps`, 'not even JSON-shaped: 5'.slice(-1)],
    ['PATCH', `${base}/apps/app`, []],
    ['PATCH', `${base}/apps/none`, {}],
    ['DELETE', `${base}/apps/app`],
    ['PUT', `${base}/apps/app`, {}],
    ['POST', `${base}/apps/app/outputProfiles`, {}],
    ['POST', `${base}/apps/app/outputProfiles`, [PROFILE]],
    ['PATCH', `${base}/apps/app/outputProfiles/bypass`, {}],
    ['DELETE', `${base}/apps/app/outputProfiles/bypass`],
    ['PUT', `${base}/apps/app/outputProfiles/bypass`, {}],
  ] as const;
  for (const [method, path, body] of calls)
    t.deepEqual((await send(method, path, body)).body, expected, `${method} ${path}`);
  t.deepEqual([...registry.vhost('default').applications.keys()], ['app', 'bare']);
  t.is((await send('PUT', '/v1/vhosts/none', {})).status, 404);
  await send('POST', '/v1/vhosts', [VHOST]);
  t.is((await send('PUT', '/v1/vhosts/made', {})).status, 404);
});

test('all resources that were created, changed or deleted are restored by a restart', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-api-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'config.json');
  const first = new Registry();
  createVhost(first, { name: 'default', host: { names: ['*'] } });
  const before = await dynamicConfig(first, file);
  await before.config.createVhosts([
    { ...VHOST, applications: [APP, { name: '*', type: 'live' }] },
    { ...VHOST, name: 'gone' },
  ]);
  await before.config.createApplications('made', () => [
    { ...APP, name: 'second' },
    { ...APP, name: 'third' },
  ]);
  await before.config.patchApplication('made', 'second', () => ({ publishers: { llhls: { segmentCount: 7 } } }));
  await before.config.createProfiles('made', 'app', () => [PROFILE]);
  await before.config.deleteApplication('made', 'third');
  await before.config.deleteVhost('gone');
  await before.cluster.close();

  const second = new Registry();
  createVhost(second, { name: 'default', host: { names: ['*'] } });
  const after = await dynamicConfig(second, file);
  t.teardown(() => after.cluster.close());
  await after.config.restore();
  t.deepEqual([...second.vhosts.keys()], ['default', 'made']);
  const made = second.vhost('made');
  t.false(made.isStatic);
  t.deepEqual([...made.applications.keys()], ['app', 'second']);
  t.is(made.application('second').config.publishers.llhls?.segmentCount, 7);
  t.deepEqual(
    made.application('app').config.outputProfiles.outputProfile.map(({ name }) => name),
    ['default', 'p'],
  );
  t.is(made.template?.name, '*');
});

test('a resource that cannot be stored is not created, item by item, and can be tried again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-api-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const registry = new Registry();
  const { cluster, config } = await dynamicConfig(registry, join(folder, 'data', 'config.json'));
  t.teardown(() => cluster.close());
  await config.createVhosts([{ ...VHOST, applications: [APP] }]);
  // A file in the folder's place: nothing can be written, by root neither.
  renameSync(join(folder, 'data'), join(folder, 'away'));
  writeFileSync(join(folder, 'data'), '');
  const statuses = (outcomes: readonly object[]) =>
    outcomes.map((outcome) => ('error' in outcome ? (outcome.error as KilnError).status : 200));
  t.deepEqual(statuses(await config.createVhosts([VHOST, { ...VHOST, name: 'other' }])), [409, 500]);
  t.deepEqual(statuses(await config.createApplications('made', () => [APP, { ...APP, name: 'other' }])), [409, 500]);
  for (const change of [
    () => config.patchApplication('made', 'app', () => ({ publishers: { llhls: {} } })),
    () => config.createProfiles('made', 'app', () => [PROFILE]),
    () => config.deleteApplication('made', 'app'),
    () => config.deleteVhost('made'),
  ]) {
    await t.throwsAsync(change, { code: 'storageFailed', message: 'Internal Server Error' });
  }
  t.deepEqual([...registry.vhosts.keys()], ['made']);
  t.deepEqual([...registry.vhost('made').applications.keys()], ['app']);
  t.false(registry.vhost('made').application('app').closed);
  rmSync(join(folder, 'data'));
  renameSync(join(folder, 'away'), join(folder, 'data'));
  t.deepEqual(statuses(await config.createVhosts([VHOST, { ...VHOST, name: 'other' }])), [409, 200]);
});

/** A configuration whose warnings are noted. */
async function noted() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const registry = new Registry();
  const cluster = await openAlone();
  const certificates = new CertificateStore({ folder: '/', log });
  const config = new DynamicConfig({ registry, cluster, certificates, log });
  return { lines, log, cluster, certificates, config };
}

test('an application in OriginMode is warned of where access control is configured', async (t) => {
  const { lines, config } = await noted();
  const admissionWebhooks = { controlServerUrl: 'http://127.0.0.1/', enables: { publishers: 'llhls' } };
  const origin = { name: 'origin', type: 'live', publishers: { llhls: { originMode: true } } };
  await config.createVhosts([{ ...VHOST, name: 'guarded', admissionWebhooks }]);
  await config.createVhosts([{ ...VHOST, name: 'open' }]);
  lines.length = 0;
  for (const vhost of ['guarded', 'open']) await config.createApplications(vhost, () => [origin]);
  t.is(lines.length, 1);
  t.is(lines[0]?.application, 'origin');
  t.regex(String(lines[0]?.pending), /^OriginMode limits access control to master playlists/);
});

test('keys that have no effect are named in the log', async (t) => {
  const { lines, config } = await noted();
  await config.createVhosts([{ ...VHOST, applications: [APP] }]);
  t.deepEqual(lines, []);
  await config.patchApplication('made', 'app', () => ({ providers: { webrtcc: { timeout: 1 } } }));
  t.deepEqual(
    lines.map(({ ignored }) => ignored),
    [['providers.webrtcc: is unknown and has no effect']],
  );
});

test('modules that are not available are named in the log, except those that every application has by default', async (t) => {
  const { lines, log, cluster, certificates, config } = await noted();
  const ulpfec = { publishers: { webrtc: { ulpfec: true } } };
  await config.createVhosts([{ ...VHOST, applications: [{ name: 'recorded', type: 'live', ...ulpfec }] }]);
  t.deepEqual(
    lines.splice(0).map(({ application, pending }) => [application, (pending as string[]).length]),
    [['recorded', 1]],
  );
  await config.createApplications('made', () => [{ name: 'plain', type: 'live' }]);
  t.deepEqual(lines, []);
  await config.patchApplication('made', 'plain', () => ulpfec);
  t.deepEqual(
    lines.splice(0).map(({ pending }) => pending),
    [['Ulpfec is not available: its configuration has no effect']],
  );
  const again = new Registry();
  await new DynamicConfig({ registry: again, cluster, certificates, log }).restore();
  t.deepEqual(
    lines.map(({ application }) => application),
    ['recorded', 'plain'],
    'and at the next start',
  );
});

test('an application that is created while a publisher demands it of the template is the created one', async (t) => {
  const registry = new Registry();
  const cluster = await openAlone();
  const { config: inner } = cluster;
  let demand = (): void => {};
  const store: ConfigStore = {
    stale: false,
    get position() {
      return inner.position;
    },
    entries: () => inner.entries(),
    sync: () => inner.sync(),
    listen: (listener) => inner.listen(listener),
    write: async (changes) => {
      demand();
      await inner.write(changes);
    },
  };
  const log = pino({ level: 'silent' });
  const withLock = cluster.withLock.bind(cluster);
  const certificates = new CertificateStore({ folder: '/', log });
  const config = new DynamicConfig({ registry, cluster: { config: store, withLock }, certificates, log });
  await config.createVhosts([{ ...VHOST, applications: [{ name: '*', type: 'live' }] }]);
  const made = registry.vhost('made');
  const onDemand: Application[] = [];
  demand = () => onDemand.push(made.demandApplication('app'));
  const [outcome] = await config.createApplications('made', () => [APP]);
  t.deepEqual(Object.keys(outcome ?? {}), ['made']);
  t.true(onDemand[0]?.closed);
  t.false(made.application('app').dynamic);
});

test('stored configuration that a new Server.xml contradicts stays stored', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-api-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'config.json');
  const before = await dynamicConfig(new Registry(), file);
  await before.config.createVhosts([{ ...VHOST, applications: [APP] }]);
  await before.cluster.close();
  const stored = readFileSync(file, 'utf8');

  const registry = new Registry();
  createVhost(registry, VHOST);
  const after = await dynamicConfig(registry, file);
  t.teardown(() => after.cluster.close());
  await after.config.restore();
  t.true(registry.vhost('made').isStatic);
  t.deepEqual([...registry.vhost('made').applications.keys()], []);
  t.is(readFileSync(file, 'utf8'), stored);
});

test('creates of one name at once: one succeeds', async (t) => {
  const { send } = await open(t, sampleRegistry());
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async () => (await send('POST', '/v1/vhosts', [VHOST])).status),
  );
  t.deepEqual(statuses.sort(), [200, ...Array<number>(9).fill(409)]);
});

test("a publisher's application is made of the template, up to a limit, and goes when it is deleted", async (t) => {
  const { send, call, registry } = await open(t);
  await send('POST', '/v1/vhosts', [
    { ...VHOST, applications: [{ name: '*', type: 'live', providers: { rtmp: {} } }] },
  ]);
  const made = registry.vhost('made');
  const application = made.demandApplication('on-demand');
  t.is(made.demandApplication('on-demand'), application);
  t.like((await call('GET', `${APPS}/on-demand`)).body?.response as object, {
    name: 'on-demand',
    dynamic: true,
    providers: { rtmp: {} },
  });
  const changed = await send('PATCH', `${APPS}/on-demand`, { publishers: { llhls: {} } });
  t.like(changed.body.response, { dynamic: false, publishers: { llhls: {} } });
  t.is((await send('DELETE', `${APPS}/on-demand`)).status, 200);
  const other = made.demandApplication('other');
  t.is((await send('DELETE', '/v1/vhosts/made/apps/other')).status, 200);
  t.true(other.closed);
  t.throws(() => made.demandApplication('a:b'), { code: 'applicationNotFound' });
  const publish = (name: string) =>
    made.demandApplication(name).publish('s', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  const streams = Array.from({ length: 1000 }, (_, i) => publish(`app${i}`));
  t.throws(() => made.demandApplication('one more'), { code: 'tooManyApplications' });
  streams[7]?.close('gone');
  t.is(made.demandApplication('one more').name, 'one more', 'what nobody uses gives way');
  t.false(made.applications.has('app7'));
  t.throws(() => registry.vhost('default').demandApplication('none'), { code: 'applicationNotFound' });
});
