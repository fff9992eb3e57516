import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const SUBTITLES = `<Subtitles><Enable>true</Enable><DefaultLabel>English</DefaultLabel>
  <Rendition><Label>English</Label><Language>en</Language></Rendition>
  <Rendition><Label>한국어</Label><Language>ko</Language></Rendition></Subtitles>`;
const kiln = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>', application: SUBTITLES });
const browser = await launchBrowser();
test.after.always(async () => {
  await browser.close();
  await kiln.stop();
});

const say = (text: Readonly<Record<string, string>>, settings = '') =>
  kiln.api('/v1/vhosts/default/apps/app/streams/live:sendSubtitles', 'POST', {
    format: 'webvtt',
    data: Object.entries(text).map(([label, one]) => ({
      label,
      subtitles: [{ text: one, durationMs: 2000, settings }],
    })),
  });

interface Shown {
  readonly text: string;
  readonly plain: string;
  readonly line: number | string;
  readonly tags: readonly string[];
}

/** Texts that each video shows, LL-HLS first: as they are written and as they look, with the elements in them. */
const shown = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll('video')].map((video) =>
    [...video.textTracks].filter(({ mode }) => mode === 'showing').flatMap(({ activeCues }) => [...activeCues ?? []])
      .map((cue) => ({ text: cue.text, line: cue.line, plain: cue.getCueAsHTML().textContent,
        tags: [...cue.getCueAsHTML().querySelectorAll('*')].map(({ tagName }) => tagName.toLowerCase()) })))`) as Promise<
    Shown[][]
  >;

/** What the menus say, that of LL-HLS first. */
const chosen = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll('[data-name=Subtitles] select')]
    .map(({ selectedOptions: [one] }) => one.textContent)`) as Promise<string[]>;

test.serial('the player page shows subtitles by LL-HLS and WebRTC, which its viewer chooses by keyboard', async (t) => {
  const publisher = publishPattern(kiln.rtmpUrl('live'));
  t.teardown(() => publisher.stop());
  await until('the stream is there', async () => (await kiln.stream('live')).status === 200);
  const page = await browser.newPage();
  t.teardown(() => page.close());
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.text().includes('Content Security') && errors.push(message.text()));
  await page.goto(kiln.httpUrl('/app/live?mode=both'));
  const menus = page.locator('.choices [data-name=Subtitles] select');
  await until('both panels have the choice', async () => (await menus.count()) === 2);
  t.deepEqual(await menus.nth(1).locator('option').allTextContents(), ['Off', 'English', '한국어']);
  await until('the default is chosen', async () => (await chosen(page)).join() === 'English,English');

  const text = '<i>Good</i> <b onclick="x()">evening</b> <script>window.failed = true</script>';
  const both = await until('both videos show it', async () => {
    await say({ English: text, 한국어: '안녕' }, 'line:10%');
    const [llhls = [], webrtc = []] = await shown(page);
    return llhls.length > 0 && webrtc.length > 0 && [llhls, webrtc];
  });
  for (const cues of both) {
    t.true(cues.every((cue) => cue.text === text && cue.line === 10));
    t.deepEqual([...new Set(cues.flatMap(({ tags }) => tags))].sort(), ['b', 'i']);
  }
  t.is(await page.evaluate('window.failed'), undefined);

  await menus.nth(1).focus();
  await page.keyboard.press('ArrowDown');
  await until('the other label is shown', async () => {
    await say({ English: 'Still here', 한국어: '뉴스' });
    const [, webrtc = []] = await shown(page);
    return webrtc.some((cue) => cue.text === '뉴스') && !webrtc.some((cue) => cue.text === 'Still here');
  });
  await page.keyboard.press('Home');
  await until('none is shown', async () => (await shown(page))[1]?.length === 0);
  t.is((await chosen(page))[1], 'Off');

  // as the menu of the browser does
  await page.evaluate(`document.querySelectorAll('video')[1].textTracks[1].mode = 'showing'`);
  await until('the menu of the page follows that of the browser', async () => (await chosen(page))[1] === '한국어');
  t.deepEqual(errors, []);
});

test.serial('a stream without subtitles has no choice of them, and its viewers no data channel', async (t) => {
  const plain = await Kiln.start();
  t.teardown(() => plain.stop());
  const publisher = publishPattern(plain.rtmpUrl('live'));
  t.teardown(() => publisher.stop());
  await plain.liveStream('live');
  const page = await browser.newPage();
  t.teardown(() => page.close());
  const offer = page.waitForRequest((request) => request.method() === 'POST');
  await page.goto(plain.httpUrl('/app/live?mode=webrtc'));
  const body = (await offer).postData() ?? '';
  t.regex(body, /m=video/);
  t.notRegex(body, /m=application/);
  t.is(await page.locator('.choices [data-name=Subtitles]').count(), 0);
});

test.serial(
  'OvenPlayer, unchanged, lists the labels of LL-HLS, and shows the default in a layer of its own',
  async (t) => {
    const publisher = publishPattern(kiln.rtmpUrl('live'));
    t.teardown(() => publisher.stop());
    await kiln.liveStream('live');
    const page = await browser.newPage();
    t.teardown(() => page.close());
    await page.goto(kiln.httpUrl('/readyz'));
    await page.evaluate(`document.body.innerHTML = '<div id="player"></div>'`);
    for (const file of ['hls.js/dist/hls.js', 'ovenplayer/dist/ovenplayer.js'])
      await page.addScriptTag({ path: fileURLToPath(import.meta.resolve(file)) });
    await page.evaluate(`window.player = OvenPlayer.create('player', { autoStart: true, mute: true,
    sources: [{ label: 'live', type: 'llhls', file: '/app/live/llhls.m3u8' }] }); undefined`);
    await until('it shows the text', async () => {
      await say({ English: 'Good evening' });
      return page.evaluate(
        // it joins what is to be shown at the same place
        `[...document.querySelectorAll('[class*=caption]')].some((one) => one.innerText.split('\\n').includes('Good evening'))`,
      ) as Promise<boolean>;
    });
    t.like(await page.evaluate('player.getSubtitleTracks()'), [{ label: 'English' }, { label: '한국어' }]);
    t.is(await page.evaluate('player.getCurrentSubtitleTrack()'), 0);
  },
);
