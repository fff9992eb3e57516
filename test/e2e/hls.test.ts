import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import HLS from 'hls-parser';
import { launchBrowser } from '../support/browser.ts';
import { publishPattern } from '../support/ffmpeg.ts';
import { hlsScripts } from '../support/hls-scripts.ts';
import { Kiln } from '../support/kiln.ts';
import { until } from '../support/until.ts';

const CONFIG =
  '<SegmentDuration>1</SegmentDuration><SegmentCount>20</SegmentCount><CrossDomains><Url>*</Url></CrossDomains>';
const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const video = document.getElementById('video');
  const hls = new Hls({ liveSyncDurationCount: 2 });
  watchHls(hls);
  hls.loadSource(new URLSearchParams(location.search).get('url'));
  hls.attachMedia(video);
</script>`;

interface Told {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(command: string, args: readonly string[]): Promise<Told> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (data) => (stdout += data));
    child.stderr.on('data', (data) => (stderr += data));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}

test('a live stream plays in ffmpeg and in hls.js, through a change of publishers, and its viewers are told of', async (t) => {
  const kiln = await Kiln.start({ hls: CONFIG });
  t.teardown(() => kiln.stop());
  const publish = () => publishPattern(`rtmp://127.0.0.1:${kiln.ports.rtmp}/app/s`, { size: '320x180', gop: 15 });
  let publisher = publish();
  t.teardown(() => publisher.stop());
  const url = `http://127.0.0.1:${kiln.ports.http}/app/s/ts:playlist.m3u8`;
  await until('a master playlist', async () => (await fetch(url)).status === 200);

  const [play, probe] = await Promise.all([
    run('ffmpeg', [
      '-v',
      'warning',
      '-xerror',
      '-err_detect',
      'explode',
      '-t',
      '5',
      '-i',
      url,
      '-map',
      '0',
      '-f',
      'null',
      '-',
    ]),
    run('ffprobe', ['-v', 'warning', '-show_streams', '-of', 'json', url]),
  ]);
  t.deepEqual([play.status, play.stderr], [0, '']);
  const streams = (JSON.parse(probe.stdout) as { streams: { codec_name: string }[] }).streams.map(
    ({ codec_name: name }) => name,
  );
  t.deepEqual([...new Set(streams)].sort(), ['aac', 'h264']);
  t.is(probe.stderr, '');

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
  await page.goto(
    `http://127.0.0.1:${(pages.address() as AddressInfo).port}/?url=${encodeURIComponent(`${url}?session=viewer`)}`,
  );
  await page.waitForFunction('video.currentTime > 2 && video.videoWidth === 320');

  const stream = '/v1/stats/current/vhosts/default/apps/app/streams/s';
  const { body } = await kiln.api<{ connections: { hlsv3: number } }>(stream);
  t.true(body.response.connections.hlsv3 >= 1);
  const sessions = await kiln.api<unknown>('/v1/vhosts/default/apps/app/streams/s/sessions');
  t.true(JSON.stringify(sessions.body.response).includes('viewer'), JSON.stringify(sessions.body));

  await publisher.stop();
  publisher = publish();
  const list = await until('a discontinuity', async () => {
    const [child = ''] = (await (await fetch(url)).text()).split('\n').filter((line) => line.startsWith('/'));
    const text = await (await fetch(new URL(child, url))).text();
    return text.includes('#EXT-X-DISCONTINUITY\n') && text;
  });
  t.notThrows(() => HLS.parse(list));
  const before = Number(await page.evaluate('video.currentTime'));
  await page.waitForFunction(`video.currentTime > ${before + 3}`);
  const faults = await page.evaluate('faults');
  t.deepEqual(faults, []);
});
