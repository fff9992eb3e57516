import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import { TOKEN } from '../support/api/api.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { addViewer, openConsole, showView, signIn, STREAM_VIEW } from '../support/server/console.ts';
import { long } from '../support/runner/long.ts';
import { RTMP, VIDEO } from '../unit/core/support.ts';

/** What axe found, as far as a test looks at it. */
interface Findings {
  readonly violations: readonly { readonly id: string; readonly impact: string; readonly nodes: readonly unknown[] }[];
}

const AXE = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const VIEWS = ['', 'streams', STREAM_VIEW, 'channels', 'tasks', 'recorded', 'applications', 'nodes', 'events'];

const browser = await launchBrowser();
test.after.always(() => browser.close());

const open = (t: ExecutionContext, colorScheme: 'light' | 'dark' = 'light') => openConsole(t, browser, { colorScheme });

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
        await showView(page, view);
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
  await showView(page, 'events');
  await page.getByText('<b>no</b>').waitFor();
  await showView(page, 'streams');
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
  await page.getByText('live is not live. What is shown is how it was last.').waitFor();
  await showView(page, 'streams/default/app/never');
  await page.getByText(/^never is not live\.$/).waitFor();
  t.deepEqual(errors, []);
});

test('the console shows viewers of a stream by protocol, its playlists, and addresses of every output', async (t) => {
  const { page, output, errors } = await open(t);
  for (let at = 10; at < 35; at++) addViewer(output, `viewer-${at}`, at === 10 ? 'webrtc' : 'llhls');
  await signIn(page);
  await showView(page, STREAM_VIEW);
  await page.getByText('WebRTC 1, LL-HLS 24').waitFor();
  await page.getByRole('row', { name: 'viewer-10 WebRTC live' }).waitFor();
  await page.getByRole('row', { name: 'both qualities abr high (Video + Audio)' }).waitFor();
  t.is(await page.getByRole('cell', { name: /^viewer-/ }).count(), 20);
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByText('21 to 25').waitFor();
  await page.getByRole('cell', { name: 'viewer-34' }).waitFor();
  t.is(await page.getByRole('cell', { name: /^viewer-/ }).count(), 5);
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.getByRole('cell', { name: 'viewer-10' }).waitFor();
  const shown = await page.locator('dd code').allTextContents();
  t.deepEqual(shown, [
    'rtmp://kiln.example:1935/app/live',
    'http://kiln.example:3333/app/live?direction=whip',
    'srt://kiln.example:9999?streamid=default/app/live',
    ...['live', 'live_hd'].flatMap((name) => [
      `http://kiln.example:3333/app/${name}`,
      `http://kiln.example:3333/app/${name}/llhls.m3u8`,
      `http://kiln.example:3334/app/${name}/ts:playlist.m3u8`,
      `http://kiln.example:3335/app/${name}?direction=whep`,
      `ws://kiln.example:3335/app/${name}`,
      `srt://kiln.example:9998?streamid=default/app/${name}`,
      `ovt://kiln.example:9000/app/${name}`,
    ]),
  ]);
  t.deepEqual(errors, []);
});

test('the busiest streams are on top, with viewers and bitrate on a telephone, and old events have a date', async (t) => {
  const { page, registry } = await open(t);
  const application = registry.vhost('default').application('app');
  for (const [name, count] of Object.entries({ quiet: 1, 'one more': 3 })) {
    const other = application.publish(name, RTMP, { replace: false, maxConnections: 0 });
    other.setTracks([VIDEO]);
    const output = application.addOutput(other, name);
    for (let at = 0; at < count; at++) addViewer(output, `${name} ${at}`, 'srt');
  }
  await signIn(page);
  await page.getByRole('link', { name: 'one more' }).waitFor();
  const links = page.getByRole('region', { name: 'The busiest streams' }).getByRole('link');
  t.deepEqual(await links.allTextContents(), [
    'default / app / one more',
    'default / app / quiet',
    'default / app / live',
  ]);
  for (const name of [/^Viewers/, /^In/]) {
    const box = await page.getByRole('columnheader', { name }).boundingBox();
    t.true(box !== null && box.x + box.width <= 390, `${name}: ${JSON.stringify(box)}`);
  }
  const year = page.getByRole('cell', { name: /2020/ });
  await year.waitFor();
  t.is(await year.count(), 1);
});

