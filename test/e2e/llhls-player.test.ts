import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import type { MediaTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { encode } from '../support/rtmp/flv-source.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { until } from '../support/time/until.ts';

const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const video = document.getElementById('video');
  // as it comes it would stay behind for good when the machine was busy for a second
  const hls = new Hls({ lowLatencyMode: true, maxLiveSyncPlaybackRate: 2 });
  watchHls(hls);
  hls.loadSource('/app/stream/llhls.m3u8');
  hls.attachMedia(video);
</script>`;

const CLIP_SECONDS = 8;

/** Writes one clip behind the other, each packet when its time has come, until stopped. @param clip asked for each */
function play(output: OutputStream, clip: () => readonly Packet[]): () => void {
  const start = performance.now();
  let packets = clip();
  let next = 0;
  let begin = 0;
  const timer = setInterval(() => {
    const now = (performance.now() - start) / 1000;
    for (;;) {
      const packet = packets[next];
      if (packet === undefined) {
        [packets, next, begin] = [clip(), 0, begin + CLIP_SECONDS];
        continue;
      }
      const { den } = (packet.track as MediaTrack).timebase;
      if (begin + packet.dts / den > now) break;
      const offset = begin * den;
      output.write({ ...packet, dts: packet.dts + offset, pts: packet.pts + offset });
      next++;
    }
  }, 5);
  return () => clearInterval(timer);
}

test('hls.js in Chromium plays at the live edge by parts, through a change of configuration', async (t) => {
  const coding = [
    '-c:v',
    'libx264',
    '-preset',
    'veryfast',
    '-bf',
    '0',
    '-g',
    '30',
    '-sc_threshold',
    '0',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
  ];
  const source = (size: string) =>
    encode([
      '-f',
      'lavfi',
      '-i',
      `testsrc2=size=${size}:rate=30`,
      '-f',
      'lavfi',
      '-i',
      'sine=sample_rate=48000',
      ...coding,
      '-t',
      `${CLIP_SECONDS}`,
    ]);
  const small = source('320x180');
  const large = source('640x360');
  const { app, goLive, get, children } = await openLlhls(t, {
    llhls: { segmentDuration: 2, segmentCount: 10, chunkDuration: 0.5 },
  });
  app.get('/page', (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/hls.js', (_request, reply) => reply.type('text/javascript').send(hlsScripts()));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const browser = await launchBrowser();
  const page = await browser.newPage();
  const { output } = goLive(small.tracks);
  let clip = small.packets;
  const stop = play(output, () => clip);
  t.teardown(async () => {
    stop();
    await browser.close();
  });
  // a player that comes with the stream has too little to hold back from the edge
  await until('two segments', async () => (await get((await children())[1] ?? '/')).body.split('#EXTINF').length > 2);
  await page.goto(`http://127.0.0.1:${port}/page`);
  await page.waitForFunction('video.currentTime > 0 && video.videoWidth === 320');
  clip = large.packets;
  await page.waitForFunction('video.videoWidth === 640');
  const parts = await page.evaluate(
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/part_')).length",
  );
  t.true(Number(parts) > 0);
  await page.waitForFunction('hls.latency > 0 && hls.latency < 3');
  const own = await page.evaluate('faults');
  t.deepEqual(own, []);
});
