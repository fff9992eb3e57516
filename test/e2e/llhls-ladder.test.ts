import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { aac } from '../support/media/aac.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { ladder, ladderPlaylist } from '../support/media/ladder.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { long } from '../support/runner/long.ts';
import { until } from '../support/time/until.ts';

const file = (specifier: string) => fileURLToPath(import.meta.resolve(specifier));
const SCRIPTS = [
  file('hls.js/dist/hls.min.js'),
  file('ovenplayer/dist/ovenplayer.js'),
  file('../support/hls/hls-player.js'),
];
const WIDTHS = [160, 320, 640] as const;
/** What an encoder makes of a picture comes after the picture itself, and sound between the two. */
const LAG = { picture: 0.25, sound: 0.1 };

const pictures = await ladder([
  { name: 'high', width: 640, height: 360, fps: 25, gop: 25, seconds: 4, kbit: 600 },
  { name: 'middle', width: 320, height: 180, fps: 25, gop: 25, seconds: 4, kbit: 350 },
  { name: 'low', width: 160, height: 90, fps: 25, gop: 25, seconds: 4, kbit: 200 },
]);
const sounds = [await aac(440, { id: 1, language: 'en' }), await aac(660, { id: 2, language: 'ko' })];
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** A live ladder with sound in two languages, and a page of its server that can play it. */
async function open(t: ExecutionContext): Promise<{ page: Page; url: string; live: LiveStream }> {
  const { app, registry, get, children } = await openLlhls(t, {
    llhls: { segmentDuration: 1, segmentCount: 10, chunkDuration: 0.5 },
  });
  app.get('/page', (_request, reply) => reply.type('text/html').send('<!doctype html><div id=player></div>'));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const origin = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const [source, ...encoded] = pictures;
  const media = [
    ...(source === undefined ? [] : [source]),
    ...encoded.map((one) => ({ ...one, lag: LAG.picture })),
    ...sounds.map((one) => ({ ...one, lag: LAG.sound })),
  ];
  const live = new LiveStream(registry, media);
  live.output.addPlaylist(ladderPlaylist(['high', 'middle', 'low']));
  const page = await browser.newPage();
  t.teardown(async () => {
    await page.close();
    live.close();
  });
  // a player that comes with the stream has too little to hold back from the edge
  await until(
    'three segments',
    async () => (await get((await children()).at(-1) ?? '/')).body.split('#EXTINF').length > 3,
  );
  await page.goto(`${origin}/page`);
  for (const path of SCRIPTS) await page.addScriptTag({ content: readFileSync(path, 'utf8') });
  return { page, url: `${origin}/app/stream/ladder.m3u8`, live };
}

/** The picture goes on, in one of those widths. */
const shows = (page: Page, ...widths: number[]) => page.waitForFunction(`shows(${widths.join()})`);
const faults = (page: Page) => page.evaluate('faults');

test.serial('hls.js changes the rendition by hand, up and down, at the next segment and at once', async (t) => {
  const { page, url } = await open(t);
  await page.evaluate(`playHls('${url}')`);
  await page.waitForFunction('window.hls?.levels.length === 3');
  t.deepEqual(await page.evaluate('hls.levels.map(({ width }) => width)'), WIDTHS);
  // a change before the first picture has hls.js append to a buffer that it has not made yet
  await shows(page, ...WIDTHS);
  for (const level of [2, 0, 1, 2] as const) {
    await page.evaluate(`hls.nextLevel = ${level}`);
    await shows(page, WIDTHS[level]);
  }
  for (const level of [0, 2] as const) {
    await page.evaluate(`hls.currentLevel = ${level}`);
    await shows(page, WIDTHS[level]);
  }
  t.deepEqual(await faults(page), []);
});

long('OvenPlayer, unchanged, lists the qualities and changes them', async (t) => {
  const { page, url } = await open(t);
  await page.evaluate(`playOven('${url}')`);
  await page.waitForFunction('window.player.getQualityLevels().length === 3');
  t.deepEqual(await page.evaluate('player.getQualityLevels().map(({ width, height }) => [width, height])'), [
    [160, 90],
    [320, 180],
    [640, 360],
  ]);
  await shows(page, ...WIDTHS);
  for (const level of [2, 0, 1] as const) {
    await page.evaluate(`player.setCurrentQuality(${level})`);
    await shows(page, WIDTHS[level]);
    t.is(await page.evaluate('player.getCurrentQuality()'), level);
  }
  t.deepEqual(await faults(page), []);
});

long('hls.js goes down by itself when the line is narrow, and up again when it is not', async (t) => {
  const { page, url } = await open(t);
  await page.evaluate(`playHls('${url}')`);
  await shows(page, 640);
  const line = await page.context().newCDPSession(page);
  const narrow = (bitsPerSecond: number) =>
    line.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      uploadThroughput: -1,
      downloadThroughput: bitsPerSecond / 8,
    });
  await line.send('Network.enable');
  await narrow(420_000);
  await shows(page, 160);
  await narrow(-8);
  await shows(page, 640);
  t.deepEqual(await faults(page), []);
});

long('hls.js changes the language', async (t) => {
  const { page, url } = await open(t);
  await page.evaluate(`playHls('${url}')`);
  await shows(page, 640);
  t.deepEqual(await page.evaluate('hls.audioTracks.map(({ name, lang }) => [name, lang])'), [
    ['English', 'en'],
    ['한국어', 'ko'],
  ]);
  const asked = page.waitForRequest(/part_2_\d+_\d+_audio/);
  await page.evaluate('window.since = undefined, hls.audioTrack = 1');
  await asked;
  await shows(page, 640);
  t.is(await page.evaluate('hls.audioTrack'), 1);
  t.deepEqual(await faults(page), []);
});

/** Takes a track out of a stream, as an encoder that ends does; the answer brings it back, with a key frame. */
function cutOff({ output }: LiveStream, trackId: number): () => void {
  const write = output.write.bind(output);
  let away = true;
  let back = false;
  output.write = (packet) => {
    if (packet.track.id === trackId && !away) back ||= packet.key !== false;
    if (packet.track.id !== trackId || back) write(packet);
  };
  return () => (away = false);
}

long('hls.js plays another rendition when the encoder of its own is away, and goes on when it is back', async (t) => {
  const { page, url, live } = await open(t);
  await page.evaluate(`playHls('${url}')`);
  await shows(page, 640);
  const bring = cutOff(live, 10);
  await shows(page, 160, 320);
  bring();
  await shows(page, ...WIDTHS);
  t.deepEqual(await page.evaluate("faults.filter((fault) => fault.includes(' true '))"), []);
});

test.serial('hls.js plays another rendition when its own is taken out, and the others go on', async (t) => {
  const { page, url, live } = await open(t);
  const { tracks } = live.output;
  await page.evaluate(`playHls('${url}')`);
  await shows(page, 640);
  live.output.setTracks(tracks.filter(({ id }) => id !== 10));
  await shows(page, 160, 320);
  t.deepEqual(await page.evaluate("faults.filter((fault) => fault.includes(' true '))"), []);
});
