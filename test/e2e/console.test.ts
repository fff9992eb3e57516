import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import fastify from 'fastify';
import type { Page } from 'playwright-core';
import { apiRoutes } from '../../src/api/app.ts';
import { apiHomeRoutes } from '../../src/web/api-home.ts';
import { apiOptions, sampleRegistry, TOKEN } from '../support/api.ts';
import { launchBrowser } from '../support/browser.ts';
import { long } from '../support/long.ts';
import { AUDIO, RTMP, VIDEO, video } from '../unit/core/support.ts';

/** What axe found, as far as a test looks at it. */
interface Findings {
  readonly violations: readonly { readonly id: string; readonly impact: string; readonly nodes: readonly unknown[] }[];
}

const AXE = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const VIEWS = ['', 'streams', 'streams/default/app/live', 'channels', 'tasks', 'applications', 'nodes', 'events'];

const browser = await launchBrowser();
test.after.always(() => browser.close());

/** A console of a server with one live stream, and what went wrong in its page. */
async function open(t: ExecutionContext, colorScheme: 'light' | 'dark' = 'light') {
  const registry = sampleRegistry();
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO, AUDIO]);
  application.addOutput(input, 'live').setTracks([VIDEO, AUDIO]);
  for (let frame = 0; frame <= 75; frame++) input.write(video(frame / 25, frame % 25 === 0));
  const options = await apiOptions({}, registry);
  const events = () => [{ time: new Date().toISOString(), level: 'warn', event: 'client.refused', msg: '<b>no</b>' }];
  const app = fastify();
  await app.register(apiHomeRoutes);
  await app.register(apiRoutes({ ...options, events }));
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const page = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme });
  t.teardown(async () => {
    await page.close();
    await app.close();
  });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(`${address}/console`);
  return { page, address, errors, registry };
}

async function signIn(page: Page, token = TOKEN): Promise<void> {
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Shows a view, and waits until it has what it shows. */
async function show(page: Page, view: string): Promise<void> {
  const answered = page.waitForResponse((response) => response.url().includes('/v1/'));
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${view}`)}`);
  await answered;
  await page.locator('#view h1').waitFor();
}

test('the token is asked for, checked, kept in the page alone and forgotten', async (t) => {
  const { page, address, errors } = await open(t);
  await signIn(page, 'somebody:else');
  await page.getByText('Invalid credential').waitFor();
  await signIn(page);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  t.is(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie'), '{}');
  t.false(page.url().includes(TOKEN));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  t.is(await page.locator('#view *').count(), 0, 'nothing is left of what was shown');
  await signIn(page);
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  t.is(page.url().replace(/#.*/, ''), `${address}/console`);
  t.deepEqual(errors, []);
});

for (const scheme of ['light', 'dark'] as const) {
  (scheme === 'light' ? test.serial : long)(
    `every view fits a telephone, and assistive technology finds its way (${scheme})`,
    async (t) => {
      const { page, errors } = await open(t, scheme);
      await signIn(page);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      for (const view of VIEWS) {
        await show(page, view);
        t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${view} is too wide`);
        // the policy of the page allows no script but its own: this one comes by the debugger
        await page.evaluate(AXE);
        const found = (await page.evaluate('axe.run()')) as Findings;
        const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
        t.deepEqual(
          serious.map(({ id, nodes }) => [view, id, JSON.stringify(nodes).slice(0, 500)]),
          [],
        );
      }
      t.deepEqual(errors, []);
    },
  );
}

test('a stream is found, looked at and disconnected; what strangers send is text', async (t) => {
  const { page, registry, errors } = await open(t);
  registry.vhost('default').application('app').stream('live')?.counters.lost(3);
  await signIn(page);
  await show(page, 'events');
  await page.getByText('<b>no</b>').waitFor();
  await show(page, 'streams');
  await page.getByLabel('Filter').fill('no such stream');
  await page.getByText('No stream matches.').waitFor();
  await page.getByLabel('Filter').fill('h264');
  await page.getByRole('link', { name: 'live' }).click();
  await page.getByText('1280×720 25.00 fps').first().waitFor();
  await page.getByText('3 packets').waitFor();
  page.on('dialog', (dialog) => void dialog.accept());
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('live was deleted').waitFor();
  t.is(registry.vhost('default').application('app').stream('live'), undefined);
  await page.getByText('live is not live').waitFor();
  t.deepEqual(errors, []);
});

test("applications are created and changed with the API's own errors", async (t) => {
  const { page, registry } = await open(t);
  await signIn(page);
  await show(page, 'applications');
  await page.getByRole('button', { name: 'New virtual host' }).click();
  const field = page.getByRole('textbox', { name: 'New virtual host' });
  await field.fill('[{"name": "made"}]');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('alert').filter({ hasText: 'host' }).waitFor();
  await field.fill('[{"name": "made", "host": {"names": ["made.example.com"]}}]');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('cell', { name: 'made' }).waitFor();
  t.true(registry.vhosts.has('made'));
});
