import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/stream.ts';
import type { MediaTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/browser.ts';
import { encode } from '../support/flv-source.ts';
import { openLlhls } from '../support/llhls.ts';

const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const errors = [];
  const video = document.getElementById('video');
  const hls = new Hls({ lowLatencyMode: true });
  hls.on(Hls.Events.ERROR, (event, { type, details, fatal }) => errors.push({ type, details, fatal }));
  hls.loadSource('/app/stream/llhls.m3u8');
  hls.attachMedia(video);
</script>`;

/** Writes packets when their time has come, until stopped. */
function play(output: OutputStream, packets: readonly Packet[]): () => void {
  const start = performance.now();
  let next = 0;
  const timer = setInterval(() => {
    const now = (performance.now() - start) / 1000;
    for (let packet = packets[next]; packet !== undefined; packet = packets[++next]) {
      if (packet.dts / (packet.track as MediaTrack).timebase.den > now) break;
      output.write(packet);
    }
  }, 5);
  return () => clearInterval(timer);
}

test('hls.js in Chromium plays at the live edge by parts, through a change of configuration', async (t) => {
  const coding = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '0', '-g', '30', '-sc_threshold', '0', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  const source = (size: string) => encode([
    '-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=30`, '-f', 'lavfi', '-i', 'sine=sample_rate=48000', ...coding, '-t', '8',
  ]);
  const small = source('320x180');
  const large = source('640x360');
  const later = large.packets.map((packet) => {
    const ticks = 8 * (packet.track as MediaTrack).timebase.den;
    return { ...packet, dts: packet.dts + ticks, pts: packet.pts + ticks };
  });
  const { app, goLive, get, children } = await openLlhls(t, { llhls: { segmentDuration: 2, segmentCount: 10, chunkDuration: 0.5 } });
  app.get('/page', (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/hls.js', (_request, reply) => reply.type('text/javascript').send(readFileSync('node_modules/hls.js/dist/hls.min.js')));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const { output } = goLive(small.tracks);
  const stop = play(output, [...small.packets, ...later]);
  const browser = await launchBrowser();
  t.teardown(async () => {
    stop();
    await browser.close();
  });
  // a player that comes with the stream has too little to hold back from the edge
  const ready = async () => (await get((await children())[1] ?? '/')).body.split('#EXTINF').length > 2;
  while (!(await ready())) await new Promise((resolve) => setTimeout(resolve, 100));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/page`);
  await page.waitForFunction('video.currentTime > 0 && video.videoWidth === 320', undefined, { timeout: 20_000 });
  await page.waitForFunction('video.videoWidth === 640', undefined, { timeout: 20_000 });
  const parts = await page.evaluate("performance.getEntriesByType('resource').filter(({ name }) => name.includes('/part_')).length");
  t.true(Number(parts) > 0);
  await page.waitForFunction('hls.latency > 0 && hls.latency < 3', undefined, { timeout: 20_000 });
  t.deepEqual(await page.evaluate('errors'), []);
});
