import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import type { Playlist } from '../../src/core/playlist.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { ladder, ladderPlaylist } from '../support/media/ladder.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { long } from '../support/runner/long.ts';
import { NarrowSignalling } from '../support/webrtc/narrow-signalling.ts';
import { addOwn } from '../support/server/own-pages.ts';
import { Throttle } from '../support/network/throttle.ts';
import { until } from '../support/time/until.ts';
import { opus } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';

const PLAYER = fileURLToPath(new URL('../support/webrtc/whep-player.js', import.meta.url));
const OVENPLAYER = fileURLToPath(import.meta.resolve('ovenplayer/dist/ovenplayer.js'));
/** How long an estimator may take to trust a link again. */
const PATIENCE_MS = 180_000;

const [high, low] = await ladder([
  { name: 'high', width: 640, height: 360, kbit: 1500, gop: 30, seconds: 4 },
  { name: 'low', width: 320, height: 180, kbit: 200, gop: 30, seconds: 4 },
]);
const sound = await opus();
const browser = await launchBrowser();

test.after.always(() => browser.close());

async function start(t: ExecutionContext, playlist: Playlist) {
  // one worker: the link leads to its port
  const server = await startWebrtc(t, { workers: 1 });
  const live = new LiveStream(server.registry, [{ ...high, lag: 0 }, { ...low, lag: 0.08 }, sound] as never);
  t.teardown(() => live.close());
  live.output.addPlaylist(playlist);
  await server.pool.ready();
  const throttle = await Throttle.open(server.pool.workers[0]?.candidates[0]?.port ?? 0, 7);
  t.teardown(() => throttle.close());
  const page = await browser.newPage();
  t.teardown(() => page.close());
  await page.goto(`${server.url}/page`);
  await page.addScriptTag({ path: PLAYER });
  return { ...server, live, throttle, page };
}

const width = (page: Page) => page.evaluate('received().then(({ width }) => width)') as Promise<number>;
const frames = (page: Page) => page.evaluate('received().then(({ frames }) => frames)') as Promise<number>;

async function plays(page: Page): Promise<void> {
  const before = await frames(page);
  await until('the picture moves', async () => (await frames(page)) > before + 15);
}

test.serial(
  'OvenPlayer steps down on a link that gets narrow and up when it is free again, and is notified',
  async (t) => {
    const { port, page, throttle } = await start(t, ladderPlaylist(['high', 'low']));
    const signalling = await NarrowSignalling.open(port, throttle);
    t.teardown(() => signalling.close());
    await page.addScriptTag({ path: OVENPLAYER });
    await page.evaluate(`playOven('${signalling.url}/app/stream/ladder')`);
    await until('the best rendition', async () => (await width(page)) === 640, PATIENCE_MS);
    throttle.link.bitsPerSecond = 600_000;
    const told = async (name: string, level: number): Promise<boolean> =>
      signalling.renditions.at(-1) === name && (await page.evaluate('player.getCurrentQuality()')) === level;
    await until('a lower one', async () => (await width(page)) === 320 && told('low', 1), PATIENCE_MS);
    t.true(await page.evaluate('player.isAutoQuality()'));
    await plays(page);
    throttle.link.bitsPerSecond = Infinity;
    await until('the best one again', async () => (await width(page)) === 640 && told('high', 0), PATIENCE_MS);
    t.true(signalling.notifications.slice(1).every(({ message }) => message?.auto === true));

    // what the viewer chooses stays, whatever the link
    await page.evaluate('player.setCurrentQuality(1)');
    await until(
      'the chosen one',
      async () => (await width(page)) === 320 && signalling.notifications.at(-1)?.message?.auto === false,
      PATIENCE_MS,
    );
    t.deepEqual(signalling.notifications.at(-1)?.message as unknown, { rendition_name: 'low', auto: false });
    await plays(page);
    await page.evaluate('player.setAutoQuality(true)');
    await until(
      'the best one by itself',
      async () => (await width(page)) === 640 && signalling.renditions.at(-1) === 'high',
      PATIENCE_MS,
    );
    t.deepEqual(signalling.notifications.at(-1)?.message as unknown, { rendition_name: 'high', auto: true });
  },
);

long('audio alone goes on where not even the lowest rendition fits the link', async (t) => {
  const playlist = ladderPlaylist(['high', 'low'], { webrtcAudioOnlyFallback: true });
  const { port, page, throttle } = await start(t, {
    ...playlist,
    renditions: [...playlist.renditions, { name: 'sound', audioVariantName: 'audio' }],
  });
  const signalling = await NarrowSignalling.open(port, throttle);
  t.teardown(() => signalling.close());
  await page.addScriptTag({ path: OVENPLAYER });
  await page.evaluate(`playOven('${signalling.url}/app/stream/ladder')`);
  await plays(page);
  throttle.link.bitsPerSecond = 120_000;
  await until('sound alone', () => signalling.renditions.at(-1) === 'sound', PATIENCE_MS);
  throttle.link.bitsPerSecond = Infinity;
  await until('a picture again', () => signalling.renditions.at(-1) !== 'sound', PATIENCE_MS);
  await plays(page);
  t.true(signalling.notifications.slice(1).every(({ message }) => message?.auto === true));
});

long('the player page steps down and up too, by WHEP', async (t) => {
  const { url, page, throttle } = await start(t, ladderPlaylist(['high', 'low']));
  await page.exposeFunction('narrow', (sdp: string) => throttle.rewrite(sdp));
  await addOwn(page, 'WhepPlayer');
  await page.evaluate(`
    const taken = RTCPeerConnection.prototype.setRemoteDescription;
    RTCPeerConnection.prototype.setRemoteDescription = async function ({ type, sdp }) {
      window.connection = this;
      await taken.call(this, { type, sdp: await narrow(sdp) });
    };
    const video = document.body.appendChild(document.createElement('video'));
    video.autoplay = video.muted = true;
    const failed = ({ reason }) => (window.failure = reason);
    new WhepPlayer(video, { failed }, []).start('${url}/app/stream/ladder?direction=whep');
  `);
  await until('the best rendition', async () => (await width(page)) === 640, PATIENCE_MS);
  throttle.link.bitsPerSecond = 600_000;
  await until('a lower one', async () => (await width(page)) === 320, PATIENCE_MS);
  await plays(page);
  throttle.link.bitsPerSecond = Infinity;
  await until('the best one again', async () => (await width(page)) === 640, PATIENCE_MS);
  t.is(await page.evaluate('window.failure'), undefined);
});

long('a viewer of any WHEP player behind 1 Mbit/s gets the lower rendition', async (t) => {
  const { url, page, throttle } = await start(t, ladderPlaylist(['high', 'low']));
  await page.exposeFunction('narrow', (sdp: string) => throttle.rewrite(sdp));
  await page.evaluate(`playWhep('${url}/app/stream/ladder?direction=whep', narrow)`);
  await until('the best rendition', async () => (await width(page)) === 640, PATIENCE_MS);
  throttle.link.bitsPerSecond = 1_000_000;
  await until('a lower one', async () => (await width(page)) === 320, PATIENCE_MS);
  await plays(page);
  t.is(await width(page), 320);
});
