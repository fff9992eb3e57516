import test, { type ExecutionContext } from 'ava';
import { caller, TOKEN } from '../support/api/api.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { addViewer, openConsole, showView, signIn, STREAM_VIEW } from '../support/server/console.ts';

const browser = await launchBrowser();
test.after.always(() => browser.close());

/** A console that is signed in and shows a view; whatever it asks before it acts is answered with yes. */
async function open(t: ExecutionContext, view: string) {
  const console = await openConsole(t, browser, { width: 1280 });
  const { page } = console;
  page.on('dialog', (dialog) => void dialog.accept());
  await signIn(page);
  await showView(page, view);
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  return { ...console, press };
}

test('a push starts to each kind of address, with a key that the screen hides', async (t) => {
  const { page, app, press } = await open(t, STREAM_VIEW);
  const [url, key] = [page.getByLabel('URL'), page.getByLabel('Stream key')];
  t.is(await key.getAttribute('type'), 'password');
  await url.fill('https://example.com/app');
  await press('Start push');
  await page.getByText('rtmp://, rtmps://, srt://, rtsp://, whip://, whips://, udp://, tcp://').waitFor();
  const addresses = {
    'rtmp://example.com/app': 'rtmp',
    'RTMPS://example.com/secure': 'rtmp',
    'srt://example.com:9999': 'srt',
    'udp://example.com:4000': 'mpegts',
    'tcp://example.com:4000': 'mpegts',
  };
  for (const address of Object.keys(addresses)) {
    await url.fill(address);
    await key.fill('secret');
    await press('Start push');
    await page.getByRole('cell', { name: address, exact: true }).waitFor();
    t.is(await key.inputValue(), '', address);
  }
  const { body } = await caller(app)('POST', '/v1/vhosts/default/apps/app:pushes');
  const pushes = body?.response as { readonly url: string; readonly protocol: string }[];
  t.deepEqual(Object.fromEntries(pushes.map((push) => [push.url, push.protocol])), addresses);
});

test('a push and a recording are started and stopped', async (t) => {
  const { page, press, errors } = await open(t, STREAM_VIEW);
  const [records, pushes] = ['Recordings', 'Pushes'].map((name) => page.getByRole('region', { name }));
  await press('Start recording');
  await records?.getByRole('button', { name: 'Stop' }).click();
  await records?.getByText('Nothing is being recorded.').waitFor();
  await page.getByLabel('URL').fill('srt://example.com:9999');
  await press('Start push');
  await pushes?.getByRole('button', { name: 'Stop' }).click();
  await pushes?.getByText('Nothing is being pushed.').waitFor();
  t.deepEqual(errors, []);
});

test('a viewer is disconnected', async (t) => {
  const { page, output, press } = await open(t, STREAM_VIEW);
  addViewer(output, 'somebody', 'srt');
  await page.getByRole('row', { name: 'somebody SRT live' }).waitFor();
  await press('Disconnect');
  await page.getByText('The viewer was disconnected').waitFor();
  await page.getByText('Nobody watches.').waitFor();
  t.is(output.sessions.size, 0);
});

test('a node is drained, and undrained', async (t) => {
  const { page, cluster, press } = await open(t, 'nodes');
  await press('Drain');
  await page.getByText('kiln is being drained').waitFor();
  t.true(cluster.draining);
  await page.getByRole('cell', { name: 'draining' }).waitFor();
  await press('Undrain');
  await page.getByRole('cell', { name: 'ready' }).waitFor();
  t.false(cluster.draining);
});

test("channels are created from an example, changed and deleted, with the API's own errors", async (t) => {
  const { page, app, press, errors } = await open(t, 'channels');
  const call = caller(app);
  await page.getByText('There is no channel.').waitFor();
  await press('New scheduled channel');
  await press('Send');
  await page.getByRole('cell', { name: 'default / app / tv' }).waitFor();
  await press('Change');
  const field = page.getByRole('textbox', { name: 'Change tv' });
  await field.fill('{"programs": [{"name": "news"}]}');
  await press('Send');
  await page.getByRole('alert').filter({ hasText: 'programs' }).waitFor();
  await field.fill(
    '{"programs": [{"name": "news", "scheduled": "2099-01-01T00:00:00Z", "items": [{"url": "file://a.mp4"}]}]}',
  );
  await press('Send');
  await field.waitFor({ state: 'hidden' });
  const scheduled = await call('GET', '/v1/vhosts/default/apps/app/scheduledChannels/tv');
  t.like(scheduled.body?.response, {
    programs: [{ name: 'news' }],
    fallbackProgram: { items: [{ url: 'file://pause.mp4' }] },
  });
  await press('Delete');
  await page.getByText('There is no channel.').waitFor();

  await press('New multiplex channel');
  await press('Send');
  await page.getByRole('cell', { name: 'default / app / both' }).waitFor();
  await press('Change');
  const multiplex = page.getByRole('textbox', { name: 'Change both' });
  const before = JSON.parse(await multiplex.inputValue()) as { playlists: object[] };
  await multiplex.fill(JSON.stringify({ ...before, sourceStreams: 'none' }));
  await press('Send');
  await page.getByRole('alert').filter({ hasText: 'sourceStreams' }).waitFor();
  const url = '/v1/vhosts/default/apps/app/multiplexChannels/both';
  t.like((await call('GET', url)).body?.response, before, 'it is there as it was');
  await multiplex.fill(JSON.stringify({ ...before, playlists: [{ ...before.playlists[0], fileName: 'changed' }] }));
  await press('Send');
  await multiplex.waitFor({ state: 'hidden' });
  t.like((await call('GET', url)).body?.response, { playlists: [{ fileName: 'changed' }] });
  t.deepEqual(errors, []);
});

test('a shared link lets another page look, and change nothing', async (t) => {
  const { page, press, openPage, address, errors } = await open(t, STREAM_VIEW);
  await press('Share');
  await press('Make a link');
  const link = (await page.locator('dialog code').textContent()) ?? '';
  t.true(link.startsWith(`${address}/console#link=`), link);
  t.false(link.includes(TOKEN));
  const other = await openPage(link.slice(address.length));
  await other.getByText('Read-only until').waitFor();
  t.is(other.url(), `${address}/console#/`);
  await showView(other, STREAM_VIEW);
  await other.getByText('1280×720 25.00 fps').first().waitFor();
  for (const name of ['Delete', 'Start push', 'Start recording', 'Share'])
    t.is(await other.getByRole('button', { name, exact: true }).count(), 0, name);
  await showView(other, 'channels');
  await other.getByText('There is no channel.').waitFor();
  t.is(await other.getByRole('button', { name: 'New scheduled channel' }).count(), 0);
  await other.close();
  t.deepEqual(errors, []);
});

test("applications are created and changed with the API's own errors", async (t) => {
  const { page, registry, press } = await open(t, 'applications');
  await press('New virtual host');
  const field = page.getByRole('textbox', { name: 'New virtual host' });
  await field.fill('[{"name": "made"}]');
  await press('Send');
  await page.getByRole('alert').filter({ hasText: 'host' }).waitFor();
  await field.fill('[{"name": "made", "host": {"names": ["made.example.com"]}}]');
  await press('Send');
  await page.getByRole('cell', { name: 'made' }).waitFor();
  t.true(registry.vhosts.has('made'));
});
