import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Playlist } from '../../src/core/playlist.ts';
import type { VideoTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { codedPackets } from '../support/media/coded-packets.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { interleaved } from '../support/media/packets.ts';

const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const video = document.getElementById('video');
  const hls = new Hls({ liveSyncDurationCount: 18, startLevel: 0, maxBufferLength: 4, maxMaxBufferLength: 4 });
  watchHls(hls);
  // until it is told otherwise
  hls.loadLevel = 0;
  hls.loadSource('/app/stream/ts:abr.m3u8');
  hls.attachMedia(video);
</script>`;

test('hls.js changes between the variants of a playlist, which share their sound', async (t) => {
  const small = codedPackets({ video: { codec: 'H264', size: '160x90' }, audio: 'AAC', seconds: 20.5 });
  const large = codedPackets({ video: { codec: 'H264', size: '320x180' }, seconds: 20.5 });
  const [first] = large;
  const track: VideoTrack = { ...(first?.track as VideoTrack), id: 2, name: 'large', bitrate: 900_000 };
  const playlist: Playlist = {
    fileName: 'abr',
    options: {
      webrtcAutoAbr: true,
      webrtcAudioOnlyFallback: false,
      hlsChunklistPathDepth: -1,
      enableTsPackaging: true,
    },
    renditions: [
      { videoVariantName: 'video', audioVariantName: 'audio' },
      { videoVariantName: 'large', audioVariantName: 'audio' },
    ],
  };
  const { app, goLive } = await openLlhls(t, { hls: { segmentDuration: 1, segmentCount: 30 }, playlists: [playlist] });
  app.get('/page', (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/hls.js', (_request, reply) => reply.type('text/javascript').send(hlsScripts()));
  const packets = interleaved(
    small,
    large.map((packet) => ({ ...packet, track })),
  );
  const { output } = goLive([...new Set(packets.map((packet) => packet.track))]);
  for (const packet of packets) output.write(packet);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/page`);
  await page.waitForFunction('hls.levels.length === 2 && video.currentTime > 1 && video.videoWidth === 160');
  await page.evaluate('hls.nextLevel = 1');
  await page.waitForFunction('video.videoWidth === 320');
  const since = Number(await page.evaluate('video.currentTime'));
  await page.waitForFunction(`video.currentTime > ${since + 1}`);
  const faults: string[] = await page.evaluate('faults');
  // a change that comes while hls.js reads a segment makes it forget what was in that
  t.deepEqual(
    faults.filter((fault) => !/^fragParsingError false .* Found no media/.test(fault)),
    [],
  );
});