test('the first ones of many streams are shown, and the others are found by order and filter', async (t) => {
  const { page, registry } = await open(t);
  const application = registry.vhost('default').application('app');
  for (let n = 0; n < 250; n++) {
    const name = `s${String(n).padStart(3, '0')}`;
    application.publish(name, RTMP, { replace: false, maxConnections: 0 }).setTracks([VIDEO]);
  }
  await signIn(page);
  await showView(page, 'streams');
  await page.getByText('The first 200 of 251 are shown.').waitFor();
  const links = page.getByRole('region', { name: 'Streams' }).getByRole('link');
  t.is(await links.count(), 200);
  t.is(await page.getByRole('link', { name: 's249' }).count(), 0);
  await page
    .getByRole('columnheader', { name: /^Stream/ })
    .getByRole('button')
    .click();
  t.is(await links.first().textContent(), 'default / app / s249');
  t.is(await links.count(), 200);
  await page.getByRole('searchbox').fill('s00');
  t.is(await links.count(), 10);
  t.false(await page.getByText('are shown.').isVisible());
});

test('the console does not call unknown data missing, and an unknown address shows no view', async (t) => {
  const { page, errors } = await open(t);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/v1/cluster/nodes', async (route) => {
    await held;
    await route.continue();
  });
  await signIn(page);
  await page.evaluate("location.hash = '#/nodes'");
  await page.getByRole('heading', { name: 'Nodes' }).waitFor();
  await page.getByText('Loading…').waitFor();
  t.is(await page.getByText('There is no node.').count(), 0);
  release();
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  t.is(await page.getByText('Loading…').count(), 0);
  await showView(page, 'constructor');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  t.deepEqual(errors, []);
});

test('a server that is away, late, out of order or not whole is distinguished from a fault of the page', async (t) => {
  const { page, errors } = await open(t);
  const trouble = async (text: string | RegExp) => {
    await page.locator('#trouble').filter({ hasText: text }).waitFor();
  };
  const answered = async (status: number, body: object, headers = {}) => {
    await page.unrouteAll();
    await page.route('**/v1/cluster/nodes', (route) => route.fulfill({ status, json: body, headers }));
  };
  await signIn(page);
  await showView(page, 'nodes');
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  await page.context().setOffline(true);
  await trouble('The server cannot be reached. What is shown is how it was last.');
  await page.context().setOffline(false);
  await page.locator('#trouble').waitFor({ state: 'hidden' });
  await answered(503, { statusCode: 503, message: '[HTTP] busy (503)' });
  await trouble('[HTTP] busy (503). What is shown is how it was last.');
  await answered(502, {});
  await trouble('The server answered 502.');
  await page.unrouteAll();
  await answered(200, { response: [] }, { 'x-kiln-stale': 'true' });
  await trouble('Not every node answered');
  t.deepEqual(errors, []);
  await answered(200, { response: [null] });
  await trouble('This page has a fault');
  t.true(errors.length > 0, 'it is found in the console of the browser');
  await page.unrouteAll();
  await page.locator('#trouble').waitFor({ state: 'hidden' });
  await page.evaluate('AbortSignal.timeout = () => AbortSignal.abort()');
  await trouble('The server did not answer within 15 seconds.');
});

test('a token that is revoked ends the session, and nothing is left of what was shown', async (t) => {
  const { page, errors } = await open(t);
  await signIn(page);
  await showView(page, STREAM_VIEW);
  await page.getByText('1280×720 25.00 fps').first().waitFor();
  await page.route('**/v1/**', (route) => route.fulfill({ status: 401, json: { message: 'Invalid credential' } }));
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'Invalid credential' }).waitFor();
  t.is(await page.locator('#view *').count(), 0);
  t.true(await page.locator('#nav').isHidden());
  await page.unrouteAll();
  await signIn(page);
  await page.getByText('1280×720 25.00 fps').first().waitFor();
  t.deepEqual(errors, []);
});
