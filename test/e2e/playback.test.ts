import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { Program } from '../support/media/ffmpeg.ts';
import { readNumbers, writeNumbered } from '../support/media/numbered-files.ts';
import { openClient, PROTOCOLS } from '../support/network/http-client.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);
const APP = '/v1/vhosts/default/apps/app';
const RATE = 20;
const SECONDS = 24;
/** Blocks of the picture, each a bit of the number of the frame. */
const BITS = 16;
const FRAMES = 2 ** 10;

const undo = new Teardown();
const folder = await mkdtemp(join(tmpdir(), 'kiln-playback-'));
const certificates = new CertificateFolder(undo);
const source = join(folder, 'numbered.flv');
await writeNumbered(source, { item: 0, frames: SECONDS * RATE, rate: RATE, gop: 2 * RATE });
const tls = certificates.write('kiln', issue('localhost'));
const kiln = await Kiln.start({ tls, publishers: `<FILE><RootPath>${folder}</RootPath></FILE><Playback/>` });
const browser = await launchBrowser();

test.after.always(async () => {
  await browser.close();
  await kiln.stop();
  await rm(folder, { recursive: true, force: true });
  await undo.run();
});

interface Span {
  readonly start: string;
}

/** Streams, and the extensions of their recordings. */
const STREAMS = { s: 'mp4', t: 'ts' } as const;
type Stream = keyof typeof STREAMS;
const NAMES = Object.keys(STREAMS) as Stream[];

/** Time of the first frame of each stream, in milliseconds since the epoch. */
const begun = new Map<string, number>();

test.before(async () => {
  for (const [name, extension] of Object.entries(STREAMS)) {
    const paths = { filePath: `${name}\${Sequence}.${extension}`, infoPath: `${name}.xml` };
    const record = { id: name, stream: { name }, interval: 10_000, ...paths };
    const { status } = await kiln.api(`${APP}:startRecord`, 'POST', record);
    if (status !== 200) throw new Error(`status ${status}`);
  }
  const publishers = NAMES.map(
    (name) =>
      new Program('ffmpeg', [
        ...['-nostdin', '-v', 'error', '-re', '-i', source, '-c', 'copy', '-f', 'flv', kiln.rtmpUrl(name)],
      ]),
  );
  for (const publisher of publishers) await publisher.exited();
  for (const name of NAMES) {
    // a busy machine may date files late, so that the time that is listed is shorter, or has breaks
    await until(`all of ${name} is recorded`, async () => {
      const { body } = await kiln.api<{ recordings: { duration: number }[] }>(`${APP}/recordings?stream=${name}`);
      return body.response.recordings.reduce((sum, { duration }) => sum + duration, 0) > SECONDS - 1;
    });
    const [span] = (await (await fetch(kiln.httpUrl(`/app/${name}/list`))).json()) as [Span];
    begun.set(name, Date.parse(span.start));
  }
});

const query = (second: number, duration: number, stream: Stream = 's'): string =>
  `start=${new Date((begun.get(stream) ?? 0) + second * 1000).toISOString()}&duration=${duration}`;
const clip = (second: number, duration: number, format: string, stream: Stream = 's'): string =>
  kiln.httpUrl(`/app/${stream}/get?${query(second, duration, stream)}&format=${format}`);

for (const stream of NAMES) {
  const container = STREAMS[stream];

  test(`clips have the frames of their time: .${container}`, async (t) => {
    for (const [second, duration] of [
      [3.1, 2],
      [1, 6.05],
    ] as const) {
      for (const format of ['mp4', 'fmp4']) {
        const bytes = Buffer.from(await (await fetch(clip(second, duration, format, stream))).arrayBuffer());
        const numbers = (await readNumbers(bytes)).map(({ frame }) => frame);
        t.deepEqual(
          numbers,
          numbers.map((_, index) => (numbers[0] ?? 0) + index),
        );
        // files are dated when they begin, to the millisecond
        const isNear = (found: number | undefined, wanted: number) =>
          t.true(Math.abs((found ?? 0) - wanted) <= 2, `${format} at ${second}: ${found} for ${wanted}`);
        isNear(numbers.at(-1), Math.ceil((second + duration) * RATE) - 1);
        // in fragmented files ffmpeg shows what edits hide
        if (format === 'mp4') isNear(numbers[0], Math.ceil(second * RATE));
        else t.true((numbers[0] ?? Infinity) <= Math.ceil(second * RATE) + 2);
      }
    }
  });

  test(`ffprobe finds what a clip says of itself: .${container}`, async (t) => {
    const entries = ['-count_packets', '-show_entries', 'stream=codec_name,nb_read_packets', '-of', 'json'];
    for (const format of ['mp4', 'fmp4']) {
      const { stdout } = await run('ffprobe', ['-v', 'error', ...entries, clip(2, 6, format, stream)]);
      const { streams } = JSON.parse(stdout) as { streams: { codec_name: string; nb_read_packets: string }[] };
      t.deepEqual(
        streams.map(({ codec_name: name }) => name),
        ['h264', 'aac'],
      );
      const packets = Number(streams[0]?.nb_read_packets);
      t.true(packets >= 6 * RATE - 1 && packets <= 8 * RATE, `${format}: ${packets}`);
    }
  });

  test(`ranges of a clip are parts of it: .${container}`, async (t) => {
    const url = clip(2.5, 12, 'mp4', stream);
    const answer = await fetch(url);
    const bytes = Buffer.from(await answer.arrayBuffer());
    t.is(answer.headers.get('content-length'), `${bytes.length}`);
    for (const [first, last] of [
      [0, 99],
      [bytes.length >> 1, (bytes.length >> 1) + 5000],
      [bytes.length - 300, bytes.length - 1],
    ] as const) {
      const part = await fetch(url, { headers: { range: `bytes=${first}-${last}` } });
      t.is(part.status, 206);
      t.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(first, last + 1));
    }
  });

  test(`ffmpeg reads a clip over HLS: .${container}`, async (t) => {
    const url = kiln.httpUrl(`/app/${stream}/recorded.m3u8?${query(4, 60, stream)}`);
    const numbers = (await readNumbers(url)).map(({ frame }) => frame);
    t.is(numbers[0], 0);
    t.is(numbers.at(-1), SECONDS * RATE - 1);
    t.true(numbers.every((frame, index) => index === 0 || frame > (numbers[index - 1] ?? 0)));
  });
}

