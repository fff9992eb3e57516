import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { Kiln, TOKEN } from '../support/server/kiln.ts';
import { BYPASS, ladderXml } from '../support/media/ladder-config.ts';
import { createMultiplex, sourceOf } from '../support/channels/multiplex-api.ts';
import { until } from '../support/time/until.ts';

const THUMBNAIL = '<Image><Name>thumb</Name><Codec>jpeg</Codec><Framerate>1</Framerate><Width>128</Width></Image>';
/** Keeps the last connection of a page where a test can look at it. */
const KEEP_CONNECTION = `window.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(configuration) {
    super(configuration);
    window.connection = this;
  }
};`;

const teardown = new Teardown();
const browser = await launchBrowser();
teardown.teardown(() => browser.close());
test.after.always(() => teardown.run());

/** Uncaught errors of all pages. */
const errors: string[] = [];

async function open(t: Pick<ExecutionContext, 'teardown'>, url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  t.teardown(() => page.close());
  page.on('pageerror', (error) => errors.push(error.message));
  await page.addInitScript(KEEP_CONNECTION);
  await page.goto(url);
  return page;
}

/** A server, and the page that publishes the camera to it as `cam`. */
const published = shared(async () => {
  const kiln = await Kiln.start({
    whip: true,
    providers: '<Multiplex/>',
    publishers: '<Thumbnail/>',
    application: ladderXml([BYPASS, THUMBNAIL]),
  });
  teardown.teardown(() => kiln.stop());
  const page = await open(teardown, kiln.httpUrl('/publish'));
  await page.getByLabel('Stream name').fill('cam');
  await page.getByRole('button', { name: 'Go live' }).click();
  await page.locator('#state', { hasText: 'Live' }).waitFor();
  await kiln.liveStream('cam');
  return { kiln, page };
});

interface Sent {
  readonly maxBitrate: number;
  /** Lines of the picture that the camera gives. */
  readonly height: number;
}

/** What a page that publishes is told to send. */
const sent = (page: Page): Promise<Sent> =>
  page.evaluate(`(() => {
    const sender = connection.getSenders().find(({ track }) => track.kind === 'video');
    const { maxBitrate } = sender.getParameters().encodings[0];
    return { maxBitrate, height: sender.track.getSettings().height };
  })()`);

test.serial('a camera is published from a page in the chosen quality', async (t) => {
  const { page } = await published();
  t.deepEqual(await sent(page), { maxBitrate: 2_500_000, height: 720 });
  await page.getByLabel('Quality').selectOption('480');
  await until('the picture and its bit rate are smaller', async () => {
    const { maxBitrate, height } = await sent(page);
    return maxBitrate === 1_200_000 && height === 480;
  });
  await page.locator('#figure-resolution', { hasText: /×([1-4]\d\d|\d\d)$/ }).waitFor();
  t.true(await page.getByRole('alert').isHidden());
  t.deepEqual(errors, []);
});

test.serial('a published camera is shared by the address and QR code of its page, and by HTML', async (t) => {
  const { kiln } = await published();
  const page = await open(t, kiln.httpUrl('/app/cam'));
  await page.getByRole('button', { name: 'Share' }).click();
  const share = page.getByRole('dialog', { name: 'Share' });
  await share.getByRole('img', { name: `QR code of ${kiln.httpUrl('/app/cam')}` }).waitFor();
  t.is(await share.getByLabel('Address of this page').inputValue(), kiln.httpUrl('/app/cam'));
  t.regex(
    await share.getByLabel('HTML for another site').inputValue(),
    /^<iframe src="[^"]+\/app\/cam\?embed=" title="cam"/,
  );
  await share.getByRole('button', { name: 'Close' }).click();
  await share.waitFor({ state: 'hidden' });
  t.deepEqual(errors, []);
});

test.serial(
  'the console shows thumbnails of a published camera, and a channel that waits for its source',
  async (t) => {
    const { kiln } = await published();
    await createMultiplex(kiln, 'mixed', [sourceOf('nothing', ['source', 'picture'])]);
    const page = await open(t, `http://127.0.0.1:${kiln.ports.api}/console#/streams`);
    await page.getByLabel('Access token').fill(TOKEN);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'cam' }) });
    await row.locator('canvas').waitFor();
    await row.getByRole('link', { name: 'cam' }).click();
    await page.locator('.glance canvas').waitFor();
    await page.evaluate(`location.hash = '#/channels'`);
    await page.getByRole('row', { name: /mixed Multiplex Pulling .*Wait for stream/ }).waitFor();
    t.deepEqual(errors, []);
  },
);

test.serial('a stream ends when its page stops publishing', async (t) => {
  const { kiln, page } = await published();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Go live' }).waitFor();
  await until('the stream has ended', async () => (await kiln.stream('cam')).status === 404);
  t.deepEqual(errors, []);
});
