import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { FRAME_BITS, FRAMES_PER_SECOND, writeLongPast } from '../support/hls/long-past.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const SECONDS = 20 * 60;
/** Longest distance of the pictures. */
const PICTURE_SECONDS = 6;
/** A zone that this machine is not in. */
const ZONE = { locale: 'en-GB', timezoneId: 'Asia/Kathmandu' };
const DAY_MS = 24 * 3_600_000;
const KATHMANDU_MS = 5.75 * 3_600_000;

const root = await mkdtemp(join(tmpdir(), 'kiln-rewind-page-'));
const begun = Date.now() - SECONDS * 1000 - 60_000;
await writeLongPast(root, { vhost: 'default', app: 'app', stream: 's', kind: 'llhls' }, SECONDS, begun);
const dvr = `<DVR><Enable>true</Enable><TempStoragePath>${root}</TempStoragePath><MaxDuration>${2 * SECONDS}</MaxDuration></DVR>`;
const window = '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>5</SegmentCount>';
const kiln = await Kiln.start({
  llhls: window + dvr,
  applications: `<Application><Name>plain</Name><Type>live</Type><Providers><RTMP/></Providers><Publishers><LLHLS>${window}</LLHLS></Publishers></Application>`,
});
const publisher = publishPattern(kiln.rtmpUrl('s'), { size: '320x180', rate: 10 });
const browser = await launchBrowser();
const AXE = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

test.after.always(async () => {
  await browser.close();
  await publisher.stop();
  await kiln.stop();
  await rm(root, { recursive: true, force: true });
});

/** When the stream was seen first. */
let liveSince: number | undefined;

interface Shown {
  readonly page: Page;
  readonly errors: readonly string[];
}

/** Opens the player page with a query, once the stream is live. */
async function open(
  t: ExecutionContext,
  query = '',
  { width = 1000, hasTouch = false, onRequest = (_url: string): unknown => undefined } = {},
): Promise<Shown> {
  await until('the stream', async () => (await fetch(kiln.httpUrl('/app/s/llhls.m3u8'))).status === 200);
  liveSince ??= Date.now();
  const page = await browser.newPage({ ...ZONE, viewport: { width, height: 800 }, hasTouch });
  t.teardown(() => page.close());
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on(
    'console',
    (message) => message.type() === 'error' && errors.push(`${message.text()} ${message.location().url}`),
  );
  page.on('request', (request) => void onRequest(request.url()));
  await page.goto(kiln.httpUrl(`/app/s${query}`));
  await page.locator('.cover').first().waitFor({ state: 'hidden' });
  return { page, errors };
}

const sliderOf = (page: Page) => page.getByRole('slider', { name: 'Time' });
const liveOf = (page: Page) => page.getByRole('button', { name: 'Live' });
const isLive = (page: Page, live: boolean) =>
  until(`live: ${live}`, async () => (await liveOf(page).getAttribute('aria-pressed')) === `${live}`);
const timeOf = (page: Page) => page.evaluate<number>(`document.querySelector('.screen video').currentTime`);

/** Number of the frame that a video of the page shows, as `writeLongPast` writes them. */
async function frameOf(page: Page, video: string): Promise<number | undefined> {
  return (
    (await page.evaluate<number | null>(`(() => {
      const video = document.querySelector('${video}');
      if (video === null || video.seeking || video.readyState < 2) return null;
      const canvas = new OffscreenCanvas(${FRAME_BITS}, 3);
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(video, 0, 0, ${FRAME_BITS}, 3);
      const { data } = context.getImageData(0, 1, ${FRAME_BITS}, 1);
      return Array.from({ length: ${FRAME_BITS} }, (_, bit) => (data[bit * 4] > 128 ? 2 ** bit : 0)).reduce((a, b) => a + b);
    })()`)) ?? undefined
  );
}

/** Waits for a frame of some seconds after the beginning. */
async function shows(page: Page, from: number, to: number, video = '.screen video'): Promise<void> {
  const seen = new Set<number | undefined>();
  const [first, last] = [Math.floor(from * FRAMES_PER_SECOND), Math.ceil(to * FRAMES_PER_SECOND)];
  await until(`frames ${first} to ${last}`, async () => {
    const frame = await frameOf(page, video);
    seen.add(frame);
    return frame !== undefined && frame >= first && frame <= last;
  }).catch(async (error: Error) => {
    const state = `(({ currentTime, seeking, readyState }) => [currentTime, seeking, readyState])(document.querySelector('${video}'))`;
    throw new Error(`${error.message}; seen: ${[...seen].join()}; ${JSON.stringify(await page.evaluate(state))}`);
  });
}

