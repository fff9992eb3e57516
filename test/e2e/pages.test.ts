import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import fastify from 'fastify';
import type { Page } from 'playwright-core';
import { Registry } from '../../src/core/registry.ts';
import { findFfmpeg } from '../../src/ffmpeg.ts';
import { pagesRoutes } from '../../src/web/pages.ts';
import { aloneWith } from '../support/cluster/alone.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { until } from '../support/time/until.ts';
import { addVhost, AUDIO, goLive, VIDEO, type VhostShape } from '../support/server/live.ts';

const browser = await launchBrowser();
const media = await mkdtemp(join(tmpdir(), 'kiln-pages-'));
test.before(async () => {
  const { path } = await findFfmpeg();
  await promisify(execFile)(path, [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    'testsrc2=size=320x180:rate=25:duration=20',
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-pix_fmt',
    'yuv420p',
    '-b:v',
    '200k',
    '-g',
    '25',
    '-f',
    'hls',
    '-hls_time',
    '1',
    '-hls_list_size',
    '0',
    '-hls_flags',
    'omit_endlist',
    '-hls_segment_type',
    'fmp4',
    '-master_pl_name',
    'llhls.m3u8',
    join(media, 'media.m3u8'),
  ]);
});
/** Two qualities, each playable with sound in two languages. */
test.before(async () => {
  const { path } = await findFfmpeg();
  const tone = (hertz: number) => ['-f', 'lavfi', '-i', `sine=frequency=${hertz}:sample_rate=48000:duration=20`];
  await promisify(execFile)(path, [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    'testsrc2=size=320x180:rate=25:duration=20',
    ...tone(440),
    ...tone(660),
    '-map',
    '0:v',
    '-map',
    '0:v',
    '-map',
    '1:a',
    '-map',
    '2:a',
    '-filter:v:1',
    'scale=160:90',
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-pix_fmt',
    'yuv420p',
    '-g',
    '25',
    '-b:v:0',
    '200k',
    '-b:v:1',
    '60k',
    '-c:a',
    'aac',
    '-var_stream_map',
    'v:0,agroup:a v:1,agroup:a a:0,agroup:a,language:English,default:yes a:1,agroup:a,language:Deutsch',
    '-f',
    'hls',
    '-hls_time',
    '1',
    '-hls_list_size',
    '0',
    '-hls_flags',
    'omit_endlist',
    '-hls_segment_type',
    'fmp4',
    '-hls_fmp4_init_filename',
    'ladder_init_%v.mp4',
    '-master_pl_name',
    'ladder.m3u8',
    join(media, 'ladder_%v.m3u8'),
  ]);
});
test.after.always(async () => {
  await browser.close();
  await rm(media, { recursive: true });
});

/** A server with the pages and, in place of the publishers, answers that a test sets. */
async function open(t: ExecutionContext, { vhost, width = 1000 }: { vhost?: VhostShape; width?: number } = {}) {
  const registry = new Registry();
  addVhost(registry, vhost);
  const { live } = await aloneWith(registry);
  const app = fastify();
  await app.register(pagesRoutes({ registry, live, serves: ['llhls', 'webrtc'] }));
  const answers = { playlist: 200, whep: 409 };
  app.get<{ Params: { stream: string; file: string } }>('/:app/:stream/:file', async ({ params }, reply) => {
    if (answers.playlist !== 200) return reply.code(answers.playlist).send('');
    reply.type(params.file.endsWith('.m3u8') ? 'application/vnd.apple.mpegurl' : 'video/mp4');
    const ladder = params.stream === 'ladder' && params.file === 'llhls.m3u8';
    return readFile(join(media, ladder ? 'ladder.m3u8' : basename(params.file)));
  });
  app.addContentTypeParser('application/sdp', { parseAs: 'string' }, (_request, _body, done) => done(null));
  app.post('/:app/:stream', async (_request, reply) => reply.code(answers.whep).send(''));
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  t.teardown(async () => {
    await page.close();
    await app.close();
  });
  const close = (): Promise<void> => {
    app.server.closeAllConnections();
    return app.close();
  };
  return { registry, answers, origin, page, errors, close };
}

const heading = (page: Page, text: string) => page.locator('.cover strong', { hasText: text }).first().waitFor();
/** The figures show the size of the decoded picture while it plays, and nothing else. */
const plays = (page: Page) => page.locator('.figures dd', { hasText: '320×180' }).first().waitFor();

