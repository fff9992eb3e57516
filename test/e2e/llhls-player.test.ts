import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Page } from 'playwright-core';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import type { MediaTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { encode } from '../support/rtmp/flv-source.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { until } from '../support/time/until.ts';
import { shared } from '../support/runner/shared.ts';

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

/** A test picture and a tone of CLIP_SECONDS. */
function source(size: string) {
  const inputs = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=30`, '-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const video = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '0', '-g', '30', '-sc_threshold', '0'];
  return encode([...inputs, ...video, '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-t', `${CLIP_SECONDS}`]);
}

const teardown = new Teardown();
/** Plays with hls.js what is published. */
let page: Page;
let clip: readonly Packet[];
let large: readonly Packet[];

test.before(async () => {
  const launching = launchBrowser();
  teardown.teardown(async () => (await launching).close());
  // these block, and the browser starts meanwhile
  const small = source('320x180');
  large = source('640x360').packets;
  const { app, goLive, get, children } = await openLlhls(teardown, {
    llhls: { segmentDuration: 2, segmentCount: 10, chunkDuration: 0.5 },
  });
  app.get('/page', (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/hls.js', (_request, reply) => reply.type('text/javascript').send(hlsScripts()));
  await app.listen({ host: '127.0.0.1', port: 0 });
  clip = small.packets;
  teardown.teardown(play(goLive(small.tracks).output, () => clip));
  page = await (await launching).newPage();
  // a player that comes with the stream has too little to hold back from the edge
  await until('two segments', async () => (await get((await children())[1] ?? '/')).body.split('#EXTINF').length > 2);
  await page.goto(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/page`);
});
test.after.always(() => teardown.run());

const plays = shared(() => page.waitForFunction('video.currentTime > 0 && video.videoWidth === 320'));
/** Changes the size of the picture, and waits until the player shows it. */
const change = shared(async () => {
  await plays();
  clip = large;
  await page.waitForFunction('video.videoWidth === 640');
});

test.serial('hls.js in Chromium plays LL-HLS', async (t) => {
  await t.notThrowsAsync(plays);
});

test.serial('hls.js in Chromium plays on when the size of the picture changes', async (t) => {
  await t.notThrowsAsync(change);
});

test.serial('hls.js in Chromium plays at the live edge by parts, through a change of configuration', async (t) => {
  await change();
  const parts = await page.evaluate(
    "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/part_')).length",
  );
  t.true(Number(parts) > 0);
  // hls.js plays faster only when it is little behind, and a busy machine may have cost it more
  await page.evaluate('hls.config.liveMaxLatencyDuration = 2.8');
  await page.waitForFunction('hls.latency > 0 && hls.latency < 3');
  const own = await page.evaluate('faults');
  t.deepEqual(own, []);
});
