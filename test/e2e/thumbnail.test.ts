import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { BYPASS, ladderXml } from '../support/media/ladder-config.ts';
import { until } from '../support/time/until.ts';

const run = promisify(execFile);
const FORMATS = {
  jpg: { type: 'image/jpeg', codec: 'mjpeg' },
  png: { type: 'image/png', codec: 'png' },
  webp: { type: 'image/webp', codec: 'webp' },
  avif: { type: 'image/avif', codec: 'av1' },
} as const;
const image = (codec: string) =>
  `<Image><Name>${codec}</Name><Codec>${codec}</Codec><Framerate>2</Framerate><Width>128</Width></Image>`;

test('pictures of a live stream in every format, the newest each time, gone with the stream', async (t) => {
  const kiln = await Kiln.start({
    application: ladderXml([BYPASS, ...['jpeg', 'png', 'webp', 'avif'].map(image)]),
    publishers: '<Thumbnail><CrossDomains><Url>https://shop.example</Url></CrossDomains></Thumbnail>',
  });
  t.teardown(() => kiln.stop());
  const folder = await mkdtemp(join(tmpdir(), 'kiln-thumbnail-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '320x180', bitrate: '200k' });
  t.teardown(() => publisher.stop());
  await kiln.liveStream('live');
  const get = (extension: string) =>
    fetch(kiln.httpUrl(`/app/live/thumb.${extension}`), { headers: { origin: 'https://shop.example' } });
  for (const [extension, { type, codec }] of Object.entries(FORMATS)) {
    const answer = await until(`thumb.${extension}`, async () => {
      const one = await get(extension);
      return one.status === 200 && one;
    });
    t.is(answer.headers.get('content-type'), type);
    t.is(answer.headers.get('access-control-allow-origin'), 'https://shop.example');
    const file = join(folder, `thumb.${extension}`);
    const picture = Buffer.from(await answer.arrayBuffer());
    await writeFile(file, picture);
    const { stdout } = await run('ffprobe', [
      '-v',
      'error',
      '-show_entries',
      'stream=codec_name,width,height',
      '-of',
      'csv=p=0',
      file,
    ]);
    t.deepEqual(stdout.trim().split(','), [codec, '128', '72']);
    await run('ffmpeg', ['-v', 'error', '-xerror', '-i', file, '-f', 'null', '-']);
    await until(
      `another thumb.${extension}`,
      async () => !Buffer.from(await (await get(extension)).arrayBuffer()).equals(picture),
    );
  }
  t.is((await get('gif')).status, 404);
  await publisher.stop();
  await until('it is gone', async () => (await get('jpg')).status === 404);
});
