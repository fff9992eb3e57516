import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

interface Listed {
  readonly viewers: number;
}

test('--demo prints a page that plays the test pattern by LL-HLS and by WebRTC', async (t) => {
  const kiln = await Kiln.start({ args: ['--demo'], iceAddress: '*', llhls: '<SegmentDuration>2</SegmentDuration>' });
  t.teardown(() => kiln.stop());
  let printed: string | undefined;
  await until('the page to open is printed', () => {
    printed = /Open +(http:\S+)/.exec(kiln.stdout)?.[1];
    return printed !== undefined;
  });

  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(printed as string);
  for (const title of ['LL-HLS', 'WebRTC']) {
    const panel = page.locator('.panel', { has: page.getByRole('heading', { name: title }) });
    const figure = (text: RegExp) => panel.locator('.figures dd', { hasText: text }).first().waitFor();
    await figure(/^1280×720$/);
    await figure(/^[1-9]\d* fps$/);
    await figure(/^[\d.]+ m?s$/);
    t.log(title, (await panel.locator('.figures dd').allTextContents()).join(', '));
  }
  t.is(await page.getByText('No audio').count(), 0, 'what WebRTC cannot carry is encoded for it');
  await until('both play', async () => (await page.locator('.cover:visible').count()) === 0);
  t.deepEqual(errors, []);

  // the count is cached for a moment
  const listed = await until('both players are counted', async () => {
    const { streams } = (await (await fetch(kiln.httpUrl('/-/streams.json'))).json()) as { streams: Listed[] };
    return (streams[0]?.viewers ?? 0) >= 2 && streams[0];
  });
  t.like(listed, { app: 'app', stream: 'demo', video: { codec: 'H264' }, audio: { codecs: ['OPUS', 'AAC'] } });

  const watching = async () => {
    const { body } = await kiln.api('/v1/stats/current/vhosts/default/apps/app/streams/demo');
    return (body.response as { connections: { webrtc: number } }).connections.webrtc;
  };
  await until('one plays by WebRTC', async () => (await watching()) === 1);
  await page.goto(kiln.httpUrl('/'));
  await until('leaving the page ends its WebRTC session', async () => (await watching()) === 0);
  await page.getByRole('link', { name: 'app / demo' }).waitFor();
});