test('the list follows what is live, and shows names as text', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  const name = '<img src=x onerror="window.hit=1">&amp;';
  await page.goto(origin);
  await page.getByText('Nothing is live right now').waitFor();
  const output = goLive(registry, 'app', name);
  const link = page.getByRole('link', { name });
  await link.waitFor();
  t.is(await page.locator('#streams img').count(), 0);
  t.is(await page.evaluate(`'hit' in window`), false);
  t.regex(await page.locator('#streams li').innerText(), /1280×720 · 30 fps · H264 · AAC/);
  await link.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(`${origin}/app/${encodeURIComponent(name)}`);
  t.is(await page.locator('h1').innerText(), name);
  t.is(await page.locator('h1 *').count(), 0);
  await page.goBack();
  output.input.close('the test ends it');
  await page.getByText('Nothing is live right now').waitFor();
  t.deepEqual(errors, []);
});

test('the player starts by itself when the stream begins, and again when it comes back', async (t) => {
  const { registry, answers, origin, page, errors } = await open(t);
  answers.playlist = 201;
  await page.goto(`${origin}/app/later`);
  await heading(page, 'Not live yet');
  const first = goLive(registry, 'app', 'later');
  await heading(page, 'Starting');
  answers.playlist = 200;
  await plays(page);
  await page.locator('.cover').first().waitFor({ state: 'hidden' });
  // what the playlist's node cannot tell now
  answers.playlist = 503;
  first.input.close('the test ends it');
  await heading(page, 'Reconnecting');
  answers.playlist = 404;
  await heading(page, 'The stream has ended');
  answers.playlist = 200;
  goLive(registry, 'app', 'later');
  await plays(page);
  t.deepEqual(errors, []);
});

test('a page that plays counts itself, and says so when the server has gone', async (t) => {
  const { registry, origin, page, errors, close } = await open(t);
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news?mode=both`);
  await plays(page);
  await page.locator('#about', { hasText: '1 watching' }).waitFor();
  await close();
  await page.locator('.cover strong', { hasText: 'The server cannot be reached' }).nth(1).waitFor();
  t.is(await page.locator('#about').innerText(), 'app');
  t.is(await page.locator('.figures dd[title]:not([title=""])').count(), 0);
  t.deepEqual(errors, []);
});

test('a frozen picture waits for the publisher while no node has the stream', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  await page.clock.install();
  goLive(registry, 'app', 'news');
  const list = (await (await fetch(`${origin}/-/streams.json?app=app&stream=news`)).json()) as { streams: object[] };
  let relayed = 0;
  await page.goto(`${origin}/app/news`);
  await plays(page);
  await page.route('**/streams.json*', async (route) => {
    await route.fulfill({ json: { ...list, now: Date.now(), streams: [{ ...list.streams[0], relayed: true }] } });
    relayed++;
  });
  await until('it was listed as relayed', () => relayed > 1);
  await page.route('**/llhls.m3u8', () => {});
  await page.evaluate(
    `Object.defineProperty(document.querySelector('video'), 'currentTime', { get: () => 1, set() {} })`,
  );
  await page.clock.fastForward(10_000);
  await heading(page, 'Reconnecting');
  t.deepEqual(errors, []);
});

test('LL-HLS whose picture stands still says that it reconnects, and does', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  await page.clock.install();
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news`);
  await plays(page);
  await page.evaluate(
    `Object.defineProperty(document.querySelector('video'), 'currentTime', { get: () => 1, set() {}, configurable: true })`,
  );
  await page.clock.fastForward(10_000);
  await heading(page, 'Reconnecting');
  // where the clock overtakes what is decoded, or what was loaded, the player says so first; it may try again by now
  t.regex(
    await page.locator('.cover span').innerText(),
    /^The video (has stopped|could not be decoded)$|^(No video arrived|Trying again)$/,
  );
  await page.evaluate(`delete document.querySelector('video').currentTime`);
  await plays(page);
  await page.locator('.cover').first().waitFor({ state: 'hidden' });
  t.deepEqual(errors, []);
});

test('LL-HLS that the server cannot play now says so', async (t) => {
  const { registry, answers, origin, page, errors } = await open(t);
  goLive(registry, 'app', 'news');
  answers.playlist = 503;
  await page.goto(`${origin}/app/news`);
  await heading(page, 'The server cannot play this stream now');
  answers.playlist = 200;
  await plays(page);
  t.deepEqual(errors, []);
});

test('LL-HLS that brings no picture is started again after a while', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  await page.clock.install();
  goLive(registry, 'app', 'news');
  let hanging = 0;
  let started = 0;
  // a busy machine takes long enough for more than one start until then
  let before = Infinity;
  page.on('request', (request) => (started += request.url().endsWith('/llhls.m3u8') ? 1 : 0));
  await page.route('**/media.m3u8', async (route) => {
    if (started > before) await route.continue();
    else hanging++;
  });
  await page.goto(`${origin}/app/news`);
  await until('the player waits for a chunklist', () => hanging > 0);
  before = started;
  await page.clock.fastForward(12_000);
  await until('it is started again', () => started > before);
  await plays(page);
  await page.locator('.cover').first().waitFor({ state: 'hidden' });
  t.deepEqual(errors, []);
});

