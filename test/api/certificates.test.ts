import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CertificateStore } from '../../src/tls/certificates.ts';
import { apiRoutes } from '../../src/api/app.ts';
import { Registry } from '../../src/core/registry.ts';
import { healthRoutes } from '../../src/web/health.ts';
import { createHttpPort } from '../../src/web/http-port.ts';
import { apiOptions, basic, createVhost, dynamicConfig, TOKEN } from '../support/api/api.ts';
import { openClient, openTls, PROTOCOLS, shownName, type Client } from '../support/network/http-client.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';

const log = pino({}, { write: () => {} });
const OK = { message: 'OK', statusCode: 200 };
const FAILED = {
  message: '[HTTP] Failed to reload certificate. Check server log for more information. (500)',
  statusCode: 500,
};

/** An API with TLS, virtual hosts `first` and `second` with certificates, `plain` without. */
async function open(t: ExecutionContext, { tls = true } = {}) {
  const folder = new CertificateFolder(t);
  const registry = new Registry();
  const vhosts = new CertificateStore({ folder: folder.path, log });
  for (const name of ['first', 'second']) {
    const host = { names: [`${name}.example`], tls: folder.write(name, issue(name)) };
    createVhost(registry, { name, host });
    await vhosts.load(registry.vhost(name).config);
  }
  createVhost(registry, { name: 'plain', host: { names: ['*'] } });
  const own = new CertificateStore({ folder: folder.path, log });
  const managers = { name: 'Managers', host: { names: ['*'], tls: folder.write('api', issue('api')) } };
  const reloadApi = tls ? () => own.load(managers) : undefined;
  await reloadApi?.();
  const port = createHttpPort({ log, ...(tls && { tls: { certificates: own, http2: true } }) });
  await port.app.register(healthRoutes(() => ({ ready: true })));
  await port.app.register(apiRoutes(await apiOptions({}, registry, { vhosts, reloadApi })));
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  const post = async (url: string, payload?: unknown) => {
    const headers = { authorization: basic(TOKEN), 'content-type': 'application/json' };
    const { statusCode: status, body } = await port.app.inject({
      method: 'POST',
      url,
      headers,
      payload: payload === undefined ? undefined : JSON.stringify(payload),
    });
    return { status, body: JSON.parse(body) as unknown };
  };
  return { folder, registry, vhosts, port, number, post };
}

const keyOf = (store: CertificateStore, name: string) => store.select(`${name}.example`);

test("a virtual host's certificate is loaded again; a wrong one leaves the old one", async (t) => {
  const { folder, vhosts, post } = await open(t);
  const url = '/v1/vhosts/second:reloadCertificate';
  const [first, second] = [keyOf(vhosts, 'first'), keyOf(vhosts, 'second')];
  folder.write('second', issue('second'));
  t.deepEqual(await post(url, {}), { status: 200, body: OK });
  const renewed = keyOf(vhosts, 'second');
  t.not(renewed, second);
  t.is(keyOf(vhosts, 'first'), first);
  t.deepEqual(await post(url), { status: 200, body: OK }, 'without a body');
  const latest = keyOf(vhosts, 'second');
  writeFileSync(join(folder.path, 'second.key'), issue('other').key);
  t.deepEqual(await post(url), { status: 500, body: FAILED });
  rmSync(join(folder.path, 'second.crt'));
  t.deepEqual(await post(url), { status: 500, body: FAILED });
  t.is(keyOf(vhosts, 'second'), latest);
});

test('a virtual host that is unknown, or has no TLS', async (t) => {
  const { post } = await open(t);
  t.deepEqual(await post('/v1/vhosts/none:reloadCertificate', {}), {
    status: 404,
    body: { message: '[HTTP] Could not find the virtual host: [none] (404)', statusCode: 404 },
  });
  t.deepEqual(await post('/v1/vhosts/plain:reloadCertificate', {}), { status: 500, body: FAILED });
});

test('all certificates are loaded again, each by itself', async (t) => {
  const { folder, vhosts, post } = await open(t);
  const url = '/v1/vhosts:reloadAllCertificates';
  const before = [keyOf(vhosts, 'first'), keyOf(vhosts, 'second')];
  t.deepEqual(await post(url, {}), { status: 200, body: OK });
  const after = [keyOf(vhosts, 'first'), keyOf(vhosts, 'second')];
  t.is(new Set([...before, ...after]).size, 4);
  rmSync(join(folder.path, 'first.crt'));
  t.deepEqual(await post(url), { status: 500, body: FAILED });
  t.is(keyOf(vhosts, 'first'), after[0]);
  t.not(keyOf(vhosts, 'second'), after[1]);
});

test('unknown actions are rejected, and other methods than POST not allowed', async (t) => {
  const { port, post } = await open(t);
  const NOT_FOUND = { message: '[HTTP] Controller not found (404)', statusCode: 404 };
  for (const url of [
    '/v1/vhosts:reload',
    '/v1/vhosts/first:reload',
    '/v1/managers/api:reload',
    '/v1/managers:reloadCertificate',
  ]) {
    t.deepEqual(await post(url, {}), { status: 404, body: NOT_FOUND }, url);
  }
  for (const url of ['/v1/vhosts:reloadAllCertificates', '/v1/managers/api:reloadCertificate']) {
    const { statusCode } = await port.app.inject({ method: 'GET', url, headers: { authorization: basic(TOKEN) } });
    t.is(statusCode, 405);
  }
  const malformed = await port.app.inject({
    method: 'POST',
    url: '/v1/vhosts:reloadAllCertificates',
    headers: { authorization: basic(TOKEN) },
    payload: '{',
  });
  t.is(malformed.statusCode, 400);
  const foreign = await port.app.inject({ method: 'POST', url: '/v1/vhosts:reloadAllCertificates' });
  t.is(foreign.statusCode, 401);
});

