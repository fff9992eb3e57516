import test from 'ava';
import type { Static } from 'typebox';
import type { Page } from 'playwright-core';
import type { StatisticsV1 as Schema } from '../../src/stats/v1.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { startSubPaths } from '../support/network/sub-path.ts';
import { until } from '../support/time/until.ts';

type StatisticsV1 = Static<typeof Schema>;

const STATISTICS = '/v1/stats/current/vhosts/default/apps/app/streams';
const kiln = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>', iceAddress: '*' });
const browser = await launchBrowser();
test.after.always(async () => {
  await browser.close();
  await kiln.stop();
});

/** Frames that each of the page's video elements has shown so far. */
const frames = (page: Page) =>
  page
    .locator('video')
    .evaluateAll((videos) =>
      (videos as unknown as { getVideoPlaybackQuality(): { totalVideoFrames: number } }[]).map(
        (video) => video.getVideoPlaybackQuality().totalVideoFrames,
      ),
    );

async function bothPlay(page: Page): Promise<void> {
  await until('both players show the picture', async () => {
    const figures = await page.locator('.figures dd', { hasText: '640×360' }).count();
    return figures === 2;
  });
  const before = await frames(page);
  await until('both pictures move', async () => {
    const now = await frames(page);
    return now.length === 2 && now.every((count, index) => count > (before[index] ?? 0) + 10);
  });
}

/** Statistics of the stream, once it has a viewer by each way. */
function counted(stream = 'live'): Promise<StatisticsV1> {
  return until('both viewers are counted', async () => {
    const { status, body } = await kiln.api<StatisticsV1>(`${STATISTICS}/${stream}`);
    if (status !== 200) return false;
    const { webrtc, llhls } = body.response.connections;
    return webrtc === 1 && llhls >= 1 && body.response;
  });
}

test.serial(
  'the player page starts by itself when the stream does, plays by LL-HLS and WebRTC, and comes back',
  async (t) => {
    const page = await browser.newPage();
    // it would play the next stream of that name, too
    t.teardown(() => page.close());
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await page.goto(kiln.httpUrl('/app/live?mode=both'));
    await page.locator('.cover strong').first().waitFor();

    const first = publishPattern(kiln.rtmpUrl('live'));
    t.teardown(() => first.stop());
    await bothPlay(page);
    const viewers = await counted();
    t.is(viewers.totalConnections, viewers.connections.webrtc + viewers.connections.llhls);
    t.true(viewers.totalBytesOut > 0);

    await first.stop();
    await until('the stream is gone', async () => (await kiln.stream('live')).status === 404);
    const second = publishPattern(kiln.rtmpUrl('live'));
    t.teardown(() => second.stop());
    await counted();
    await bothPlay(page);
    t.deepEqual(errors, []);
  },
);

for (const [how, signal] of [
  ['ends', 'SIGKILL'],
  ['does not answer any more', 'SIGSTOP'],
] as const) {
  long(`a server that ${how}: both players say so, and play again when it is back`, async (t) => {
    const server = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>', iceAddress: '*' });
    t.teardown(async () => {
      server.signal('SIGCONT');
      await server.stop();
    });
    const publish = () => publishPattern(server.rtmpUrl('live'));
    let publisher = publish();
    t.teardown(() => publisher.stop());
    const page = await browser.newPage();
    t.teardown(() => page.close());
    await server.liveStream('live');
    await page.goto(server.httpUrl('/app/live?mode=both'));
    await bothPlay(page);
    const went = performance.now();
    server.signal(signal);
    await page.locator('.cover strong', { hasText: 'The server cannot be reached' }).nth(1).waitFor();
    t.log(`after ${Math.round(performance.now() - went)} ms`);
    t.is(await page.locator('.cover:visible strong').count(), 2);
    await publisher.stop();
    await server.restart();
    publisher = publish();
    await bothPlay(page);
    t.is(await page.locator('.cover:visible').count(), 0);
  });
}

test.serial(
  'below a path of a proxy the pages, their players and what they end are where the browser is',
  async (t) => {
    const proxy = await startSubPaths(t, { 'some/where': kiln.httpUrl('').replace(/\/$/, '') });
    const below = `${proxy}/some/where`;
    const publisher = publishPattern(kiln.rtmpUrl('below'));
    t.teardown(() => publisher.stop());
    await kiln.liveStream('below');
    const page = await browser.newPage();
    t.teardown(() => page.close());
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    const asked: string[] = [];
    page.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
    await page.goto(`${below}/`);
    await page.locator('a[href$="/app/below"]').click();
    await page.waitForURL(`${below}/app/below`);
    await page.goto(`${below}/app/below?mode=both`);
    await bothPlay(page);
    await counted('below');
    await page.locator('#modes label', { hasText: 'LL-HLS' }).click();
    await until('the session of WHEP is ended', async () => {
      const { body } = await kiln.api<StatisticsV1>(`${STATISTICS}/below`);
      return body.response.connections.webrtc === 0;
    });
    const ended = asked.filter((request) => request.startsWith('DELETE'));
    t.is(ended.length, 1);
    await page.goto(`${below}/app/nowhere/at/all`);
    await page.locator('main a').first().click();
    await page.waitForURL(`${below}/`);
    t.deepEqual(
      asked.filter((request) => !request.includes(`${below}/`) && !request.includes(' blob:')),
      [],
    );
    t.deepEqual(errors, []);
  },
);

test.serial('the list names what is live', async (t) => {
  const publisher = publishPattern(kiln.rtmpUrl('listed'), { size: '320x180' });
  t.teardown(() => publisher.stop());
  await kiln.liveStream('listed');
  const page = await browser.newPage();
  await page.goto(kiln.httpUrl('/'));
  const link = page.locator('a', { hasText: 'listed' }).first();
  await link.waitFor();
  t.is(await link.getAttribute('href'), '/app/listed');
});