test('a stream that is only relayed for now goes on as it is', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  goLive(registry, 'app', 'news');
  const list = (await (await fetch(`${origin}/-/streams.json?app=app&stream=news`)).json()) as {
    streams: { since: number; relayed?: true }[];
  };
  let relayed = false;
  let told = 0;
  await page.route('**/streams.json*', async (route) => {
    const [stream] = list.streams;
    if (stream !== undefined && relayed && ++told === 1)
      Object.assign(stream, { relayed: true, since: stream.since - 3_600_000 });
    await route.fulfill({ json: { ...list, now: Date.now() } });
  });
  await page.goto(`${origin}/app/news`);
  await plays(page);
  relayed = true;
  await until('it was listed as relayed', () => told > 2);
  t.notRegex(await page.locator('#about').innerText(), /live for (\d\d min|1 h)/);
  t.deepEqual(errors, []);
});

test('the way to play is chosen by keyboard and remembered in the address', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news`);
  await plays(page);
  const panels = () => page.locator('.panel h2').allTextContents();
  t.deepEqual(await panels(), ['LL-HLS']);
  await page.getByRole('radio', { name: 'LL-HLS' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('.panel h2', { hasText: 'WebRTC' }).waitFor({ state: 'attached' });
  t.deepEqual(await panels(), ['WebRTC']);
  await page.getByText('No audio over WebRTC').waitFor();
  await page.keyboard.press('ArrowRight');
  await plays(page);
  t.deepEqual(await panels(), ['LL-HLS', 'WebRTC']);
  t.is(new URL(page.url()).searchParams.get('mode'), 'both');
  await page.reload();
  await plays(page);
  t.deepEqual(await panels(), ['LL-HLS', 'WebRTC']);
  t.deepEqual(errors, []);
});

test('sound is off until the viewer turns it on, in one picture at a time', async (t) => {
  const { registry, origin, page } = await open(t);
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news`);
  await plays(page);
  const muted = () => page.evaluate(`document.querySelector('video').muted`);
  t.true(await muted());
  const sound = page.getByRole('button', { name: 'Unmute' });
  await sound.click();
  t.false(await muted());
  await sound.waitFor({ state: 'hidden' });
});

