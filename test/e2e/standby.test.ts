import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { PlaylistHistory } from '../support/hls/playlist-history.ts';
import { Program } from '../support/media/ffmpeg.ts';
import { mediaFolder } from '../support/media/media-files.ts';
import { readNumbers, writeNumbered, type PictureNumber } from '../support/media/numbered-files.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const CROSS_DOMAINS = '<CrossDomains><Url>*</Url></CrossDomains>';
const PLAYER = fileURLToPath(new URL('../support/webrtc/whep-player.js', import.meta.url));
const PAGE = `<!doctype html><div></div><script src="/hls.js"></script><script>
  const url = new URLSearchParams(location.search).get('url');
  if (url) playHls(url);
</script>`;
const [FIRST, SECOND, SLATE] = [1, 2, 9];
const RATE = 25;
const SLATE_FRAMES = 50;

const browser = await launchBrowser();
const pages = createServer(({ url: path = '' }, response) => {
  const isScript = path === '/hls.js';
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
  response.end(isScript ? hlsScripts() : PAGE);
});
await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
const { folder, remove } = await mediaFolder();
/** A file whose pictures have numbers. */
async function numbered(item: number, frames: number): Promise<string> {
  const file = join(folder, `${item}.mp4`);
  await writeNumbered(file, { item, frames, rate: RATE, gop: RATE });
  return file;
}

const [first, second, slate] = await Promise.all([
  numbered(FIRST, 1000),
  numbered(SECOND, 1000),
  numbered(SLATE, SLATE_FRAMES),
]);

test.after.always(async () => {
  await browser.close();
  pages.close();
  await remove();
});

async function start(t: ExecutionContext, standby: string, options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({
    ...{ llhls: `<ChunkDuration>0.25</ChunkDuration><SegmentDuration>1</SegmentDuration>${CROSS_DOMAINS}`, srt: {} },
    webrtc: CROSS_DOMAINS,
    application: `<Standby><Enable>true</Enable>${standby}</Standby>`,
    ...options,
  });
  t.teardown(() => kiln.stop());
  return kiln;
}

function publish(t: ExecutionContext, file: string, url: string, format = 'flv'): Program {
  const program = new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'error',
    '-re',
    '-i',
    file,
    '-c',
    'copy',
    '-f',
    format,
    url,
  ]);
  t.teardown(() => program.stop());
  return program;
}

async function open(t: ExecutionContext, url?: string): Promise<Page> {
  const page = await browser.newPage();
  t.teardown(() => page.close());
  await page.goto(url === undefined ? origin : `${origin}/?url=${encodeURIComponent(url)}`);
  return page;
}

/** Items in the order in which they were shown. */
function runs(numbers: readonly PictureNumber[]): { item: number; frames: number[] }[] {
  const found: { item: number; frames: number[] }[] = [];
  for (const { item, frame } of numbers) {
    const last = found.at(-1);
    if (last?.item === item) last.frames.push(frame);
    else found.push({ item, frames: [frame] });
  }
  return found;
}

test('viewers stay while a file stands in for the publisher, and see the next one from its first key frame', async (t) => {
  const kiln = await start(t, `<File>${slate}</File>`);
  const publisher = publish(t, first, kiln.rtmpUrl('live'));
  await kiln.liveStream('live');
  const recorded = join(folder, 'seen.ts');
  const viewer = new Program('ffmpeg', [
    ...[
      '-nostdin',
      '-v',
      'error',
      '-i',
      kiln.srtPlayUrl('live', '&connect_timeout=60000'),
      '-c',
      'copy',
      '-f',
      'mpegts',
      recorded,
    ],
  ]);
  t.teardown(() => viewer.stop());
  const [hls, webrtc] = await Promise.all([open(t, kiln.httpUrl('/app/live/llhls.m3u8')), open(t)]);
  await webrtc.addScriptTag({ path: PLAYER });
  await webrtc.evaluate(`playWhep('${kiln.httpUrl('/app/live?direction=whep')}')`);
  const frames = async () => (await webrtc.evaluate<{ frames: number }>('received()')).frames;
  const shownTo = (time: number) => hls.waitForFunction(`document.querySelector('video').currentTime > ${time}`);
  const time = () => hls.evaluate<number>(`document.querySelector('video').currentTime`);
  const history = new PlaylistHistory(async (url) => {
    const answer = await fetch(url);
    return answer.ok ? answer.text() : undefined;
  }, kiln.httpUrl('/app/live/llhls.m3u8'));
  const watching = new AbortController();
  const watch = async (): Promise<void> => {
    while (!watching.signal.aborted) await history.look();
  };
  const watched = watch();
  await until('WebRTC shows it', async () => (await frames()) > 25);
  await shownTo(2);

  await publisher.stop();
  await until('it is told', () => kiln.log.includes('standby.began'));
  const [before, seen] = [await time(), await frames()];
  await shownTo(before + 4);
  await until('WebRTC shows the slate', async () => (await frames()) > seen + 4 * RATE);
  const away = (await kiln.stream('live')).body.response.input;
  t.is(away.sourceType, 'Rtmp');
  t.is(away.connection, undefined);

  const next = publish(t, second, kiln.srtUrl('live', '&connect_timeout=60000'), 'mpegts');
  await until('it is told', () => kiln.log.includes('standby.ended'));
  t.is((await kiln.stream('live')).body.response.input.sourceType, 'SRT');
  const [back, seenBack] = [await time(), await frames()];
  await shownTo(back + 4);
  await until('WebRTC shows the second', async () => (await frames()) > seenBack + 3 * RATE);
  t.is(await webrtc.evaluate('connection.connectionState'), 'connected');
  t.deepEqual(await hls.evaluate('faults'), []);
  t.true(viewer.running, viewer.stderr);
  watching.abort();
  await watched;
  t.true(history.size > 5);
  t.deepEqual(history.broken(), []);
  t.is((await kiln.api('/v1/vhosts/default/apps/app/streams/live', 'DELETE')).status, 200);
  await until('its publisher is disconnected', () => !next.running);
  await viewer.exited();

  const shown = runs(await readNumbers(recorded));
  t.deepEqual(
    shown.map(({ item }) => item),
    [FIRST, SLATE, SECOND],
  );
  const [, standing, last] = shown;
  t.is(standing?.frames[0], 0);
  t.true(
    standing?.frames.every((frame, index) => frame === index % SLATE_FRAMES),
    String(standing?.frames),
  );
  t.is((last?.frames[0] ?? 1) % RATE, 0, 'it begins with a key frame');
  t.true(last?.frames.every((frame, index) => frame === index + (last.frames[0] as number)));
});