/** The number that a video shows. */
const READ = `(() => {
  const video = document.querySelector('video');
  const canvas = new OffscreenCanvas(${BITS}, 3);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(video, 0, 0, ${BITS}, 3);
  const { data } = context.getImageData(0, 1, ${BITS}, 1);
  let frame = 0;
  for (let bit = 0; bit < ${BITS}; bit++) if (data[bit * 4] > 128) frame += 2 ** bit;
  return { frame: frame % ${FRAMES}, isThere: !video.seeking && video.readyState >= 2 };
})()`;

async function shows(page: PlayerPage['page'], second: number): Promise<void> {
  const wanted = Math.floor(second * RATE);
  const seen: number[] = [];
  await until(`frame ${wanted}`, async () => {
    const { frame, isThere } = (await page.evaluate(READ)) as { frame: number; isThere: boolean };
    if (seen.at(-1) !== frame) seen.push(frame);
    return isThere && Math.abs(frame - wanted) <= 2;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${seen.join()}`);
  });
}

for (const stream of NAMES) {
  test(`a video element plays a recorded file by its id: .${STREAMS[stream]}`, async (t) => {
    const page = await browser.newPage();
    t.teardown(() => page.close());
    await page.goto(kiln.httpUrl('/readyz'));
    const { body } = await kiln.api<{ recordings: { id: string; duration: number }[] }>(
      `${APP}/recordings?stream=${stream}`,
    );
    const [{ id, duration } = { id: '', duration: 0 }] = body.response.recordings;
    await page.evaluate(`(() => {
      const video = document.createElement('video');
      video.src = ${JSON.stringify(`${clip(0, 60, 'mp4', stream)}&id=${id}`)};
      video.muted = true;
      document.body.append(video);
    })()`);
    await shows(page, 0);
    await page.evaluate(`document.querySelector('video').currentTime = 5.025`);
    await shows(page, 5.025);
    const played = Number(await page.evaluate(`document.querySelector('video').duration`));
    t.true(Math.abs(played - duration) < 0.2, `${played} of ${duration} seconds`);
  });
}

test('a video element plays a clip, and seeks in it', async (t) => {
  const page = await browser.newPage();
  t.teardown(() => page.close());
  await page.goto(kiln.httpUrl('/readyz'));
  await page.evaluate(`(() => {
    const video = document.createElement('video');
    video.src = ${JSON.stringify(clip(1.025, 8, 'mp4'))};
    video.muted = true;
    document.body.append(video);
  })()`);
  await shows(page, 1.025);
  for (const second of [6.5, 2.5, 4.5]) {
    await page.evaluate(`document.querySelector('video').currentTime = ${second}`);
    await shows(page, 1.025 + second);
  }
  t.true(Math.abs(Number(await page.evaluate(`document.querySelector('video').duration`)) - 8) < 0.2);
});

test('hls.js starts at the time of a clip, and goes on across files', async (t) => {
  const page = await PlayerPage.open(browser, 'hls', kiln.httpUrl('/readyz'));
  t.teardown(() => page.page.close());
  await page.play(kiln.httpUrl(`/app/s/recorded.m3u8?${query(7.525, 60)}`), { startPosition: -1 });
  await page.plays(5, 20_000);
  const { frame } = (await page.page.evaluate(READ)) as { frame: number };
  // its segment begins at 6 seconds, and it has played for five
  t.true(frame >= 12 * RATE && frame < SECONDS * RATE, `frame ${frame}`);
});

test('clips are the same over TLS, by HTTP/1.1 and HTTP/2', async (t) => {
  const [whole, fragmented] = [clip(3, 4, 'mp4'), clip(3, 4, 'fmp4')].map((url) => new URL(url));
  const bytes = Buffer.from(await (await fetch(whole as URL)).arrayBuffer());
  const { pathname, search } = whole as URL;
  for (const protocol of PROTOCOLS) {
    const client = await openClient(t, protocol, kiln.ports.https ?? 0);
    const all = await client.call(pathname + search);
    t.deepEqual([all.status, all.headers['content-length'], all.body.equals(bytes)], [200, `${bytes.length}`, true]);
    const part = await client.call(pathname + search, { headers: { range: 'bytes=10-19' } });
    t.deepEqual([part.status, part.body], [206, bytes.subarray(10, 20)]);
    const stream = await client.call((fragmented as URL).pathname + (fragmented as URL).search);
    t.is(stream.status, 200);
    t.true(stream.body.length > bytes.length / 2);
    const master = await client.call(`/app/s/recorded.m3u8?${query(3, 4)}`);
    t.regex(master.body.toString(), /^#EXTM3U/);
    t.is((await client.call(`/app/s/get?${query(3, 4)}&format=x`)).status, 400);
  }
});
