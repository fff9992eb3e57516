import { hash } from 'node:crypto';
import test from 'ava';
import { basic, openApi, TOKEN } from '../support/api/api.ts';

const PATH = '/v1/vhosts/default/apps/app';

test('an entity tag is the hash and the size of the answer; a client that has it already gets 304', async (t) => {
  const { call } = await openApi(t, { etag: true });
  const { status, headers, text } = await call('GET', PATH);
  t.is(status, 200);
  const etag = String(headers.etag);
  t.is(etag, `"${hash('sha1', text)}-${Buffer.byteLength(text)}"`);
  for (const given of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const again = await call('GET', PATH, { 'if-none-match': given });
    t.is(again.status, 304, given);
    t.is(again.text, '');
    t.is(again.headers.etag, etag);
    t.is(again.headers['content-length'], undefined);
    t.is(again.headers['content-type'], undefined);
  }
  for (const given of ['"x"', etag.slice(1, -1), ''])
    t.is((await call('GET', PATH, { 'if-none-match': given })).text, text);
});

test('HEAD has the tag of GET', async (t) => {
  const { call } = await openApi(t, { etag: true });
  const { headers } = await call('GET', PATH);
  const head = await call('HEAD', PATH);
  t.is(head.headers.etag, headers.etag);
  t.is(head.headers['content-length'], headers['content-length']);
  const again = await call('HEAD', PATH, { 'if-none-match': String(headers.etag) });
  t.is(again.status, 304);
  t.is(again.headers.etag, headers.etag);
  t.is(again.text, '');
});

test('the page of the documentation has tags, too', async (t) => {
  const { app } = await openApi(t, { etag: true });
  const get = (url: string, more = {}) => app.inject({ url, headers: { authorization: basic(TOKEN), ...more } });
  for (const url of ['/docs/', '/docs/json', '/docs/static/swagger-ui.css']) {
    const { statusCode, headers } = await get(url);
    t.is(statusCode, 200);
    const again = await get(url, { 'if-none-match': String(headers.etag) });
    t.deepEqual([again.statusCode, again.body], [304, ''], url);
  }
});

test('a resource that has changed is sent again, despite its earlier ETag', async (t) => {
  const { call } = await openApi(t, { etag: true });
  const { headers } = await call('GET', '/v1/vhosts');
  const made = await call('POST', '/v1/vhosts', {}, JSON.stringify([{ name: 'made', host: { names: ['made'] } }]));
  t.is(made.headers.etag, undefined);
  t.is((await call('GET', '/v1/vhosts', { 'if-none-match': String(headers.etag) })).status, 200);
});

test('errors have no tag, and nothing has one unless it is configured', async (t) => {
  const on = await openApi(t, { etag: true });
  t.is((await on.call('GET', '/v1/vhosts/x', { 'if-none-match': '*' })).status, 404);
  t.is((await on.call('GET', '/v1/vhosts/x')).headers.etag, undefined);
  const off = await openApi(t);
  t.is((await off.call('GET', PATH)).headers.etag, undefined);
  t.is((await off.call('GET', PATH, { 'if-none-match': '*' })).status, 200);
});
