import test from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
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

const browser = await launchBrowser();
test.after.always(() => browser.close());

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

test('a camera is published from a page, shared from the next, and seen in the console', async (t) => {
  const kiln = await Kiln.start({
    whip: true,
    providers: '<Multiplex/>',
    publishers: '<Thumbnail/>',
    application: ladderXml([BYPASS, THUMBNAIL]),
  });
  t.teardown(() => kiln.stop());
  const errors: string[] = [];
  const open = async (url: string): Promise<Page> => {
    const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
    t.teardown(() => page.close());
    page.on('pageerror', (error) => errors.push(error.message));
    await page.addInitScript(KEEP_CONNECTION);
    await page.goto(url);
    return page;
  };

  const studio = await open(kiln.httpUrl('/publish'));
  await studio.getByLabel('Stream name').fill('cam');
  await studio.getByRole('button', { name: 'Go live' }).click();
  await studio.locator('#state', { hasText: 'Live' }).waitFor();
  await kiln.liveStream('cam');
  t.deepEqual(await sent(studio), { maxBitrate: 2_500_000, height: 720 });
  await studio.getByLabel('Quality').selectOption('480');
  await until('the picture and its bit rate are smaller', async () => {
    const { maxBitrate, height } = await sent(studio);
    return maxBitrate === 1_200_000 && height === 480;
  });
  await studio.locator('#figure-resolution', { hasText: /×([1-4]\d\d|\d\d)$/ }).waitFor();
  t.true(await studio.getByRole('alert').isHidden());

  const page = await open(kiln.httpUrl('/app/cam'));
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
  await page.close();

  await createMultiplex(kiln, 'mixed', [sourceOf('nothing', ['source', 'picture'])]);
  const desk = await open(`http://127.0.0.1:${kiln.ports.api}/console#/streams`);
  await desk.getByLabel('Access token').fill(TOKEN);
  await desk.getByRole('button', { name: 'Sign in' }).click();
  const row = desk.getByRole('row').filter({ has: desk.getByRole('link', { name: 'cam' }) });
  await row.locator('canvas').waitFor();
  await row.getByRole('link', { name: 'cam' }).click();
  await desk.locator('.glance canvas').waitFor();
  await desk.evaluate(`location.hash = '#/channels'`);
  await desk.getByRole('row', { name: /mixed Multiplex Pulling .*Wait for stream/ }).waitFor();
  await desk.close();

  await studio.getByRole('button', { name: 'Stop' }).click();
  await studio.getByRole('button', { name: 'Go live' }).waitFor();
  await until('the stream has ended', async () => (await kiln.stream('cam')).status === 404);
  t.deepEqual(errors, []);
});