/** Seconds after the beginning at a time of day that the page shows, which has no more than whole seconds. */
function secondOf(label: string): number {
  const [, hours = '', minutes = '', seconds = ''] = /(\d\d):(\d\d):(\d\d)/.exec(label) ?? [];
  const ofDay = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
  const beginOfDay = Math.floor((begun + KATHMANDU_MS) / DAY_MS) * DAY_MS - KATHMANDU_MS;
  const date = beginOfDay + ofDay;
  return (date + 1000 < begun ? date + DAY_MS - begun : date - begun) / 1000;
}

/** Moves the mouse to a place of the time line, 0 to 1, and answers the time that is shown there. */
async function peek(page: Page, place: number): Promise<string> {
  const box = await sliderOf(page).boundingBox();
  if (box === null) throw new Error('there is no time line');
  await page.mouse.move(box.x + place * box.width, box.y + box.height / 2);
  return await page.locator('.timeline-peek span').innerText();
}

test('a viewer drags to a moment, sees its picture before and its frame then, and comes back to the live edge', async (t) => {
  const { page, errors } = await open(t);
  await sliderOf(page).waitFor();
  await isLive(page, true);
  t.is(
    await page
      .locator('.timeline-marks')
      .innerText()
      .then((text) => text.length > 0),
    true,
  );
  for (const place of [0.2, 0.6]) {
    const second = secondOf(await peek(page, place));
    t.true(second > 0 && second < SECONDS, `${second}`);
    await shows(page, second - PICTURE_SECONDS, second + 1, '.timeline-peek video');
  }
  await page.keyboard.press('k');
  await page.mouse.down();
  await peek(page, 0.5);
  const second = secondOf(await peek(page, 0.3));
  await page.mouse.up();
  await shows(page, second, second + 1);
  await isLive(page, false);
  t.true(Math.abs(secondOf((await sliderOf(page).getAttribute('aria-valuetext')) ?? '') - second) <= 1);
  t.regex(
    (await sliderOf(page).getAttribute('aria-valuetext')) ?? '',
    /^(\d+ \w+, )?\d\d:\d\d:\d\d, \d+ min \d+ s behind$/,
  );
  const before = await timeOf(page);
  await page.keyboard.press('k');
  await until('it plays on from there', async () => {
    const now = await timeOf(page);
    return now > before + 2 && now < before + 60;
  });
  await isLive(page, false);
  await liveOf(page).click();
  await isLive(page, true);
  await until('the live edge', async () => (await timeOf(page)) > SECONDS + 5);
  t.deepEqual(errors, []);
});

test('keys jump, pause, and go to the beginning and to the live edge', async (t) => {
  const { page, errors } = await open(t);
  const slider = sliderOf(page);
  await slider.waitFor();
  await slider.focus();
  await page.keyboard.press('Space');
  const isPaused = () => page.evaluate<boolean>(`document.querySelector('.screen video').paused`);
  await until('a pause', isPaused);
  await page.keyboard.press('Home');
  await shows(page, 0, 1);
  t.is(await slider.getAttribute('aria-valuenow'), '0');
  const begin = await timeOf(page);
  /** Seconds from the beginning after each key. */
  const after: number[] = [];
  for (const key of [
    'ArrowRight',
    'l',
    'l',
    'j',
    'PageUp',
    'ArrowUp',
    'ArrowLeft',
    'ArrowDown',
    'PageDown',
    'j',
    'j',
  ]) {
    await page.keyboard.press(key);
    after.push(Math.round((await timeOf(page)) - begin));
  }
  t.deepEqual(after, [5, 15, 25, 15, 75, 80, 75, 70, 10, 0, 0]);
  await page.keyboard.press('Shift+L');
  t.is(Math.round((await timeOf(page)) - begin), 10);
  await page.getByRole('button', { name: '+10 s' }).click();
  t.is(Math.round((await timeOf(page)) - begin), 20);
  await shows(page, 20, 21);
  // keys of other controls stay theirs
  await page.getByRole('radio', { name: 'LL-HLS' }).focus();
  await page.keyboard.press('Home');
  t.is(Math.round((await timeOf(page)) - begin), 20);
  await slider.focus();
  await page.keyboard.press('End');
  await isLive(page, true);
  await until('it plays', async () => !(await isPaused()) && (await timeOf(page)) > SECONDS);
  await page.keyboard.press('ArrowLeft');
  await isLive(page, false);
  await liveOf(page).press('Enter');
  await isLive(page, true);
  t.deepEqual(errors, []);
});

