import { fileURLToPath } from 'node:url';
import test from 'ava';
import type { Page } from 'playwright-core';
import type { MediaTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { qualitySummaries } from '../../src/quality/summary.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { cuePacket, dataTrack, eventPacket, subtitleTrack } from '../support/media/packets.ts';
import { until } from '../support/time/until.ts';
import { h264, ivf, opus, telephony, type Media } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';

const PLAYER = fileURLToPath(new URL('../support/webrtc/whep-player.js', import.meta.url));
const OVENPLAYER = fileURLToPath(import.meta.resolve('ovenplayer/dist/ovenplayer.js'));

const sound = await opus();
const picture = await h264();
const codecs: Record<string, Media<MediaTrack>> = {
  H264: picture,
  VP8: await ivf('VP8'),
  VP9: await ivf('VP9'),
  AV1: await ivf('AV1'),
};
const browser = await launchBrowser();

test.after.always(() => browser.close());

interface Received {
  readonly frames: number;
  readonly width: number;
  readonly audioEnergy: number;
  /** Media type of the audio that is decoded. */
  readonly audioCodec?: string;
  /** Samples that were decoded, without those made up for lost ones. */
  readonly audioSamples: number;
  readonly freezes: number;
  readonly lost: number;
}

/** A page of the server's origin that can play. */
async function openPage(url: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${url}/page`);
  await page.addScriptTag({ path: PLAYER });
  return page;
}

/** What has arrived once there are so many frames, and sound. */
function watch(page: Page, frames: number): Promise<Received> {
  return until(`${frames} frames`, async () => {
    const counts = (await page.evaluate('received()')) as Received;
    return counts.frames >= frames && counts.audioEnergy > 0 && counts;
  });
}

for (const [codec, video] of Object.entries(codecs)) {
  test(`Chromium plays ${codec} and Opus by WHEP`, async (t) => {
    const { registry, url } = await startWebrtc(t);
    const live = new LiveStream(registry, [video, sound]);
    t.teardown(() => live.close());
    const page = await openPage(url);
    t.teardown(() => page.close());
    await page.evaluate(`playWhep('${url}/app/stream?direction=whep')`);
    const { width, lost, frames } = await watch(page, 60);
    t.is(width, 320);
    // what a page is too busy for is lost in front of it
    t.true(lost < frames / 4, `${lost} packets are lost`);
  });
}

test('the way to a browser is known by its receiver reports', async (t) => {
  const { registry, quality, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [picture, sound]);
  t.teardown(() => live.close());
  const page = await openPage(url);
  t.teardown(() => page.close());
  await page.evaluate(`playWhep('${url}/app/stream?direction=whep')`);
  const row = await until('a report is counted', () => qualitySummaries(quality.streams, 'one')[0]);
  const { count, average } = row.roundTripSeconds ?? { count: 0, average: 0 };
  t.true(count > 0 && average > 0 && average < 5, `${average}`);
  t.is(row.lossRatio?.count, count);
  t.regex(row.renditions[0]?.rendition ?? '', /^video_\d+$/);
  await page.close();
  live.close();
  t.deepEqual(quality.streams, []);
});

for (const codec of ['PCMU', 'PCMA', 'G722'] as const) {
  test(`Chromium plays H.264 and ${codec} as it was published by WHEP`, async (t) => {
    const { registry, url } = await startWebrtc(t);
    const live = new LiveStream(registry, [picture, await telephony(codec)]);
    t.teardown(() => live.close());
    const page = await openPage(url);
    t.teardown(() => page.close());
    await page.evaluate(`playWhep('${url}/app/stream?direction=whep')`);
    const { audioCodec, audioSamples } = await until('the tone is heard', async () => {
      const counts = (await page.evaluate('received()')) as Received;
      return counts.frames > 0 && counts.audioEnergy > 0.1 && counts;
    });
    t.is(audioCodec, `audio/${codec}`);
    t.true(audioSamples > 0);
  });
}

test('Chromium plays over ICE-TCP, with retransmissions, a playout delay, events and subtitles', async (t) => {
  const { registry, url } = await startWebrtc(t, {
    webrtc: { rtx: true, playoutDelay: { min: 100, max: 500 } },
    ice: [
      { address: '127.0.0.1', protocol: 'udp' },
      { address: '127.0.0.1', protocol: 'tcp' },
    ],
  });
  const live = new LiveStream(registry, [picture, sound]);
  t.teardown(() => live.close());
  const page = await openPage(url);
  t.teardown(() => page.close());
  await page.evaluate(`playWhep('${url}/app/stream?transport=tcp', undefined, true)`);
  await watch(page, 60);
  const event = eventPacket(dataTrack({ codec: 'CUE' }), 0, '{"cueType":"in"}');
  await until('an event comes by the data channel', async () => {
    live.output.write(event);
    return ((await page.evaluate('events')) as string[]).some((event) => event.includes('"type":"CUE"'));
  });
  const cue = cuePacket(subtitleTrack(), 1500, 'Hello', 'line:0');
  const shown = await until('subtitles come by the data channel', async () => {
    live.output.write(cue);
    const messages = ((await page.evaluate('events')) as string[]).map((one) => JSON.parse(one) as { type: string });
    return messages.find(({ type }) => type === 'WebVTT');
  });
  const fields = {
    label: 'English',
    language: 'en',
    duration: 1,
    settings: 'line:0',
    encoding: 'utf-8',
    data: 'Hello',
  };
  t.like(shown, { time: 1.5, ...fields });
  const protocols = await page.evaluate(`connection.getStats().then((stats) =>
    [...stats.values()].filter(({ type }) => type === 'remote-candidate').map(({ protocol }) => protocol))`);
  t.deepEqual(protocols, ['tcp']);
  const answer = (await page.evaluate('connection.remoteDescription.sdp')) as string;
  t.regex(answer, /a=rtpmap:\d+ rtx\/90000/);
});

test('the data channel of a playlist that hides subtitles has events alone', async (t) => {
  const { registry, url } = await startWebrtc(t);
  const live = new LiveStream(registry, [picture, sound]);
  t.teardown(() => live.close());
  const playlist = live.output.playlist('webrtc_default');
  if (playlist === undefined) throw new Error('no playlist');
  live.output.addPlaylist({ ...playlist, name: 'silent', fileName: 'silent', hidesSubtitles: true });
  const [silent, plain] = [await openPage(url), await openPage(url)];
  t.teardown(() => Promise.all([silent.close(), plain.close()]));
  await silent.evaluate(`playWhep('${url}/app/stream/silent?direction=whep', undefined, true)`);
  await plain.evaluate(`playWhep('${url}/app/stream?direction=whep', undefined, true)`);
  const types = async (page: Page) =>
    ((await page.evaluate('events')) as string[]).map((one) => (JSON.parse(one) as { type: string }).type);
  const event = eventPacket(dataTrack({ codec: 'CUE' }), 0, '{"cueType":"in"}');
  // the text first: where the event has come, it would have come as well
  await until('both pages have the event, and one the text', async () => {
    live.output.write(cuePacket(subtitleTrack(), 1500, 'Hello'));
    live.output.write(event);
    return (await types(silent)).includes('CUE') && (await types(plain)).includes('WebVTT');
  });
  t.false((await types(silent)).includes('WebVTT'));
});

test('OvenPlayer, unchanged, plays by signalling, hears of the rendition and leaves', async (t) => {
  const { registry, url, port } = await startWebrtc(t);
  const live = new LiveStream(registry, [picture, sound]);
  t.teardown(() => live.close());
  const page = await openPage(url);
  t.teardown(() => page.close());
  await page.addScriptTag({ path: OVENPLAYER });
  await page.evaluate(`playOven('ws://127.0.0.1:${port}/app/stream')`);
  const { width } = await watch(page, 60);
  t.is(width, 320);
  t.is(live.output.sessions.size, 1);
  t.is(await page.evaluate('window.failure'), undefined);
  await until('it says so', () => page.evaluate("player.getState() === 'playing'") as Promise<boolean>);
  t.like(await page.evaluate('player.getQualityLevels()'), [{ height: 180, width: 320, label: 'default', index: 0 }]);
  await page.evaluate('player.setCurrentQuality(0)');
  await until('the rendition is told', () => page.evaluate('window.level !== undefined') as Promise<boolean>);
  await page.evaluate('player.remove()');
  await until('the session ends', () => live.output.sessions.size === 0);
});

test('OvenPlayer comes back by itself when a media worker dies', async (t) => {
  const { registry, pool, url, port } = await startWebrtc(t);
  const live = new LiveStream(registry, [picture, sound]);
  t.teardown(() => live.close());
  const page = await openPage(url);
  t.teardown(() => page.close());
  await page.addScriptTag({ path: OVENPLAYER });
  await page.evaluate(`playOven('ws://127.0.0.1:${port}/app/stream')`);
  await watch(page, 15);
  const [before] = live.output.sessions.keys();
  const worker = pool.workers.find(({ sessions }) => sessions > 0);
  process.kill(worker?.pid as number, 'SIGKILL');
  await until('another session', () => live.output.sessions.size === 1 && !live.output.sessions.has(before as string));
  await watch(page, 15);
  t.is(await page.evaluate('window.failure'), undefined);
});

test('OvenPlayer says so when there is no such stream', async (t) => {
  const { url, port } = await startWebrtc(t);
  const page = await openPage(url);
  t.teardown(() => page.close());
  await page.addScriptTag({ path: OVENPLAYER });
  await page.evaluate(`playOven('ws://127.0.0.1:${port}/app/nothing')`);
  const failure = await until('an error', () => page.evaluate('window.failure') as Promise<string | undefined>);
  t.like(JSON.parse(failure), { code: 501, message: 'Connection with low-latency(OME) server failed.' });
});