test('a browser that turns the sound on and stops when the rate changes plays on without, unless the viewer has turned it on', async (t) => {
  const { registry, origin, page } = await open(t);
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news`);
  await plays(page);
  // as WebKitGTK does it: the rate is another one when it tells of sound and pause, and is told of last
  const unmuteByRate = () =>
    page.evaluate(`new Promise((resolve) => {
      const video = document.querySelector('video');
      video.addEventListener('ratechange', () => resolve(), { once: true });
      video.muted = false;
      video.pause();
      // the player may have set either while it catches up: no event tells of a rate that stays
      video.playbackRate = video.playbackRate === 1.05 ? 1.03 : 1.05;
    })`);
  const state = () =>
    page.evaluate<[boolean, boolean]>(`(({ muted, paused }) => [muted, paused])(document.querySelector('video'))`);
  for (let times = 0; times < 2; times++) {
    await unmuteByRate();
    await until('it plays on without sound', async () => {
      const [muted, paused] = await state();
      return muted && !paused;
    });
  }
  await page.getByRole('button', { name: 'Unmute' }).click();
  await page.evaluate(`document.querySelector('video').playbackRate = 1.05`);
  await page.getByRole('button', { name: 'Unmute' }).waitFor({ state: 'hidden' });
  t.deepEqual(await state(), [false, false]);
});

test('sound that comes later is played, for which the player starts again', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  const output = goLive(registry, 'app', 'news', [VIDEO]);
  await page.goto(`${origin}/app/news`);
  await plays(page);
  t.true(await page.getByRole('button', { name: 'Unmute' }).isHidden());
  const playlist = page.waitForRequest(/llhls\.m3u8/);
  output.setTracks([VIDEO, AUDIO]);
  await playlist;
  await page.getByRole('button', { name: 'Unmute' }).waitFor();
  t.deepEqual(errors, []);
});

test('the page explains a rejection in words and does not try again', async (t) => {
  const vhost = { signedPolicy: { enables: { publishers: 'llhls' } } as never };
  const { registry, answers, origin, page } = await open(t, { vhost });
  goLive(registry, 'app', 'secret');
  await page.goto(origin);
  await page.getByText('Streams are not listed here').waitFor();
  answers.playlist = 401;
  answers.whep = 401;
  const asked: string[] = [];
  page.on('request', (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
  const again = page.waitForResponse(/streams\.json/);
  await page.goto(`${origin}/app/secret?mode=both&policy=p&signature=s`);
  await again;
  await page.locator('.cover strong', { hasText: 'not allowed' }).nth(1).waitFor();
  const polled = page.waitForResponse(/streams\.json/);
  await polled;
  t.is(asked.filter((line) => line === 'GET /app/secret/llhls.m3u8').length, 1);
  t.is(asked.filter((line) => line === 'POST /app/secret').length, 1);
});

test('the query of the player page is passed on to the stream', async (t) => {
  const { registry, origin, page } = await open(t);
  goLive(registry, 'app', 'news');
  const playlist = page.waitForRequest(/llhls\.m3u8/);
  const offer = page.waitForRequest((request) => request.method() === 'POST');
  await page.goto(`${origin}/app/news?mode=both&policy=p`);
  t.is(new URL((await playlist).url()).search, '?policy=p');
  t.is(new URL((await offer).url()).search, '?policy=p&direction=whep');
  t.is((await offer).headers()['content-type'], 'application/sdp');
});

test('the page says in words that the server is gone', async (t) => {
  const { origin, page } = await open(t);
  await page.goto(`${origin}/app/news`);
  await heading(page, 'Not live yet');
  await page.route('**/-/streams.json*', (route) => route.abort());
  await heading(page, 'The server cannot be reached');
  await page.unroute('**/-/streams.json*');
  await heading(page, 'Not live yet');
  t.is(await page.getByText('The server cannot be reached').count(), 0);
});

test('quality and sound are chosen by keyboard, and stay chosen when the player starts again', async (t) => {
  const { registry, origin, page, errors } = await open(t);
  const output = goLive(registry, 'app', 'ladder');
  await page.goto(`${origin}/app/ladder`);
  await plays(page);
  const quality = page.getByLabel('Quality');
  const sound = page.getByLabel('Audio', { exact: true });
  t.deepEqual((await quality.locator('option').allTextContents()).slice(1), ['180p', '90p']);
  await quality.locator('option', { hasText: /^Auto \(\d+p\)$/ }).waitFor({ state: 'attached' });
  t.is(await quality.inputValue(), '-1');
  await quality.focus();
  await page.keyboard.press('End');
  await page.locator('.figures dd', { hasText: '160×90' }).waitFor();
  t.is(await quality.locator('option:checked').innerText(), '90p');
  t.is(await quality.locator('option').first().innerText(), 'Auto');
  await sound.waitFor();
  const [first = '', second = ''] = await sound.locator('option').allTextContents();
  t.not(first, second);
  const german = page.waitForRequest(/ladder_3/);
  await sound.focus();
  await page.keyboard.press('End');
  await german;
  output.input.close('the test ends it');
  await heading(page, 'The stream has ended');
  t.true(await quality.isHidden());
  const playlist = page.waitForRequest(/llhls\.m3u8/);
  goLive(registry, 'app', 'ladder');
  await playlist;
  await page.locator('.figures dd', { hasText: '160×90' }).waitFor();
  t.is(await quality.locator('option:checked').innerText(), '90p');
  t.is(await sound.locator('option:checked').innerText(), second);
  await quality.selectOption('Auto');
  await plays(page);
  t.deepEqual(errors, []);
});

test('the player page shows no menu where there is no choice', async (t) => {
  const { registry, origin, page } = await open(t);
  goLive(registry, 'app', 'news');
  await page.goto(`${origin}/app/news`);
  await plays(page);
  t.is(await page.locator('select').count(), 0);
  t.true(await page.locator('.choices').isHidden());
});

test('all pages fit a phone', async (t) => {
  const { registry, origin, page } = await open(t, { width: 360 });
  const name = 'a_name_without_a_space_that_is_longer_than_the_screen_of_any_phone';
  goLive(registry, 'app', name);
  goLive(registry, 'app', 'ladder');
  for (const path of ['/', `/app/${name}?mode=both`, '/app/ladder?mode=both', '/app/later', '/nowhere/at-all']) {
    await page.goto(origin + path);
    await page.locator('main').waitFor();
    if (path === '/') await page.getByRole('link', { name }).waitFor();
    if (path.startsWith('/app/ladder')) await page.getByLabel('Quality').waitFor();
    t.is(await page.evaluate('document.documentElement.scrollWidth'), 360, path);
  }
});
