import test from 'ava';
import { launchBrowser } from '../../support/hls/browser.ts';
import { PlayerPage } from '../../support/hls/player-page.ts';
import { codedPackets, tracksOf } from '../../support/media/coded-packets.ts';
import { cuePacket, interleaved, subtitleTrack } from '../../support/media/packets.ts';
import { NOON, openPlayback } from '../../support/playback/recorded.ts';
import { recordedBytes } from '../../support/recording/recorded-mp4.ts';
import { until } from '../../support/time/until.ts';

const SECONDS = 8;
/** Texts of two files, each with its time in seconds from the beginning of the file. */
const FILES = [
  [
    [1, 2.4, 'one'],
    [3, 10, 'two'],
  ],
  [[1.5, 3, 'three']],
] as const;
/** Times of the clip, not near those where the text changes, and what is shown then. */
const SHOWN = [
  [0.5, ''],
  [1.7, 'one'],
  [2.7, ''],
  [5.5, 'two'],
  [7.5, 'two'],
  [8.7, ''],
  [10.2, 'three'],
  [11.5, ''],
  [4, 'two'],
] as const;

test('hls.js shows the subtitles of two recordings at their times', async (t) => {
  const { app, record } = await openPlayback(t);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const media = codedPackets({ video: { codec: 'H264', gop: 50 }, audio: 'AAC', seconds: SECONDS });
  const subtitles = subtitleTrack({ isDefault: true });
  const begin = Math.min(...media.map(({ pts, track }) => pts / track.timebase.den));
  for (const [index, texts] of FILES.entries()) {
    const cues = texts.map(([from, to, text]) => {
      return { ...cuePacket(subtitles, (begin + from) * 1000, text), duration: (to - from) * 1000 };
    });
    const second = index * SECONDS;
    const times = { recordTime: SECONDS * 1000, finishTime: NOON + (second + SECONDS) * 1000 };
    await record(second, times, recordedBytes([...tracksOf(media), subtitles], interleaved(media, cues)));
  }
  app.get('/page', (_request, reply) => reply.type('text/html').send('<!doctype html>'));
  const origin = (await app.listen({ port: 0, host: '127.0.0.1' })).replace('127.0.0.1', 'localhost');
  const player = await PlayerPage.open(browser, 'hls', `${origin}/page`);
  const { page } = player;
  await player.play(`${origin}/app/stream/recorded.m3u8?start=2026-03-05T12:00:00Z&duration=60`);
  await until('media', () => page.evaluate<boolean>(`document.querySelector('video').readyState >= 2`));
  await page.evaluate(`document.querySelector('video').pause()`);
  await page.evaluate('hls.subtitleTrack = 0; hls.subtitleDisplay = true;');
  for (const [second, text] of SHOWN) {
    await page.evaluate(`document.querySelector('video').currentTime = ${second}`);
    await until(`"${text}" at ${second} s`, async () => {
      const shown = await page.evaluate(`(() => {
        const video = document.querySelector('video');
        const texts = [...video.textTracks].flatMap(({ activeCues }) => [...(activeCues ?? [])].map(({ text }) => text));
        return !video.seeking && video.readyState >= 2 && [...new Set(texts)].join();
      })()`);
      return shown === text;
    });
  }
  t.deepEqual(await page.evaluate('faults'), []);
});
