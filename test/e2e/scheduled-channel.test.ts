import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { Kiln } from '../support/server/kiln.ts';
import { isRunning, processTree } from '../support/load/usage.ts';
import { mediaFolder, writePattern } from '../support/media/media-files.ts';
import { until } from '../support/time/until.ts';

const CROSS_DOMAINS = '<CrossDomains><Url>*</Url></CrossDomains>';
const HLS = `<SegmentDuration>1</SegmentDuration><SegmentCount>20</SegmentCount>${CROSS_DOMAINS}`;
const CHANNELS = '/v1/vhosts/default/apps/app/scheduledChannels';
const PAGE = `<!doctype html><div id="player"></div><script src="/hls.js"></script><script>
  playHls(new URLSearchParams(location.search).get('url'));
</script>`;
/** Changes of items that a player has to go through. */
const CHANGES = 8;
const ITEM_SECONDS = 2;

/** What ffmpeg says while it decodes everything that it gets of a URL for some seconds. */
function decodeFor(seconds: number, url: string): Promise<string> {
  const args = ['-v', 'warning', '-i', url, '-t', String(seconds), '-map', '0', '-f', 'null', '-'];
  return new Promise((resolve, reject) => {
    execFile('ffmpeg', args, (error, _, told) => (error === null ? resolve(told) : reject(new Error(told))));
  });
}

test('a channel of files plays on through its items, in ffmpeg and in hls.js, and ends with the server', async (t) => {
  const { folder, remove } = await mediaFolder();
  t.teardown(remove);
  const video = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '2', '-g', '25', '-pix_fmt', 'yuv420p'];
  await writePattern(join(folder, 'small.mp4'), { seconds: ITEM_SECONDS, size: '160x90', video });
  await writePattern(join(folder, 'large.mov'), { seconds: ITEM_SECONDS, size: '320x180', video });
  const kiln = await Kiln.start({
    ...{ hls: HLS, llhls: CROSS_DOMAINS },
    providers: `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>`,
  });
  t.teardown(() => kiln.stop());
  const { status } = await kiln.api(CHANNELS, 'POST', {
    stream: { name: 'tv', bypassTranscoder: true, videoTrack: true, audioTrack: true },
    programs: [
      {
        ...{ name: 'all day', scheduled: '2026-01-01T00:00:00Z', repeat: true },
        items: [{ url: 'file://small.mp4' }, { url: 'file://large.mov' }],
      },
    ],
  });
  t.is(status, 201);
  const url = kiln.httpUrl('/app/tv/ts:playlist.m3u8');
  await until('it plays', async () => (await fetch(url)).status === 200);
  t.is(await decodeFor(3 * ITEM_SECONDS, url), '');

  const pages = createServer(({ url: path = '' }, response) => {
    const isScript = path === '/hls.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? hlsScripts() : PAGE);
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  const browser = await launchBrowser();
  t.teardown(async () => {
    await browser.close();
    pages.close();
  });
  const page = await browser.newPage();
  const { port } = pages.address() as AddressInfo;
  const source = kiln.httpUrl('/app/tv/llhls.m3u8');
  await page.goto(`http://127.0.0.1:${port}/?url=${encodeURIComponent(source)}`);
  await page.waitForFunction('document.querySelector("video").currentTime > 1');
  const from = Number(await page.evaluate('document.querySelector("video").currentTime'));
  const end = from + CHANGES * ITEM_SECONDS;
  await page.waitForFunction(`document.querySelector("video").currentTime > ${end} || faults.length > 0`);
  t.deepEqual(await page.evaluate('faults'), []);
  await page.waitForFunction('document.querySelector("video").videoWidth === 160');
  await page.waitForFunction('document.querySelector("video").videoWidth === 320');
  t.deepEqual(await page.evaluate('faults'), []);

  // an item that a busy machine opens late leaves the channel off the air until it begins
  await until('it is on the air', async () => {
    const { body } = await kiln.api<{ currentProgram: { state: string } }>(`${CHANNELS}/tv`);
    return body.response.currentProgram.state === 'onair';
  });
  const tree = processTree(kiln.pid);
  t.true(tree.length > 1, 'an ffmpeg reads the file');
  await kiln.stop();
  await until('no program is left', () => !tree.some(isRunning));
});
