import type { AddressInfo } from 'node:net';
import test from 'ava';
import { VideoIntake } from '../../src/providers/intake/video-intake.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { demuxTs, encodeTs, PATTERN } from '../support/mpegts/ts-media.ts';
import { until } from '../support/time/until.ts';

const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const hls = new Hls({ lowLatencyMode: true, maxLiveSyncPlaybackRate: 2 });
  watchHls(hls);
  hls.loadSource('/app/stream/llhls.m3u8');
  hls.attachMedia(document.getElementById('video'));
</script>`;
const STEP = 3600;

/** A second of video whose sets have an id of their own. */
async function clip(id: number): Promise<Buffer[]> {
  const coding = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-bf', '0', '-g', '25'];
  const { units } = demuxTs(await encodeTs([...PATTERN, ...coding, '-x264-params', `sps-id=${id}`], { seconds: 1 }));
  return [...units.values()].flat().map(({ data }) => data);
}

test('hls.js in Chromium plays on where parameter sets begin to come in band', async (t) => {
  const [steady, ...others] = await Promise.all([0, 1, 2, 3].map(clip));
  const { app, goLive, get, children } = await openLlhls(t, {
    llhls: { segmentDuration: 2, segmentCount: 10, chunkDuration: 0.5 },
  });
  app.get('/page', (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/hls.js', (_request, reply) => reply.type('text/javascript').send(hlsScripts()));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const source = new VideoIntake({ id: 0, codec: 'H264' });
  const unitAt = (i: number) => {
    // the first seconds all have the same ones
    const second = Math.floor(i / 25);
    const from = second < 7 ? steady : others[second % 3];
    return source.frame(from?.[i % 25] as Buffer, i * STEP, 0);
  };
  const first = unitAt(0);
  const { output } = goLive([{ ...first.track, bypass: true }]);
  const start = performance.now();
  let next = 0;
  const timer = setInterval(() => {
    for (; next * 40 <= performance.now() - start; next++) {
      const { track, data, key } = unitAt(next);
      if (track !== output.tracks[0]) output.setTracks([track]);
      output.write({ track, data, key, dts: next * STEP, pts: next * STEP, duration: 0 });
    }
  }, 10);
  t.teardown(() => clearInterval(timer));
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await until('two segments', async () => (await get((await children())[0] ?? '/')).body.split('#EXTINF').length > 2);
  await page.goto(`http://127.0.0.1:${port}/page`);
  const played = () => page.evaluate("document.getElementById('video').currentTime") as Promise<number>;
  await until('it is past the change', async () => (await played()) > 14, 60_000);
  const list = (await get((await children())[0] ?? '/')).body;
  t.is(list.split('#EXT-X-MAP').length, 3);
  t.false(list.includes('#EXT-X-DISCONTINUITY'));
  t.deepEqual(await page.evaluate('window.faults'), []);
});
