import type { AddressInfo } from 'node:net';
import test from 'ava';
import Fastify from 'fastify';
import { apiRoutes } from '../../src/api/app.ts';
import { apiOptions } from '../support/api/api.ts';
import { launchBrowser } from '../support/hls/browser.ts';

const [username, password] = ['user-id', 'password'];

test('a browser that knows the token shows every call, and makes one', async (t) => {
  const app = Fastify({ forceCloseConnections: true });
  await app.register(apiRoutes(await apiOptions({ accessToken: `${username}:${password}` })));
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => app.close());
  const home = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const browser = await launchBrowser();
  t.teardown(() => browser.close());

  const stranger = await browser.newPage();
  // without credentials to give, Chromium ends at its own prompt
  await t.throwsAsync(stranger.goto(`${home}/docs`), { message: /ERR_INVALID_AUTH_CREDENTIALS/ });

  const context = await browser.newContext({ httpCredentials: { username, password } });
  const page = await context.newPage();
  const requested: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requested.push(new URL(request.url()).origin));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${home}/docs`);
  t.is(await page.title(), 'Kiln management API');
  await page.locator('.opblock-tag[data-tag="vhosts"]').click();
  const block = page.locator('.opblock-get', { has: page.locator('[data-path="/v1/vhosts"]') });
  await block.locator('.opblock-summary').click();
  await block.getByRole('button', { name: 'Try it out' }).click();
  await block.getByRole('button', { name: 'Execute' }).click();
  const answer = block.locator('.live-responses-table .response');
  await answer.waitFor();
  t.regex(await answer.innerText(), /200[^]*"default"/);
  t.deepEqual([...new Set(requested.filter((origin) => origin !== 'null'))], [home]);
  t.deepEqual(complaints, []);
});
