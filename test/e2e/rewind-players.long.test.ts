import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { FRAME_BITS, FRAMES_PER_SECOND, SEGMENT_SECONDS, writeLongPast } from '../support/hls/long-past.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);

const HOURS = 3;
const SECONDS = HOURS * 3600;
/** Seconds from the beginning, each in the middle of the time of a frame. */
const MOMENTS = [10, 1801, 5402.5, 9000, SECONDS - 20].map((second) => second + 0.5 / FRAMES_PER_SECOND);
const frameAt = (second: number): number => Math.floor(second * FRAMES_PER_SECOND);

const root = await mkdtemp(join(tmpdir(), 'kiln-rewind-'));
const begun = Date.now() - SECONDS * 1000 - 10_000;
await writeLongPast(root, { vhost: 'default', app: 'app', stream: 's', kind: 'llhls' }, SECONDS, begun);
const dvr = `<DVR><Enable>true</Enable><TempStoragePath>${root}</TempStoragePath><MaxDuration>${2 * SECONDS}</MaxDuration></DVR>`;
const kiln = await Kiln.start({
  llhls: `<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>5</SegmentCount>${dvr}`,
});
const publisher = publishPattern(kiln.rtmpUrl('s'), { size: '320x180', rate: 10 });
const browser = await launchBrowser();
const MASTER = kiln.httpUrl('/app/s/llhls.m3u8');

test.after.always(async () => {
  await browser.close();
  await publisher.stop();
  await kiln.stop();
  await rm(root, { recursive: true, force: true });
});

/** Reads the number of the frame that a page shows. */
const READ = `(() => {
  const video = document.querySelector('video');
  const canvas = new OffscreenCanvas(${FRAME_BITS}, 3);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(video, 0, 0, ${FRAME_BITS}, 3);
  const { data } = context.getImageData(0, 1, ${FRAME_BITS}, 1);
  let frame = 0;
  for (let bit = 0; bit < ${FRAME_BITS}; bit++) if (data[bit * 4] > 128) frame += 2 ** bit;
  return { frame, isThere: !video.seeking && video.readyState >= 2 };
})()`;

/** Brings a player to a time: hls.js by the dates of the playlist, Shaka Player, which knows only the first one, by the segments. */
const SEEK = {
  hls: (second: number) => `(() => {
    const { fragments } = window.hls.levels[window.hls.currentLevel < 0 ? 0 : window.hls.currentLevel].details;
    const fragment = fragments.findLast(({ programDateTime }) => programDateTime <= ${begun + second * 1000});
    document.querySelector('video').currentTime = fragment.start + (${begun + second * 1000} - fragment.programDateTime) / 1000;
  })()`,
  shaka: (second: number) => `(() => {
    const { segmentIndex } = window.shakaPlayer.getManifest().variants[0].video;
    const segments = Array.from({ length: ${SECONDS / SEGMENT_SECONDS} }, (_, index) => segmentIndex.get(index));
    const msn = ${Math.floor(second / SEGMENT_SECONDS)};
    const segment = segments.find((one) => one?.getUris()[0].includes('/seg_0_' + msn + '_'));
    document.querySelector('video').currentTime = segment.getStartTime() + ${second % SEGMENT_SECONDS};
  })()`,
};

for (const player of ['hls', 'shaka'] as const)
  test.serial(`${player} seeks in a playlist of ${HOURS} hours, and shows the frames of that time`, async (t) => {
    await until('the stream', async () => (await fetch(MASTER)).status === 200);
    const page = await PlayerPage.open(browser, player, kiln.httpUrl('/readyz'));
    t.teardown(() => page.page.close());
    await page.play(MASTER);
    await page.plays(2, 20_000);
    await page.page.evaluate(`document.querySelector('video').pause()`);
    for (const second of MOMENTS) {
      await page.page.evaluate(SEEK[player](second));
      const seen: unknown[] = [];
      await until(
        `frame ${frameAt(second)}`,
        async () => {
          const { frame, isThere } = (await page.page.evaluate(READ)) as { frame: number; isThere: boolean };
          if (seen.at(-1) !== frame) seen.push(frame);
          return isThere && frame === frameAt(second);
        },
        20_000,
      ).catch((error: Error) => t.fail(`${error.message}: ${seen.join()}`));
      t.log(`${second}: ${seen.join()}`);
    }
    t.pass();
  });

test.serial('players start at a time that they ask for', async (t) => {
  for (const player of ['hls', 'shaka'] as const) {
    const page = await PlayerPage.open(browser, player, kiln.httpUrl('/readyz'));
    t.teardown(() => page.page.close());
    const [, , second = 0] = MOMENTS;
    await page.play(`${MASTER}?start=${new Date(begun + second * 1000).toISOString()}`);
    await page.plays(1, 20_000);
    const { frame } = (await page.page.evaluate(READ)) as { frame: number };
    t.log(player, frame, frameAt(second));
    // it has played on, and its playlist may have grown by a segment since the master playlist was made
    t.true(frame >= frameAt(second) - 1 && frame <= frameAt(second + 20), `${player}: ${frame} for ${frameAt(second)}`);
  }
});

// it cannot seek in fragmented MP4 over HLS: 5.1 reads its own to the end, too, and finds no frame
test.serial('ffmpeg reads all of it when it has ended', async (t) => {
  const { status } = await kiln.api('/v1/vhosts/default/apps/app/streams/s:concludeHlsLive', 'POST', {});
  t.is(status, 200);
  const [, list = ''] = /\n(.*_video_.*\.m3u8.*)/.exec(await (await fetch(MASTER)).text()) ?? [];
  const url = new URL(list, MASTER).href;
  await until('the end', async () => (await (await fetch(url)).text()).includes('#EXT-X-ENDLIST'));
  const filter = `crop=iw:ih/2:0:ih/4,scale=${FRAME_BITS}:1:flags=area,format=gray`;
  const output = ['-fps_mode', 'passthrough', '-t', `${SECONDS}`, '-vf', filter, '-f', 'rawvideo', 'pipe:1'];
  const input = ['-nostdin', '-v', 'fatal', '-i', url];
  const { stdout } = await run('ffmpeg', [...input, ...output], { encoding: 'buffer', maxBuffer: 2 ** 24 });
  t.is(stdout.length, SECONDS * FRAMES_PER_SECOND * FRAME_BITS);
  for (let frame = 0; frame < SECONDS * FRAMES_PER_SECOND; frame++) {
    const bits = stdout.subarray(frame * FRAME_BITS, (frame + 1) * FRAME_BITS);
    const seen = bits.reduce((sum, level, bit) => (level > 128 ? sum + 2 ** bit : sum), 0);
    if (seen !== frame) return t.fail(`frame ${seen} instead of ${frame}`);
  }
});