test('the time between two publishers is shown as a gap, and leads to what comes after it', async (t) => {
  const { page, errors } = await open(t);
  await sliderOf(page).waitFor();
  const gap = page.locator('.timeline-gaps > div').first();
  await gap.waitFor({ state: 'attached' });
  const [box, bar] = [await gap.boundingBox(), await sliderOf(page).boundingBox()];
  if (box === null || bar === null) return t.fail();
  const text = await peek(page, (box.x + box.width / 2 - bar.x) / bar.width);
  t.regex(text, /^Nothing until .*\d\d:\d\d:\d\d$/);
  t.deepEqual(errors, []);
});

test('a start in the address of the page is where it begins, and a viewer who has rewound goes on there when the player starts again', async (t) => {
  const second = 600;
  const asked: string[] = [];
  const start = new Date(begun + second * 1000).toISOString();
  const { page, errors } = await open(t, `?start=${start}`, { onRequest: (url) => asked.push(url) });
  await sliderOf(page).waitFor();
  await shows(page, second, second + 60);
  await isLive(page, false);
  t.deepEqual(errors, []);
  t.true(asked.some((url) => new URL(url).searchParams.get('start') === start));
  const media = /\/(seg|part)_/;
  await page.route(media, (route) => route.abort());
  await sliderOf(page).focus();
  // a minute each; the picture may be shown anew while a key is pressed
  const there = await until('it is three minutes on', async () => {
    await page.keyboard.press('PageUp');
    const at = secondOf((await sliderOf(page).getAttribute('aria-valuetext')) ?? '');
    return at >= second + 180 && at;
  });
  await page.locator('.cover strong', { hasText: 'Reconnecting' }).waitFor();
  await page.unroute(media);
  await shows(page, there - 1, there + 60);
  await isLive(page, false);
});

test('WebRTC offers to rewind, by LL-HLS', async (t) => {
  const { page, errors } = await open(t, '?mode=webrtc');
  const button = page.getByRole('button', { name: 'Rewind' });
  await button.waitFor();
  t.is(await sliderOf(page).count(), 0);
  // ten seconds ago there was something
  await until('15 s of the stream', () => Date.now() - (liveSince ?? Infinity) > 15_000);
  const second = () => (Date.now() - begun) / 1000;
  const clicked = second();
  await button.click();
  await sliderOf(page).waitFor();
  await isLive(page, false);
  const label = (await sliderOf(page).getAttribute('aria-valuetext')) ?? '';
  t.regex(label, / behind$/);
  // the page may have taken its time, and has played on since
  t.true(secondOf(label) > clicked - 12 && secondOf(label) < second() - 7, `${label}, ${clicked} to ${second()}`);
  t.is(new URL(page.url()).searchParams.get('mode'), 'llhls');
  t.true(await button.isHidden());
  // the session of WebRTC may be gone when it is ended
  t.deepEqual(
    errors.filter((error) => !error.endsWith('?direction=whep')),
    [],
  );
});

test('there is no time line where viewers cannot rewind, or do not want to', async (t) => {
  const other = publishPattern(kiln.rtmpUrl('s').replace('/app/', '/plain/'), { size: '320x180', rate: 10 });
  t.teardown(() => other.stop());
  const { page, errors } = await open(t, '?_HLS_rewind=NO');
  const plays = () => page.locator('.figures dd', { hasText: '320×180' }).first().waitFor();
  await plays();
  t.is(await sliderOf(page).count(), 0);
  await page.goto(kiln.httpUrl('/plain/s'));
  await plays();
  t.is(await sliderOf(page).count(), 0);
  t.is(await page.getByRole('button', { name: 'Rewind' }).count(), 0);
  t.deepEqual(errors, []);
});

test('the time line fits a phone, is moved by touch, and assistive technology finds its way', async (t) => {
  const { page, errors } = await open(t, '', { width: 360, hasTouch: true });
  const slider = sliderOf(page);
  await slider.waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 360);
  const box = await slider.boundingBox();
  if (box === null) return t.fail();
  await page.touchscreen.tap(box.x + box.width / 2, box.y + box.height / 2);
  await isLive(page, false);
  const second = secondOf((await slider.getAttribute('aria-valuetext')) ?? '');
  const whole = (Date.now() - begun) / 1000;
  t.true(Math.abs(second - whole / 2) < 60, `${second} of ${whole}`);
  t.true(await page.locator('.timeline-peek').isHidden());
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<{ violations: { id: string; impact: string }[] }>('axe.run()');
  t.deepEqual(
    violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'),
    [],
  );
  t.deepEqual(errors, []);
});

test('a player in a frame of another site has the time line, too', async (t) => {
  const { page, errors } = await open(t, '?embed', { width: 640 });
  const slider = sliderOf(page);
  await slider.waitFor();
  await slider.focus();
  await page.keyboard.press('Home');
  await isLive(page, false);
  t.true(await page.evaluate('document.documentElement.scrollHeight <= innerHeight'));
  t.deepEqual(errors, []);
});
