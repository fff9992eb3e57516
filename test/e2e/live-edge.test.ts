import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { ageOf, publishClock, watchAges } from '../support/media/clock-picture.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { LlhlsPlayer } from '../support/load/llhls-player.ts';
import { long } from '../support/runner/long.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';

const kiln = await Kiln.start({
  llhls: '<ChunkDuration>0.2</ChunkDuration><SegmentDuration>2</SegmentDuration>',
  iceAddress: '*',
});
test.after.always(() => kiln.stop());

const PICTURES = { ntsc: { rate: 29.97, gop: 60 }, pal: { rate: 25, gop: 25 } };
for (const [name, picture] of Object.entries(PICTURES)) {
  (name === 'ntsc' ? test.serial : long)(`who follows preload hints meets hardly a 404: ${name}`, async (t) => {
    const publisher = publishPattern(kiln.rtmpUrl(name), { size: '320x180', ...picture });
    t.teardown(() => publisher.stop());
    const player = await LlhlsPlayer.start({ port: kiln.ports.http, master: `/app/${name}/llhls.m3u8`, hints: true });
    t.teardown(() => player.close());
    // about 5 seconds of audio and video
    await until('key frames have come twice', () => player.hinted >= 50);
    [player.hinted, player.missed] = [0, 0];
    await until('many hints', () => player.hinted >= 150);
    t.log(`${player.missed} of ${player.hinted} hinted parts did not come`);
    t.true(player.missed <= player.hinted * 0.05);
    t.deepEqual(player.failures, []);
  });
}

interface Dated {
  /** By media sequence number, in milliseconds since the epoch. */
  readonly segments: ReadonlyMap<number, number>;
  readonly newest: { readonly msn: number; readonly part: number; readonly ends: number };
}

/** The dates of a chunklist: of its segments, and of where its newest part ends. */
function datesOf(text: string): Dated {
  let msn = Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
  let [date, part, elapsed] = [0, -1, 0];
  const segments = new Map<number, number>();
  let newest = { msn, part, ends: 0 };
  for (const line of text.split('\n')) {
    const [, at] = /^#EXT-X-PROGRAM-DATE-TIME:(.*)/.exec(line) ?? [];
    const [, seconds] = /^#EXT-X-PART:DURATION=([\d.]+)/.exec(line) ?? [];
    if (at !== undefined) {
      date = Date.parse(at);
      segments.set(msn, date);
      [part, elapsed] = [-1, 0];
    } else if (seconds !== undefined) {
      elapsed += Number(seconds);
      newest = { msn, part: ++part, ends: date + elapsed * 1000 };
    } else if (/^[^#]/.test(line)) {
      msn++;
    }
  }
  return { segments, newest };
}

const FRAME_MS = 1000 / 30;

test('segments are dated by when they came, from the first on', async (t) => {
  const publisher = publishPattern(kiln.rtmpUrl('dated'), { size: '320x180', gop: 60 });
  t.teardown(() => publisher.stop());
  const master = kiln.httpUrl('/app/dated/llhls.m3u8');
  const text = await until('the master playlist', async () => {
    const answer = await fetch(master);
    return answer.status === 200 && answer.text();
  });
  const uris = urisOf(text, master);
  const dates = uris.map(async (uri) => {
    const known = new Map<number, number>();
    const early: number[] = [];
    let query = '';
    while (early.length < 40) {
      const answer = await fetch(uri + query);
      const { segments, newest } = datesOf(await answer.text());
      // its last frame came at its time, which is that of a frame before the end
      const sinceLast = Date.now() - (newest.ends - FRAME_MS);
      t.true(sinceLast >= -60, `${sinceLast}`);
      early.push(sinceLast);
      for (const [msn, date] of segments) {
        t.is(known.get(msn) ?? date, date);
        known.set(msn, date);
      }
      query = `?_HLS_msn=${newest.msn}&_HLS_part=${newest.part + 1}`;
    }
    // what makes them later is the machine: the quickest tell
    t.true(Math.min(...early.slice(15)) < 400, `${early}`);
    return known;
  });
  const [one, other] = await Promise.all(dates);
  for (const [msn, date] of one ?? []) t.true(Math.abs(date - (other?.get(msn) ?? date)) <= 50);
});

/** Milliseconds of a figure on the page; undefined for none. */
function milliseconds(figure: string | null): number | undefined {
  const [, value, unit] = /^([\d.]+) (ms|s)$/.exec(figure ?? '') ?? [];
  return value === undefined ? undefined : Number(value) * (unit === 's' ? 1000 : 1);
}

test('the latency that the page shows is the age of the picture, by LL-HLS and by WebRTC', async (t) => {
  const publisher = publishClock(kiln.rtmpUrl('clock'));
  t.teardown(() => publisher.stop());
  await kiln.liveStream('clock');
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await watchAges(page);
  await page.goto(kiln.httpUrl('/app/clock?mode=both'));
  for (const title of ['LL-HLS', 'WebRTC']) {
    const panel = page.locator('.panel', { has: page.getByRole('heading', { name: title }) });
    const errors: number[] = [];
    let shown: number | undefined;
    const median = await until(`the latency of ${title} is that of its picture`, async () => {
      const figure = milliseconds(await panel.locator('.figures dd').first().textContent());
      const age = await ageOf(page, title);
      if (figure === undefined || figure === shown || age === undefined) return undefined;
      shown = figure;
      errors.push(Math.abs(age - figure));
      const [, , middle = Infinity] = errors.slice(-5).sort((one, other) => one - other);
      return errors.length >= 5 && middle <= 100 && { middle };
    });
    t.log(
      title,
      shown,
      'ms, by',
      Math.round(median.middle),
      'ms off in the middle of',
      errors.map(Math.round).join(' '),
    );
    t.true(median.middle <= 100);
  }
});
