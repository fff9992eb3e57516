import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import HLS from 'hls-parser';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { publishPattern, type Program } from '../support/media/ffmpeg.ts';
import { PlaylistHistory } from '../support/hls/playlist-history.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import { shared } from '../support/runner/shared.ts';

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

const undo = new Teardown();
test.after.always(() => undo.run());

const STREAM = '/v1/vhosts/default/apps/app/streams/s';
let kiln: Kiln;
let publisher: Program;
let url: string;
let histories: readonly PlaylistHistory[];
let watched: Promise<unknown>;
let pages: { readonly hls: Page; readonly llhls: Page };

function publish(): Program {
  const program = publishPattern(kiln.rtmpUrl('s'), { size: '320x180', gop: 15 });
  undo.teardown(() => program.stop());
  return program;
}

/** Serves the page with hls.js. @returns its URL */
async function servePage(): Promise<string> {
  const server = createServer(({ url: path = '' }, response) => {
    const isScript = path === '/hls.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? hlsScripts() : PAGE);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  undo.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test.before(async () => {
  const start = async (): Promise<void> => {
    kiln = await Kiln.start({ hls: CONFIG, llhls: CROSS_DOMAINS });
    undo.teardown(() => kiln.stop());
    publisher = publish();
    url = kiln.httpUrl('/app/s/ts:playlist.m3u8');
    await until('a master playlist', async () => (await fetch(url)).status === 200);
    histories = [url, kiln.httpUrl('/app/s/llhls.m3u8')].map((master) => new PlaylistHistory(fetchText, master));
    watched = Promise.all(histories.map((history) => history.watch()));
    // it is told where it is awaited
    watched.catch(() => {});
  };
  const launch = async (): Promise<Browser> => {
    const browser = await launchBrowser();
    undo.teardown(() => browser.close());
    return browser;
  };
  const [browser, pageUrl] = await Promise.all([launch(), servePage(), start()]);
  const open = async (source: string): Promise<Page> => {
    const page = await browser.newPage();
    await page.goto(`${pageUrl}?url=${encodeURIComponent(source)}`);
    return page;
  };
  const [hls, llhls] = await Promise.all([open(`${url}?session=viewer`), open(kiln.httpUrl('/app/s/llhls.m3u8'))]);
  pages = { hls, llhls };
});

/** A playlist; undefined before there is one. */
async function fetchText(of: string): Promise<string | undefined> {
  const response = await fetch(of);
  const text = await response.text();
  if (response.status !== 200 && response.status !== 201) throw new Error(`${response.status} ${text}`);
  return response.status === 200 ? text : undefined;
}

/** The pages, once both play. */
const players = shared(async (): Promise<readonly Page[]> => {
  await Promise.all([
    pages.hls.waitForFunction('video.currentTime > 2 && video.videoWidth === 320'),
    pages.llhls.waitForFunction('video.currentTime > 2'),
  ]);
  return [pages.hls, pages.llhls];
});

test.serial('ffmpeg decodes HLS without a complaint, and ffprobe finds its codecs', async (t) => {
  const strict = ['-v', 'warning', '-xerror', '-err_detect', 'explode'];
  const [play, probe] = await Promise.all([
    run('ffmpeg', [...strict, '-t', '5', '-i', url, '-map', '0', '-f', 'null', '-']),
    run('ffprobe', ['-v', 'warning', '-show_streams', '-of', 'json', url]),
  ]);
  t.deepEqual([play.status, play.stderr], [0, '']);
  const streams = (JSON.parse(probe.stdout) as { streams: { codec_name: string }[] }).streams.map(
    ({ codec_name: name }) => name,
  );
  t.deepEqual([...new Set(streams)].sort(), ['aac', 'h264']);
  t.is(probe.stderr, '');
});

test.serial('hls.js plays HLS and LL-HLS', async (t) => {
  await t.notThrowsAsync(players());
});

test.serial('ID3 tags sent by the API are cues of hls.js, in HLS and LL-HLS', async (t) => {
  const playing = await players();
  const frames = [
    { frameType: 'TXXX', info: 'show', data: 'é' },
    { frameType: 'TIT2', data: 'On air' },
  ];
  t.is((await kiln.api(`${STREAM}:sendEvent`, 'POST', { eventFormat: 'id3v2', events: frames })).status, 200);
  for (const player of playing) {
    await player.waitForFunction('cues.includes("TIT2==On air") && cues.includes("TXXX=show=é")');
  }
});

test.serial('SCTE-35 and CUE events sent by the API are date ranges of hls.js, in HLS and LL-HLS', async (t) => {
  const playing = await players();
  const splice = { spliceCommand: 'spliceInsert', id: 77, type: 'out', duration: 1500, autoReturn: true };
  for (const body of [
    { eventFormat: 'scte35', events: [splice] },
    { eventFormat: 'cue', events: [{ cueType: 'out', duration: 1200 }] },
  ])
    t.is((await kiln.api(`${STREAM}:sendEvent`, 'POST', body)).status, 200);
  for (const player of playing) {
    await player.waitForFunction('ranges().filter(({ duration }) => duration !== null).length === 2');
    const ranges = (await player.evaluate('ranges()')) as Record<string, unknown>[];
    t.like(ranges[0], { id: '77', isValid: true, plannedDuration: 1.5, duration: 1.5 });
    t.like(ranges[1], { isValid: true, plannedDuration: 1.2, duration: 1.2 });
    t.regex(String(ranges[0]?.out), /^0xFC30/);
  }
});

test.serial('hls.js finds no fault in LL-HLS with events', async (t) => {
  await players();
  t.deepEqual(await pages.llhls.evaluate('faults'), []);
  await pages.llhls.close();
});

test.serial('HLS viewers are counted, and their sessions listed by name', async (t) => {
  await players();
  const { body } = await kiln.api<{ connections: { hlsv3: number } }>(STREAM.replace('/v1/', '/v1/stats/current/'));
  t.true(body.response.connections.hlsv3 >= 1);
  const sessions = await kiln.api<unknown>(`${STREAM}/sessions`);
  t.true(JSON.stringify(sessions.body.response).includes('viewer'), JSON.stringify(sessions.body));
});

test.serial('hls.js plays HLS through a change of publishers, which is a discontinuity', async (t) => {
  const [page] = (await players()) as [Page];
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

test.serial(
  'playlists with events, a change of publishers and an end follow RFC 8216bis, in HLS and LL-HLS',
  async (t) => {
    const conclude = await kiln.api(`${STREAM}:concludeHlsLive`, 'POST', {});
    t.is(conclude.status, 200, JSON.stringify(conclude.body));
    await watched;
    for (const history of histories) {
      t.true(history.size > 10);
      // low latency ends with the stream
      t.deepEqual(history.broken(['header-changed-at-end']), []);
    }
  },
);
