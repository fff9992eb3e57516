import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import {
  FRAME_BITS,
  FRAMES_PER_SECOND,
  SEGMENT_SECONDS,
  numberedMedia,
  writePackagedPast,
} from '../support/hls/long-past.ts';
import { PlayerPage, type PlayerName } from '../support/hls/player-page.ts';
import { frameOf, momentOf, seekTo, showsFrame } from '../support/hls/seek-players.ts';
import { seenByFfmpeg, seenByGStreamer, seenByVlc, startedAnew } from '../support/hls/seek-programs.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const HOURS = 3;
const SECONDS = HOURS * 3600;
/** Seconds from the beginning, each in the middle of the time of a frame. */
const MOMENTS = [10, 1801, 5402.5, 9000, SECONDS - 20].map((second) => second + 0.5 / FRAMES_PER_SECOND);
const frameAt = (second: number): number => Math.floor(second * FRAMES_PER_SECOND);
const GROUP_FRAMES = SEGMENT_SECONDS * FRAMES_PER_SECOND;

const root = await mkdtemp(join(tmpdir(), 'kiln-rewind-'));
const begun = Date.now() - SECONDS * 1000 - 60_000;
const media = await numberedMedia(SECONDS);
for (const kind of ['llhls', 'hlsv3'] as const)
  await writePackagedPast(root, { vhost: 'default', app: 'app', stream: 's', kind }, media, begun);
const dvr = `<DVR><Enable>true</Enable><TempStoragePath>${root}</TempStoragePath><MaxDuration>${2 * SECONDS}</MaxDuration></DVR>`;
const window = '<SegmentDuration>2</SegmentDuration><SegmentCount>5</SegmentCount>';
const kiln = await Kiln.start({
  llhls: `<ChunkDuration>0.5</ChunkDuration>${window}${dvr}`,
  hls: window + dvr,
});
const publisher = publishPattern(kiln.rtmpUrl('s'), { size: '320x180', rate: 10 });
const browser = await launchBrowser();

test.after.always(async () => {
  await browser.close();
  await publisher.stop();
  await kiln.stop();
  await rm(root, { recursive: true, force: true });
});

interface Form {
  readonly master: string;
  readonly players: readonly PlayerName[];
}

const FORMS: Readonly<Record<string, Form>> = {
  'LL-HLS': { master: kiln.httpUrl('/app/s/llhls.m3u8'), players: ['hls', 'ovenplayer', 'shaka'] },
  'HLS with MPEG-TS': {
    master: kiln.httpUrl('/app/s/ts:playlist.m3u8'),
    players: ['hls', 'ovenplayer', 'shaka', 'videojs'],
  },
};

/** URL of the media playlist with video, once there is one. */
async function listOf(master: string): Promise<string> {
  await until('the stream', async () => (await fetch(master)).status === 200);
  const [list = ''] = /^(?!#).*(?:_video_|medialist_).*$/m.exec(await (await fetch(master)).text()) ?? [];
  return new URL(list, master).href;
}
const text = async (url: string): Promise<string> => await (await fetch(url)).text();

for (const [form, { master, players }] of Object.entries(FORMS)) {
  for (const player of players)
    test.serial(`${player} seeks in ${HOURS} hours of ${form}, and shows the frames of that time`, async (t) => {
      const list = await listOf(master);
      const page = await PlayerPage.open(browser, player, kiln.httpUrl('/readyz'));
      t.teardown(() => page.page.close());
      await page.play(master);
      await page.plays(2, 20_000);
      await page.page.evaluate(`document.querySelector('video').pause()`);
      for (const second of MOMENTS) {
        await seekTo(page.page, player, momentOf(await text(list), begun + second * 1000));
        await showsFrame(page.page, FRAME_BITS, (frame) => frame === frameAt(second), `frame ${frameAt(second)}`);
        // and goes on to show it
        t.is(await frameOf(page.page, FRAME_BITS), frameAt(second));
      }
    });

  test.serial(`GStreamer seeks in ${HOURS} hours of ${form}, and shows the frames of that time`, async (t) => {
    await listOf(master);
    t.deepEqual(await startedAnew(() => seenByGStreamer(master, MOMENTS)), MOMENTS.map(frameAt));
  });

  test.serial(`VLC begins with the segment of a time in ${HOURS} hours of ${form}`, async (t) => {
    await listOf(master);
    for (const second of MOMENTS) {
      const [first = 0, ...more] = await startedAnew(() => seenByVlc(master, second, 4));
      t.true(first <= frameAt(second) && first > frameAt(second) - 2 * GROUP_FRAMES, `${first} for ${second}`);
      t.is(more[0], first + 1);
    }
  });

  test.serial(`ffmpeg begins with a segment of ${HOURS} hours of ${form}`, async (t) => {
    const url = await listOf(master);
    const list = await text(url);
    const segments = list.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    for (const second of MOMENTS) {
      const { segment, into } = momentOf(list, begun + second * 1000);
      const options = ['-live_start_index', `${segments.indexOf(segment)}`];
      const first = frameAt(second - into + 0.1);
      t.deepEqual(await seenByFfmpeg(url, options, 1), [first, first + 1]);
    }
  });
}

test.serial('players start at a time that they ask for', async (t) => {
  const [, , second = 0] = MOMENTS;
  for (const { master } of Object.values(FORMS)) {
    for (const player of ['hls', 'ovenplayer', 'shaka'] as const) {
      await listOf(master);
      const page = await PlayerPage.open(browser, player, kiln.httpUrl('/readyz'));
      t.teardown(() => page.page.close());
      await page.play(`${master}?start=${new Date(begun + second * 1000).toISOString()}`);
      await page.plays(1, 20_000);
      const frame = (await until('a frame', () => frameOf(page.page, FRAME_BITS))) ?? 0;
      // it has played on, and its playlist may have grown by a segment since the master playlist was made
      t.true(frame >= frameAt(second) - 1 && frame <= frameAt(second + 30), `${player}: ${frame} for ${second}`);
      await page.page.close();
    }
  }
});

test.serial('ffmpeg reads all of it when it has ended, and seeks in MPEG-TS', async (t) => {
  const { status } = await kiln.api('/v1/vhosts/default/apps/app/streams/s:concludeHlsLive', 'POST', {});
  t.is(status, 200);
  const [ll = '', ts = ''] = await Promise.all(Object.values(FORMS).map(({ master }) => listOf(master)));
  for (const url of [ll, ts]) await until('the end', async () => (await text(url)).includes('#EXT-X-ENDLIST'));
  for (const second of MOMENTS) t.is((await seenByFfmpeg(ts, ['-ss', `${second}`], 1))[0], frameAt(second) + 1);
  // it cannot seek in fragmented MP4 over HLS: 5.1 reads its own to the end, too, and finds no frame
  const frames = await seenByFfmpeg(ll, [], SECONDS);
  t.deepEqual(frames.length, SECONDS * FRAMES_PER_SECOND);
  t.is(
    frames.findIndex((frame, index) => frame !== index),
    -1,
  );
});
