import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { Program, publishPattern, patternArguments } from '../support/media/ffmpeg.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { Kiln } from '../support/server/kiln.ts';
import { AAC, BYPASS, ladderXml, video } from '../support/media/ladder-config.ts';
import { long } from '../support/runner/long.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);
const PLAYLIST =
  '<Playlist><FileName>both</FileName><Options><EnableTsPackaging>true</EnableTsPackaging></Options>' +
  '<Rendition><Name>high</Name><Video>source</Video><Audio>aac</Audio></Rendition>' +
  '<Rendition><Name>low</Name><Video>72p</Video><Audio>aac</Audio></Rendition></Playlist>';
const IMAGE = '<Image><Name>jpeg</Name><Codec>jpeg</Codec><Framerate>2</Framerate><Height>72</Height></Image>';

const kiln = await Kiln.start({
  llhls: '<ChunkDuration>0.25</ChunkDuration><SegmentDuration>1</SegmentDuration>',
  hls: '<SegmentDuration>1</SegmentDuration>',
  srt: {},
  application: ladderXml([BYPASS, video(72, 100), AAC, IMAGE], { playlists: PLAYLIST }),
  publishers: '<Thumbnail/>',
});
test.after.always(() => kiln.stop());

/** The lines of the variants in a master playlist that names some. */
function variants(path: string, count: number): Promise<string[]> {
  return until(`${count} variants of ${path}`, async () => {
    const answer = await fetch(kiln.httpUrl(path));
    const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('#EXT-X-STREAM-INF'));
    return answer.status === 200 && lines.length === count && lines;
  });
}

const valuesOf = (lines: readonly string[], name: string) =>
  lines.map((line) => new RegExp(`[:,]${name}=([^,]*)`).exec(line)?.[1]);

/** What ffprobe tells of the videos of a playlist. */
async function probe(path: string, entries: string): Promise<string[]> {
  const shown = ['-select_streams', 'v', '-show_entries', `stream=${entries}`, '-of', 'csv=p=0'];
  const { stdout } = await run('ffprobe', ['-v', 'error', ...shown, kiln.httpUrl(path)]);
  return [...new Set(stdout.trim().split('\n'))].filter((line) => line !== '').sort();
}

test('anamorphic video is shown in its shape, encoded or not, and images of it have square pixels', async (t) => {
  const wide = ['-vf', 'setsar=64/45', '-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency'];
  const picture = { size: '180x144', bitrate: '150k', codec: [...wide, '-pix_fmt', 'yuv420p'] };
  const publisher = publishPattern(kiln.rtmpUrl('wide'), picture);
  t.teardown(() => publisher.stop());
  await kiln.liveStream('wide');
  for (const playlist of ['/app/wide/both.m3u8', '/app/wide/ts:both.m3u8'])
    t.deepEqual(valuesOf(await variants(playlist, 2), 'RESOLUTION'), ['256x144', '128x72'], playlist);
  const image = await until('a thumbnail', async () => {
    const answer = await fetch(kiln.httpUrl('/app/wide/thumb.jpg'));
    return answer.status === 200 && Buffer.from(await answer.arrayBuffer());
  });
  const folder = await mkdtemp(join(tmpdir(), 'kiln-look-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'thumb.jpg'), image);
  const size = ['-show_entries', 'stream=width,height', '-of', 'csv=p=0', join(folder, 'thumb.jpg')];
  t.is((await run('ffprobe', ['-v', 'error', ...size])).stdout.trim(), '128,72');

  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(kiln.httpUrl('/livez'));
  await page.addScriptTag({ content: hlsScripts() });
  await page.evaluate(`playHls('${kiln.httpUrl('/app/wide/both.m3u8')}')`);
  await page.waitForFunction('window.hls?.levels.length === 2 && document.querySelector("video").readyState >= 2');
  for (const [level, shown] of [
    [1, '256x144'],
    [0, '128x72'],
  ] as const) {
    await page.evaluate(`hls.currentLevel = ${level}`);
    await page.waitForFunction(
      `(({ videoWidth, videoHeight }) => videoWidth + 'x' + videoHeight)(document.querySelector('video')) === '${shown}'`,
    );
  }
  t.deepEqual(await page.evaluate('faults'), []);
});

long('HDR is declared, and what is encoded of it is SDR', async (t) => {
  const x265 = 'log-level=none:bframes=0:repeat-headers=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc';
  const codec = ['-c:v', 'libx265', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p10le', '-x265-params', x265];
  const args = patternArguments({ size: '320x180', rate: 25, bitrate: '200k', codec });
  const publisher = new Program('ffmpeg', [...args, '-f', 'mpegts', kiln.srtUrl('hdr', '&connect_timeout=60000')]);
  t.teardown(() => publisher.stop());
  await kiln.liveStream('hdr');
  for (const playlist of ['/app/hdr/both.m3u8', '/app/hdr/ts:both.m3u8'])
    t.deepEqual(valuesOf(await variants(playlist, 2), 'VIDEO-RANGE'), ['PQ', 'SDR'], playlist);
  t.deepEqual(await probe('/app/hdr/both.m3u8', 'codec_name,color_range,color_space,color_transfer,color_primaries'), [
    'h264,tv,bt709,bt709,bt709',
    'hevc,tv,bt2020nc,smpte2084,bt2020',
  ]);
});
