import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import fastify, { type FastifyInstance } from 'fastify';
import { Registry } from '../../../src/core/registry.ts';
import { apiHomeRoutes } from '../../../src/web/api-home.ts';
import { pagesRoutes } from '../../../src/web/pages.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { addVhost, goLive } from '../../support/server/live.ts';

async function serve(
  t: ExecutionContext,
  hostNames = ['*'],
  schemes: readonly string[] = [],
): Promise<{ app: FastifyInstance; registry: Registry }> {
  const registry = new Registry();
  addVhost(registry, { hostNames, providers: {} });
  const { live } = await aloneWith(registry);
  const app = fastify();
  await app.register(pagesRoutes({ registry, live, serves: ['llhls', 'webrtc'], redirects: { schemes } }));
  t.teardown(() => app.close());
  return { app, registry };
}

const NASTY = '<script>alert(1)</script>"\'&';

test('the pages carry a policy that allows nothing but their own files, and nothing inline', async (t) => {
  const { app } = await serve(t);
  for (const url of ['/', '/app/stream', '/publish', '/app/stream?publish', '/nowhere/stream']) {
    const { headers, body } = await app.inject(url);
    const policy = String(headers['content-security-policy']);
    t.regex(policy, /default-src 'none'/);
    t.notRegex(policy, /unsafe|\*|https?:/);
    t.is(headers['x-content-type-options'], 'nosniff');
    t.is(headers['referrer-policy'], 'no-referrer');
    t.is(headers['content-type'], 'text/html; charset=utf-8');
    t.notRegex(body, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/);
    t.notRegex(body, /(?:src|href)="(?:https?:)?\/\//);
  }
});

test('pages name what they load and lead to from where they are', async (t) => {
  const { app } = await serve(t);
  const headers = { accept: 'text/html' };
  for (const path of [
    '/',
    '/publish',
    '/app/stream',
    '/app/stream?publish',
    '/nowhere',
    '/a/b/c/d/',
    `/${'a/'.repeat(40)}b`,
  ]) {
    const { body } = await app.inject({ url: path, headers });
    const names = [...body.matchAll(/(?:src|href)="([^"#]*)"/g)].map(([, name]) => name as string);
    t.true(names.length > 3, path);
    for (const name of names) {
      const { pathname } = new URL(name, `http://proxy/below${path}`);
      const own = path.length > 40 ? pathname : pathname.replace(/^\/below/, '');
      t.is((await app.inject({ url: own, headers })).statusCode, 200, `${name} of ${path}`);
      t.is(pathname.startsWith('/below/'), path.length < 40, `${name} of ${path}`);
    }
  }
});

test('a page may follow where nodes send viewers, and nowhere else', async (t) => {
  const { app } = await serve(t, ['*'], ['http:', 'https:']);
  const policy = String((await app.inject('/app/stream')).headers['content-security-policy']);
  t.regex(policy, /connect-src 'self' http: https:;/);
  t.regex(policy, /media-src 'self' blob: data: http: https:;/);
  t.is(policy.match(/https:/g)?.length, 2);
});

test('other sites may frame the player when they ask for it as a part, and no page that publishes', async (t) => {
  const { app, registry } = await serve(t, ['localhost']);
  const publishers = { llhls: { crossDomains: { url: ['https://site.example'], header: [] } } } as never;
  addVhost(registry, { name: 'other', hostNames: ['other.example'], applications: ['tv'], publishers });
  const ancestors = async (url: string, host: string) => {
    const { headers } = await app.inject({ url, headers: { host } });
    return /frame-ancestors ([^;]*)/.exec(String(headers['content-security-policy']))?.[1];
  };
  t.is(await ancestors('/tv/stream?embed', 'other.example'), "'self' https://site.example");
  t.is(await ancestors('/app/stream?embed', 'localhost'), "'self'");
  for (const url of ['/tv/stream', '/tv/stream?publish&embed', '/publish?embed', '/?embed'])
    t.is(await ancestors(url, 'other.example'), "'self'", url);
});

test('the places to publish are those of the requested host name, and not to be cached', async (t) => {
  const { app } = await serve(t);
  const { headers, body } = await app.inject({ url: '/-/publish.json', headers: { host: 'live.example:3333' } });
  t.is(headers['cache-control'], 'no-store');
  t.deepEqual(JSON.parse(body), { here: false, restricted: false, applications: [] });
});

test('a name in the address never becomes part of the page', async (t) => {
  const { app, registry } = await serve(t);
  goLive(registry, 'app', NASTY);
  const plain = await app.inject('/app/stream');
  const nasty = await app.inject(`/app/${encodeURIComponent(NASTY)}?mode=${encodeURIComponent(NASTY)}`);
  t.is(nasty.statusCode, 200);
  t.is(nasty.body, plain.body);
});

test('the list carries names as JSON data, not to be cached', async (t) => {
  const { app, registry } = await serve(t);
  goLive(registry, 'app', NASTY);
  const { headers, body, statusCode } = await app.inject('/-/streams.json');
  t.is(statusCode, 200);
  t.is(headers['content-type'], 'application/json; charset=utf-8');
  t.is(headers['cache-control'], 'no-store');
  t.is(headers['x-content-type-options'], 'nosniff');
  t.is(JSON.parse(body).streams[0].stream, NASTY);
  const query = new URLSearchParams({ app: 'app', stream: NASTY });
  t.is((await app.inject(`/-/streams.json?${query}`)).json().streams.length, 1);
  t.is((await app.inject('/-/streams.json?app=app&stream=none')).json().streams.length, 0);
});

test('unknown virtual hosts and applications get a page that says so', async (t) => {
  const { app } = await serve(t, ['live.example']);
  const at = (url: string, host = 'live.example') => app.inject({ url, headers: { host } });
  t.is((await at('/')).statusCode, 200);
  t.is((await at('/app/stream')).statusCode, 200);
  for (const url of ['/', '/app/stream', '/publish', '/-/streams.json', '/-/publish.json']) {
    t.is((await at(url, 'other.example:3333')).statusCode, 404);
  }
  const answer = await at('/other/stream');
  t.is(answer.statusCode, 404);
  t.regex(answer.body, /nothing at this address/);
  t.is((await at('/-/assets/secrets.js')).statusCode, 404);
  t.is((await at('/-/assets/..%2f..%2fpages.ts')).statusCode, 404);
});

test('a path that leads nowhere is a page for a browser, and a line for anything else', async (t) => {
  const { app } = await serve(t);
  for (const url of ['/nowhere', '/app/stream/more', '/app/stream/nothing.txt']) {
    const page = await app.inject({ url, headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    t.is(page.statusCode, 404);
    t.is(page.headers['content-type'], 'text/html; charset=utf-8');
    t.regex(String(page.headers['content-security-policy']), /default-src 'none'/);
    t.regex(page.body, /nothing at this address/);
    t.is(page.headers.vary, 'accept, accept-encoding');
    const line = await app.inject({ url, headers: { accept: '*/*' } });
    t.is(line.statusCode, 404);
    t.is(line.headers['content-type'], 'text/plain; charset=utf-8');
    t.is(line.headers.vary, 'accept');
    t.is((await app.inject({ method: 'POST', url, headers: { accept: 'text/html' } })).body, 'Not found');
  }
});

test('the API port says what it is, to browsers and to programs', async (t) => {
  const app = fastify();
  t.teardown(() => app.close());
  await app.register(apiHomeRoutes);
  const page = await app.inject({ url: '/', headers: { accept: 'text/html' } });
  t.is(page.statusCode, 200);
  t.regex(page.body, /management API.*href="\.\/docs"/s);
  t.is(page.headers.vary, 'accept, accept-encoding');
  for (const [, file = ''] of page.body.matchAll(/"\.(\/-\/[^"]+)"/g))
    t.is((await app.inject(file)).statusCode, 200, file);
  const { body, headers } = await app.inject({ url: '/', headers: { accept: '*/*' } });
  t.is(headers.vary, 'accept');
  t.like(JSON.parse(body), { statusCode: 200, message: 'OK', response: { documentation: '/docs', api: '/v1' } });
});

test('every file that a page names is there, and may be kept for ever', async (t) => {
  const { app } = await serve(t);
  const files = new Set<string>();
  for (const url of ['/', '/app/stream', '/publish', '/nowhere/stream']) {
    for (const [, file = ''] of (await app.inject(url)).body.matchAll(/(?:src|href)="([./]+-\/[^"]+)"/g))
      files.add(new URL(file, `http://host${url}`).pathname);
  }
  t.true(files.size >= 8);
  for (const url of files) {
    const { statusCode, headers, body } = await app.inject(url);
    t.is(statusCode, 200, url);
    t.is(headers['cache-control'], 'public, max-age=31536000, immutable');
    for (const [, module = ''] of body.matchAll(/^import .* from '(.*)';$/gm)) {
      t.is((await app.inject(new URL(module, `http://host${url}`).pathname)).statusCode, 200, `${url} -> ${module}`);
    }
  }
});

test('hls.js comes whole, compressed for those who take it, and is not sent twice', async (t) => {
  const { app } = await serve(t);
  const url = '/-/assets/hls.js';
  const plain = await app.inject(url);
  t.is(plain.headers['content-encoding'], undefined);
  t.is(plain.headers['content-type'], 'text/javascript; charset=utf-8');
  t.is(plain.headers['cache-control'], 'no-cache');
  t.regex(plain.body, /export\s*\{[^}]*as default/);
  for (const accept of ['gzip', 'br, gzip;q=0.5']) {
    const packed = await app.inject({ url, headers: { 'accept-encoding': accept } });
    t.is(packed.headers['content-encoding'], 'gzip', accept);
    t.is(packed.headers.vary, 'accept-encoding');
    t.true(packed.rawPayload.length < plain.rawPayload.length / 2);
    t.true(gunzipSync(packed.rawPayload).equals(plain.rawPayload));
  }
  for (const accept of ['br', 'gzip;q=0', 'gzip;q=0.0, br']) {
    const refused = await app.inject({ url, headers: { 'accept-encoding': accept } });
    t.is(refused.headers['content-encoding'], undefined, accept);
  }
  const etag = String(plain.headers.etag);
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const again = await app.inject({ url, headers: { 'if-none-match': known } });
    t.is(again.statusCode, 304, known);
    t.is(again.rawPayload.length, 0);
  }
  t.is((await app.inject({ url, headers: { 'if-none-match': '"other"' } })).statusCode, 200);
});

test('a page is asked for again each time, and answered 304 while it is the same', async (t) => {
  const { app } = await serve(t);
  const { headers } = await app.inject('/app/stream');
  t.is(headers['cache-control'], 'no-cache');
  const again = await app.inject({ url: '/app/other', headers: { 'if-none-match': String(headers.etag) } });
  t.is(again.statusCode, 304);
  const absent = await app.inject({ url: '/nowhere/other', headers: { 'if-none-match': '*' } });
  t.is(absent.statusCode, 404);
});

test('a page that publishes lists the addresses of its port for publishers', async (t) => {
  for (const serves of [['whip'], ['llhls']] as const) {
    const registry = new Registry();
    addVhost(registry, { providers: {} });
    const { live } = await aloneWith(registry);
    const app = fastify();
    t.teardown(() => app.close());
    let opened = 0;
    await app.register(pagesRoutes({ registry, live, serves, onPublishPage: () => opened++ }));
    for (const url of ['/publish', '/app/stream?publish', '/', '/app/stream']) await app.inject(url);
    t.is(opened, serves[0] === 'whip' ? 2 : 0);
  }
});
