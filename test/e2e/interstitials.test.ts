import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { FileServer } from '../support/hls/file-server.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const AD_SECONDS = 4;
const AD_WIDTH = 96;
const SECOND = 1000;

/** An interstitial as hls.js played it. Times in milliseconds since the epoch. */
interface Played {
  readonly id: string;
  readonly start: number;
  /** What the stream showed when it began, and when the stream went on. */
  readonly left: number;
  readonly back?: number;
  readonly widths: readonly number[];
}

const WATCH = `
  window.shownAds = [];
  window.video = document.querySelector('video');
  const { Events } = Hls;
  hls.on(Events.INTERSTITIAL_STARTED, (_, { event }) =>
    shownAds.push({ id: event.identifier, start: event.startDate.getTime(), left: hls.playingDate.getTime(), widths: [] }));
  setInterval(() => {
    const { playingItem } = hls.interstitialsManager ?? {};
    const one = playingItem?.event && shownAds.at(-1);
    if (one && video.videoWidth > 0 && !one.widths.includes(video.videoWidth)) one.widths.push(video.videoWidth);
  }, 50);
  hls.on(Events.INTERSTITIALS_PRIMARY_RESUMED, () =>
    video.addEventListener('timeupdate', () => (shownAds.at(-1).back ??= hls.playingDate.getTime()), { once: true }));`;

test('hls.js shows an interstitial when it begins, and the asset list of a break that a splice begins', async (t) => {
  const ads = await FileServer.start(t, ({ url }, response) => {
    response.setHeader('access-control-allow-origin', '*');
    if (url !== '/') return;
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>');
    return true;
  });
  await ads.separate('ad', AD_SECONDS, '-hls_segment_type', 'fmp4');
  ads.write('list.json', JSON.stringify({ ASSETS: [{ URI: ads.url('ad.m3u8'), DURATION: AD_SECONDS }] }));
  const list = ads.url('list.json?event=${EventId}&amp;ms=${DurationMs}&amp;stream=${AppName}/${StreamName}');
  const kiln = await Kiln.start({
    llhls: `<SegmentDuration>2</SegmentDuration><CrossDomains><Url>*</Url></CrossDomains>
      <Interstitials><AssetList>${list}</AssetList><Snap>OUT</Snap><Restrict>SKIP</Restrict><Restrict>JUMP</Restrict></Interstitials>`,
  });
  t.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('live'));
  t.teardown(() => publisher.stop());
  await until('it plays', async () => (await fetch(kiln.httpUrl('/app/live/llhls.m3u8'))).status === 200);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const player = await PlayerPage.open(browser, 'hls', ads.url(''));
  // appended to the stream's own media, an interstitial does not always show: hls.js 1.7.4 at low latency
  await player.play(kiln.httpUrl('/app/live/llhls.m3u8'), { interstitialAppendInPlace: false });
  const { page } = player;
  await page.evaluate(WATCH);
  await page.waitForFunction('video.currentTime > 0');
  const played = (isIt: (id: string) => boolean) =>
    until('it was played', async () =>
      ((await page.evaluate('shownAds')) as Played[]).find((one) => one.back !== undefined && isIt(one.id)),
    );
  const send = (eventFormat: string, event: object) =>
    kiln.api('/v1/vhosts/default/apps/app/streams/live:sendEvent', 'POST', { eventFormat, events: [event] });
  const ad = {
    id: 'first',
    assetUri: ads.url('ad.m3u8'),
    duration: AD_SECONDS * 1000,
    resumeOffset: AD_SECONDS * 1000,
    startOffset: 3000,
  };
  t.is((await send('interstitial', ad)).status, 200);
  const { start, left, back, widths } = await played((id) => id === 'interstitial-first');
  t.is(widths.at(-1), AD_WIDTH);
  t.true(left > start - SECOND && left < start + ad.duration, `the stream showed ${left - start} ms after the begin`);
  t.true(Number(back) > start + ad.duration - SECOND, `the stream went on ${Number(back) - start} ms after it`);

  const asked = () => ads.asked.filter((path) => path.includes('list.json'));
  t.deepEqual(asked(), []);
  t.is((await send('scte35', { id: 5, type: 'out', duration: AD_SECONDS * 1000, autoReturn: true })).status, 200);
  // nobody announced it: players show it when they have its list
  t.is((await played((id) => id !== 'interstitial-first')).widths.at(-1), AD_WIDTH);
  t.true(asked().length > 0 && asked().every((path) => /list\.json\?event=5&ms=4000&stream=app\/live/.test(path)));
});
