import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import HLS from 'hls-parser';
import { launchBrowser } from '../support/hls/browser.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const CROSS_DOMAINS = '<CrossDomains><Url>*</Url></CrossDomains>';
const CONFIG = `<SegmentDuration>1</SegmentDuration><SegmentCount>20</SegmentCount>${CROSS_DOMAINS}`;
const PAGE = `<!doctype html><video id="video" muted autoplay></video><script src="/hls.js"></script><script>
  const video = document.getElementById('video');
  const hls = new Hls({ liveSyncDurationCount: 2 });
  watchHls(hls);
  const cues = [];
  const addCue = TextTrack.prototype.addCue;
  TextTrack.prototype.addCue = function (cue) {
    const { key, info, data } = cue.value;
    cues.push([key, info, data].join('='));
    addCue.call(this, cue);
  };
  const ranges = () =>
    Object.values(hls.latestLevelDetails?.dateRanges ?? {}).map(({ id, isValid, plannedDuration, duration, attr }) => ({
      id, isValid, plannedDuration, duration: duration ?? null, out: attr['SCTE35-OUT'],
    }));
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
  const kiln = await Kiln.start({ hls: CONFIG, llhls: CROSS_DOMAINS });
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
  const { port } = pages.address() as AddressInfo;
  const open = async (source: string) => {
    const opened = await browser.newPage();
    await opened.goto(`http://127.0.0.1:${port}/?url=${encodeURIComponent(source)}`);
    return opened;
  };
  const page = await open(`${url}?session=viewer`);
  const lowLatency = await open(kiln.httpUrl('/app/s/llhls.m3u8'));
  await page.waitForFunction('video.currentTime > 2 && video.videoWidth === 320');
  await lowLatency.waitForFunction('video.currentTime > 2');

  const action = '/v1/vhosts/default/apps/app/streams/s:sendEvent';
  const frames = [
    { frameType: 'TXXX', info: 'show', data: 'é' },
    { frameType: 'TIT2', data: 'On air' },
  ];
  t.is((await kiln.api(action, 'POST', { eventFormat: 'id3v2', events: frames })).status, 200);
  for (const player of [page, lowLatency]) {
    await player.waitForFunction('cues.includes("TIT2==On air") && cues.includes("TXXX=show=é")');
  }
  const splice = { spliceCommand: 'spliceInsert', id: 77, type: 'out', duration: 1500, autoReturn: true };
  for (const body of [
    { eventFormat: 'scte35', events: [splice] },
    { eventFormat: 'cue', events: [{ cueType: 'out', duration: 1200 }] },
  ])
    t.is((await kiln.api(action, 'POST', body)).status, 200);
  for (const player of [page, lowLatency]) {
    await player.waitForFunction('ranges().filter(({ duration }) => duration !== null).length === 2');
    const ranges = (await player.evaluate('ranges()')) as Record<string, unknown>[];
    t.like(ranges[0], { id: '77', isValid: true, plannedDuration: 1.5, duration: 1.5 });
    t.like(ranges[1], { isValid: true, plannedDuration: 1.2, duration: 1.2 });
    t.regex(String(ranges[0]?.out), /^0xFC30/);
  }
  t.deepEqual(await lowLatency.evaluate('faults'), []);
  await lowLatency.close();

  const stream = '/v1/stats/current/vhosts/default/apps/app/streams/s';
  const { body } = await kiln.api<{ connections: { hlsv3: number } }>(stream);
  t.true(body.response.connections.hlsv3 >= 1);
  const sessions = await kiln.api<unknown>('/v1/vhosts/default/apps/app/streams/s/sessions');
  t.true(JSON.stringify(sessions.body.response).includes('viewer'), JSON.stringify(sessions.body));

  await publisher.stop();
  publisher = publish();
  const list = await until('a discontinuity', async () => {
    const [child = ''] = (await (await fetch(url)).text())
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const text = await (await fetch(new URL(child, url))).text();
    return text.includes('#EXT-X-DISCONTINUITY\n') && text;
  });
  t.notThrows(() => HLS.parse(list));
  const before = Number(await page.evaluate('video.currentTime'));
  await page.waitForFunction(`video.currentTime > ${before + 3}`);
  const faults = await page.evaluate('faults');
  t.deepEqual(faults, []);
});