test("the API's own certificate changes for new connections; without TLS there is none", async (t) => {
  const { folder, number, post } = await open(t);
  const url = '/v1/managers/api:reloadCertificate';
  const call = async (client: Client, path = '/v1/version') => {
    const method = path === '/v1/version' ? 'GET' : 'POST';
    return (await client.call(path, { method, headers: { authorization: basic(TOKEN) } })).status;
  };
  for (const protocol of PROTOCOLS) {
    const name = `renewed-${protocol}`;
    const old = await openClient(t, protocol, number);
    folder.write('api', issue(name));
    t.is(await call(old, url), 200);
    t.is(shownName(await openTls(t, number)), name);
    t.is(await call(old), 200);
    writeFileSync(join(folder.path, 'api.crt'), 'nonsense');
    t.deepEqual(await post(url), {
      status: 500,
      body: { message: '[HTTP] Failed to create a certificate for API Server (500)', statusCode: 500 },
    });
    t.is(shownName(await openTls(t, number)), name);
    t.is(await call(old), 200);
  }
  const { post: postPlain } = await open(t, { tls: false });
  t.deepEqual(await postPlain(url, {}), {
    status: 400,
    body: { message: '[HTTP] TLS is not enabled for the API Server (400)', statusCode: 400 },
  });
});

test('the API is the same over HTTP/1.1 and HTTP/2', async (t) => {
  const { number } = await open(t);
  const authorization = basic(TOKEN);
  const json = { authorization, 'content-type': 'application/json' };
  const ask = async (client: Client) => {
    const answers = [];
    for (const [method, path, headers, body] of [
      ['GET', '/v1/version', { authorization }],
      ['HEAD', '/v1/version', { authorization }],
      ['GET', '/v1/vhosts', { authorization }],
      ['GET', '/v1/vhosts', {}],
      ['OPTIONS', '/v1/vhosts', { origin: 'https://a.example' }],
      ['GET', '/v1/nothing', { authorization }],
      ['PUT', '/v1/vhosts/first', { authorization }],
      ['POST', '/v1/vhosts', json, '[]'],
      ['POST', '/v1/vhosts/first:reloadCertificate', { authorization }],
      ['DELETE', '/v1/vhosts/first', { authorization }],
      ['GET', '/livez', {}],
      ['GET', '/openapi.json', { authorization }],
      // last: in HTTP/1.1 this ends the connection
      ['POST', '/v1/vhosts', json, '{'],
    ] as const) {
      const answer = await client.call(path, { method, headers, body });
      const { 'content-type': type, 'content-length': length, 'www-authenticate': challenge } = answer.headers;
      answers.push({ method, path, status: answer.status, type, length, challenge, body: answer.body.toString() });
    }
    return answers;
  };
  const [h1, h2] = await Promise.all(PROTOCOLS.map(async (protocol) => ask(await openClient(t, protocol, number))));
  t.deepEqual(h1, h2);
  t.is(h1?.[0]?.status, 200);
});

test('a virtual host made through the API brings its certificate, and takes it along', async (t) => {
  const { folder, vhosts, registry } = await open(t);
  const { config } = await dynamicConfig(registry, undefined, vhosts);
  const tls = folder.write('made', issue('made'));
  const vhost = { name: 'made', host: { names: ['made.example'], tls }, applications: [] };
  const [made] = await config.createVhosts([vhost]);
  t.true(made !== undefined && 'made' in made);
  t.truthy(vhosts.select('made.example'));
  const bad = { ...vhost, name: 'bad', host: { names: ['bad.example'], tls: { ...tls, keyPath: 'missing.key' } } };
  const [refused] = await config.createVhosts([bad]);
  t.true(refused !== undefined && 'error' in refused && refused.error.status === 400);
  t.regex(
    refused !== undefined && 'error' in refused ? refused.error.message : '',
    /^host\.tls\.keyPath: "missing.key" cannot/,
  );
  t.false(registry.vhosts.has('bad'));
  const [twice] = await config.createVhosts([vhost]);
  t.true(twice !== undefined && 'error' in twice && twice.error.status === 409);
  t.truthy(vhosts.select('made.example'));
  await config.deleteVhost('made');
  t.is(vhosts.select('made.example'), undefined);
});

test('a stored virtual host whose certificate is gone comes back, and gets it by a reload', async (t) => {
  const folder = new CertificateFolder(t);
  const file = join(folder.path, 'config.json');
  const before = await dynamicConfig(new Registry(), file);
  const tls = folder.write('made', issue('made'));
  const [made] = await before.config.createVhosts([{ name: 'made', host: { names: ['made.example'], tls } }]);
  t.true(made !== undefined && 'made' in made);
  await before.cluster.close();
  rmSync(tls.certPath);

  const registry = new Registry();
  const vhosts = new CertificateStore({ folder: folder.path, log });
  const after = await dynamicConfig(registry, file, vhosts);
  t.teardown(() => after.cluster.close());
  await after.config.restore();
  t.true(registry.vhosts.has('made'));
  t.is(vhosts.initial, undefined);
  const app = Fastify();
  t.teardown(() => app.close());
  await app.register(apiRoutes(await apiOptions({}, registry, { vhosts })));
  const reload = () =>
    app.inject({
      method: 'POST',
      url: '/v1/vhosts/made:reloadCertificate',
      headers: { authorization: basic(TOKEN) },
    });
  t.is((await reload()).statusCode, 500);
  folder.write('made', issue('made'));
  t.is((await reload()).statusCode, 200);
  t.truthy(vhosts.select('made.example'));
});
