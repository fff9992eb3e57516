import test from 'ava';
import { ReadOnlyLinks } from '../../src/api/read-only-links.ts';
import { withoutSecrets } from '../../src/api/read-only.ts';
import { basic, openApi, TOKEN } from '../support/api/api.ts';

const HOUR = 3600;

async function linked(t: import('ava').ExecutionContext, accessToken = TOKEN) {
  const opened = await openApi(t, { accessToken });
  const made = await opened.call(
    'POST',
    '/v1/readOnlyLinks',
    { authorization: basic(accessToken) },
    '{"expiresIn":60}',
  );
  const { credential, path } = made.body?.response as { readonly credential: string; readonly path: string };
  const authorization = basic(credential);
  const look = (method: 'GET' | 'POST' | 'HEAD', url: string) => opened.call(method, url, { authorization });
  return { ...opened, credential, path, authorization, look };
}

test('a link opens the console, holds no token, and lets its bearer look at what is no secret', async (t) => {
  const { path, credential, look } = await linked(t);
  t.is(path, `/console#link=${credential}`);
  t.false(credential.includes(TOKEN.split(':')[1] as string));
  for (const url of [
    '/v1/version',
    '/v1/vhosts',
    '/v1/vhosts/default/apps',
    '/v1/vhosts/default/apps/app/streams',
    '/v1/stats/current/vhosts/default/apps/app',
    '/v1/cluster/nodes',
    '/v1/cluster/streams',
    '/v1/cluster/sessions?vhost=default&app=app&stream=live',
    '/v1/cluster/events',
    '/v1/cluster/channels',
    '/v1/vhosts/default/apps/app:pushes',
  ])
    t.is((await look('GET', url)).status, 200, url);
  t.is((await look('HEAD', '/v1/version')).status, 200);
  for (const url of [
    '/v1/vhosts/second',
    '/v1/vhosts/default/apps/app',
    '/v1/vhosts/default/apps/app/outputProfiles',
    '/openapi.json',
    '/nothing',
    '/v1/vhosts/default/apps/app:nothing',
  ])
    t.is((await look('GET', url)).body?.message, '[HTTP] A read-only link does not allow this (403)', url);
});

test('a read-only link answers no call that changes something, whatever it is about', async (t) => {
  const { call, authorization, registry } = await linked(t);
  const { paths } = JSON.parse((await call('GET', '/openapi.json')).text) as { paths: Record<string, object> };
  const before = JSON.stringify([...registry.vhosts.keys()]);
  let count = 0;
  for (const [path, operations] of Object.entries(paths)) {
    for (const method of Object.keys(operations).filter((one) => one !== 'get')) {
      const url = path.replace(/{(\w+)}/g, (_, name: string) => (name === 'vhost' ? 'default' : 'app'));
      t.is(
        (await call(method.toUpperCase() as 'POST', url, { authorization }, '[{}]')).status,
        403,
        `${method} ${url}`,
      );
      count++;
    }
  }
  t.true(count > 30, String(count));
  t.is(JSON.stringify([...registry.vhosts.keys()]), before);
});

test('a link ends when it expires, when it is altered, and when the access token changes', async (t) => {
  const { call, credential } = await linked(t);
  const statusOf = async (given: string, api = call) =>
    (await api('GET', '/v1/version', { authorization: basic(given) })).status;
  t.is(await statusOf(credential), 200);
  const expires = Number(/:(\d+)/.exec(credential)?.[1]);
  t.is(await statusOf(credential.replace(`${expires}`, `${expires + 1}`)), 401);
  t.is(await statusOf(credential.slice(0, -1)), 401);
  const links = new ReadOnlyLinks(TOKEN);
  t.is(await links.check(credential, expires * 1000 - 1), 'valid');
  t.is(await links.check(credential, expires * 1000), 'expired');
  const past = await links.credential(Math.floor(Date.now() / 1000) - HOUR);
  const answer = await call('GET', '/v1/version', { authorization: basic(past) });
  t.is(answer.status, 401);
  t.is(answer.body?.message, '[HTTP] The read-only link has expired (401)');
  const { call: other } = await openApi(t, { accessToken: 'another:token' });
  t.is(await statusOf(credential, other), 401);
  const { call: twin } = await openApi(t);
  t.is(await statusOf(credential, twin), 200, 'another node with the same token');
});

test('the time for which a read-only link is valid has limits', async (t) => {
  const { call } = await openApi(t);
  const statusOf = async (body?: string) => (await call('POST', '/v1/readOnlyLinks', {}, body)).status;
  t.is(await statusOf(), 200);
  for (const expiresIn of [59, 30 * 24 * HOUR + 1, 1.5, -1]) t.is(await statusOf(JSON.stringify({ expiresIn })), 400);
});

test('secrets are left out of what is shown, wherever they are', (t) => {
  const shown = withoutSecrets({
    pushes: [{ id: 'a', streamKey: 'live_1', url: 'rtmps://user:pass@push.example:443/live2/live_1' }],
    secretKey: 'x',
    addresses: { llhls: ['http://10.0.0.1:3333'] },
    source: 'srt://caller.example:9999?passphrase=secret',
    file: 'file://clips/one.mp4',
    msg: "the pull of 'rtsp://cam:pw@10.0.0.9:554/key?x=1' failed, so did http://origin/app/key: gone",
    count: 3,
    nothing: null,
  });
  t.deepEqual(shown, {
    pushes: [{ id: 'a', streamKey: '***', url: 'rtmps://push.example:443/***' }],
    secretKey: '***',
    addresses: { llhls: ['http://10.0.0.1:3333'] },
    source: 'srt://caller.example:9999/***',
    file: 'file://clips/one.mp4',
    msg: "the pull of 'rtsp://10.0.0.9:554/***' failed, so did http://origin/*** gone",
    count: 3,
    nothing: null,
  });
});
