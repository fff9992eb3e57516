import { join } from 'node:path';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { Kiln } from '../support/server/kiln.ts';
import { mediaFolder } from '../support/media/media-files.ts';
import { writeNumbered } from '../support/media/numbered-files.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { until } from '../support/time/until.ts';

const LLHLS = '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount>';
/** Small and slow: two pages decode and draw it at once. */
const RATE = 10;
const FRAMES = 20;
/** Changes of items that each player has to go through. */
const CHANGES = 20;
/** Far beyond what a viewer would bear: this machine may be busy. */
const MOST_STALL_MS = 20_000;
/** The first two have the same parameters; the third has another size, profile and order of frames. */
const LARGE = ['-profile:v', 'high', '-preset', 'veryfast', '-bf', '2'];
const ITEMS = [{}, {}, { size: '640x360', video: LARGE }];

const { folder, remove } = await mediaFolder();
for (const [item, shape] of ITEMS.entries())
  await writeNumbered(join(folder, `${item}.mp4`), { item, frames: FRAMES, rate: RATE, gop: RATE, ...shape });
const kiln = await Kiln.start({
  llhls: LLHLS,
  providers: `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>`,
});
const browser = await launchBrowser();
test.after.always(async () => {
  await browser.close();
  await kiln.stop();
  await remove();
});

test(`hls.js and OvenPlayer play a channel across ${CHANGES} changes of items`, async (t) => {
  const made = await kiln.api('/v1/vhosts/default/apps/app/scheduledChannels', 'POST', {
    stream: { name: 'tv', bypassTranscoder: true },
    programs: [
      {
        ...{ name: 'all day', scheduled: '2026-01-01T00:00:00Z', repeat: true },
        items: ITEMS.map((_, item) => ({ url: `file://${item}.mp4` })),
      },
    ],
  });
  t.is(made.status, 201);
  const url = kiln.httpUrl('/app/tv/llhls.m3u8');
  await until('it plays', async () => (await fetch(url)).status === 200);
  const players = ['hls', 'ovenplayer'] as const;
  const pages = await Promise.all(players.map((player) => PlayerPage.open(browser, player, kiln.httpUrl('/readyz'))));
  for (const page of pages) await page.play(url);
  const seconds = (CHANGES * FRAMES) / RATE;
  await t.notThrowsAsync(Promise.all(pages.map((page) => page.plays(seconds, MOST_STALL_MS))));
});
