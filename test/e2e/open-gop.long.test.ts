import { createRequire } from 'node:module';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { FFMPEG7, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const HLS_JS = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');

/** Publishes GOPs of 2 s whose key frames are recovery points, but for those that the arguments make IDR pictures. */
function publish(url: string, args: readonly string[]): Program {
  const coding =
    '-c:v libx264 -preset veryfast -g 50 -keyint_min 50 -sc_threshold 0 -bf 3 -pix_fmt yuv420p -x264-params open-gop=1';
  const input = '-nostdin -v error -re -f lavfi -i testsrc2=r=25:s=320x180 -f lavfi -i sine=1000:r=48000';
  return new Program(FFMPEG7, [...`${input} ${coding}`.split(' '), ...args, '-c:a', 'aac', '-f', 'flv', url]);
}

test('Chromium that joins a stream of open GOPs late plays where it has IDR pictures; where not, an alert says why', async (t) => {
  const kiln = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>' });
  t.teardown(() => kiln.stop());
  const open = publish(kiln.rtmpUrl('open'), []);
  t.teardown(() => open.stop());
  const mixed = publish(kiln.rtmpUrl('mixed'), ['-forced-idr', '1', '-force_key_frames', 'expr:gte(t,n_forced*4)']);
  t.teardown(() => mixed.stop());
  const master = async (stream: string) => (await fetch(kiln.httpUrl(`/app/${stream}/llhls.m3u8`))).text();
  const video = async (stream: string) => (await kiln.stream(stream)).body.response.input.tracks[0]?.video;
  await kiln.liveStream('mixed');
  await until('the alert', () => /INGRESS_OPEN_GOP.*app\/open/.test(kiln.log));
  t.is((await video('open'))?.keyFrames, 'open');
  await until('segments that begin at recovery points', async () => {
    const text = await master('open');
    return text.includes('#EXTM3U') && !text.includes('INDEPENDENT-SEGMENTS');
  });
  t.is((await video('mixed'))?.keyFrames, undefined);
  t.true((await master('mixed')).includes('#EXT-X-INDEPENDENT-SEGMENTS'));
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(kiln.httpUrl('/app/nothing/x.m3u8'));
  await page.addScriptTag({ path: HLS_JS });
  await page.evaluate(`
    document.body.innerHTML = '<video muted autoplay></video>';
    const hls = new Hls();
    hls.loadSource('/app/mixed/llhls.m3u8');
    hls.attachMedia(document.querySelector('video'));
  `);
  const frames = () =>
    page.evaluate<number>(`document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames`);
  await until('pictures', async () => (await frames()) > 50);
  t.false(/INGRESS_OPEN_GOP.*app\/mixed/.test(kiln.log));
});