const SMALL =
  '<OutputProfiles><OutputProfile><Name>small</Name><OutputStreamName>${OriginStreamName}_small</OutputStreamName><Encodes>' +
  '<Video><Name>v</Name><Codec>h264</Codec><Width>160</Width><Height>90</Height><Bitrate>500000</Bitrate><Framerate>25</Framerate></Video>' +
  '</Encodes></OutputProfile></OutputProfiles>';

test('recordings of what is encoded have no slate where that is left out, whatever the next publisher sends', async (t) => {
  const records = join(folder, 'records');
  const kiln = await start(t, `<File>${slate}</File>`, {
    publishers: `<FILE><RootPath>${records}</RootPath><Standby>false</Standby></FILE>`,
    application: `<Standby><Enable>true</Enable><File>${slate}</File></Standby>${SMALL}`,
  });
  const publisher = publish(t, first, kiln.rtmpUrl('taped'));
  await kiln.liveStream('taped');
  const app = '/v1/vhosts/default/apps/app';
  const { status } = await kiln.api(`${app}:startRecord`, 'POST', {
    ...{ id: 'tape', stream: { name: 'taped_small' }, filePath: '/tape_${Sequence}.ts', infoPath: '/tape.xml' },
  });
  t.is(status, 200);
  const began = (count: number) =>
    until(
      `${count} slates`,
      () => kiln.log.split('standby.began').length > count && kiln.log.split('standby.began').length,
    );
  const back = (count: number) => until(`${count} returns`, () => kiln.log.split('standby.ended').length > count);
  const recorded = async () => {
    const { body } = await kiln.api<{ recordTime: number; sequence: number; state: string }[]>(`${app}:records`);
    return body.response[0];
  };
  const records2s = (sequence: number) =>
    until(`file ${sequence}`, async () => {
      const row = await recorded();
      return row !== undefined && row.sequence === sequence && row.recordTime >= 2000;
    });
  await records2s(0);
  publisher.signal('SIGSTOP');
  await began(1);
  await until('the file is closed', async () => (await recorded())?.state === 'ready');
  publisher.signal('SIGCONT');
  await back(1);
  await records2s(1);
  await publisher.stop();
  await began(2);
  await until('the file is closed', async () => (await recorded())?.state === 'ready');
  const large = join(folder, 'large.mp4');
  await writeNumbered(large, { item: SECOND, frames: 1000, rate: 30, gop: 30, size: '640x360', audio: [] });
  publish(t, large, kiln.rtmpUrl('taped'));
  await back(2);
  await records2s(2);
  t.is((await kiln.api(`${app}:stopRecord`, 'POST', { id: 'tape' })).status, 200);
  const items = await until('the files are complete', async () => {
    const files = [0, 1, 2].map((sequence) => readNumbers(join(records, `tape_${sequence}.ts`)).catch(() => undefined));
    const all = await Promise.all(files);
    return (
      all.every((numbers) => numbers !== undefined) &&
      all.map((numbers) => [...new Set(numbers?.map(({ item }) => item))])
    );
  });
  t.deepEqual(items, [[FIRST], [FIRST], [SECOND]]);
});

test('a server stops in order while it shows the slate of a stream of audio alone, and of one with what it cannot encode it shows none', async (t) => {
  const kiln = await start(t, '');
  const tone = ['-nostdin', '-v', 'error', '-re', '-f', 'lavfi', '-i', 'sine=440:r=44100'];
  const audio = new Program('ffmpeg', [...tone, '-c:a', 'aac', '-ac', '1', '-f', 'flv', kiln.rtmpUrl('radio')]);
  t.teardown(() => audio.stop());
  await kiln.liveStream('radio');
  const mp3 = new Program('ffmpeg', [...tone, '-c:a', 'libmp3lame', '-f', 'flv', kiln.rtmpUrl('mp3')]);
  t.teardown(() => mp3.stop());
  await kiln.liveStream('mp3');
  await Promise.all([audio.stop(), mp3.stop()]);
  await until('a slate is shown', () => kiln.log.includes('standby.began'));
  await until('the other stream has ended', async () => (await kiln.stream('mp3')).status === 404);
  await until('the log tells why', () => kiln.log.includes('MP3 cannot be encoded'));
  const { input } = (await kiln.stream('radio')).body.response;
  t.like(input.tracks[0], { type: 'Audio', audio: { codec: 'AAC', samplerate: 44_100, channel: 1 } });
  kiln.signal('SIGTERM');
  t.is(await kiln.exited(), 0);
});
