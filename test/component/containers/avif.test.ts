import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import * as av1 from '../../../src/codecs/av1.ts';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { avifFile } from '../../../src/containers/avif.ts';
import { launchBrowser } from '../../support/hls/browser.ts';
import { FFMPEG7 } from '../../support/media/ffmpeg.ts';
import { box, samples, seeded, vector } from '../../unit/codecs/vectors.ts';

const run = promisify(execFile);
const unit = (name: string) => av1.canonicalize(samples(vector(name))[0] as Buffer);
const file = (url: string) => new URL(`../../vectors/codecs/${url}`, import.meta.url).pathname;

test('AVIF boxes agree with the bitstream', (t) => {
  const data = unit('av1-aom-444.mp4');
  const avif = avifFile(data);
  t.is(box(avif, 'ispe').toString('hex'), '000000000000004200000032');
  t.is(box(avif, 'pixi').toString('hex'), '00000000030a0a0a');
  t.is(box(avif, 'colr').toString('hex'), `${Buffer.from('nclx').toString('hex')}00090010000900`);
  t.like(av1.parseAv1Config(box(avif, 'av1C')), { profile: 1, bitDepth: 10, subsamplingX: false });
  t.deepEqual(box(avif, 'mdat'), data);
  const iloc = box(avif, 'iloc');
  const [offset, length] = [iloc.readUInt32BE(14), iloc.readUInt32BE(18)];
  t.deepEqual(avif.subarray(offset, offset + length), data);
});

test('colour that the bitstream leaves open is what browsers take it for', (t) => {
  t.is(
    box(avifFile(unit('av1-svt.mp4')), 'colr')
      .subarray(4)
      .toString('hex'),
    '0001000d000600',
  );
});

test('a unit without a sequence header is no picture', (t) => {
  t.throws(() => avifFile(unit('av1-svt.mp4').subarray(13)), { instanceOf: BitstreamError });
  t.throws(() => avifFile(Buffer.alloc(0)), { instanceOf: BitstreamError });
});

test('spoilt data are a file or a BitstreamError', (t) => {
  const random = seeded(3);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const data = unit('av1-aom-444.mp4');
  for (let round = 0; round < 3000; round++) {
    const spoilt = Buffer.from(data.subarray(0, round % 2 === 0 ? data.length : upTo(data.length)));
    for (let changes = 1 + upTo(4); changes > 0 && spoilt.length > 0; changes--)
      spoilt[upTo(Math.min(spoilt.length, 30))] = upTo(256);
    t.notThrows(() => {
      try {
        avifFile(spoilt);
      } catch (error) {
        if (!(error instanceof BitstreamError)) throw error;
      }
    }, spoilt.toString('hex'));
  }
});

test('ffmpeg decodes it to the picture that it decodes out of the video', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-avif-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const picture = async (ffmpeg: string, path: string) => {
    const { stdout, stderr } = await run(ffmpeg, [
      '-v',
      'error',
      '-i',
      path,
      '-frames:v',
      '1',
      '-f',
      'rawvideo',
      '-c:v',
      'rawvideo',
      '-f',
      'hash',
      '-',
    ]);
    return stdout + stderr;
  };
  for (const ffmpeg of ['ffmpeg', FFMPEG7]) {
    for (const name of ['av1-svt', 'av1-aom-444']) {
      const path = join(folder, `${name}.avif`);
      await writeFile(path, avifFile(unit(`${name}.mp4`)));
      const own = await picture(ffmpeg, path);
      t.regex(own, /^SHA256=[0-9a-f]{64}\n$/);
      t.is(own, await picture(ffmpeg, file(`${name}.mp4`)));
    }
  }
});

test('Chromium shows it, in the colours that went in', async (t) => {
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { stdout } = await run(
    'ffmpeg',
    [
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'color=red:size=64x48',
      '-frames:v',
      '1',
      '-pix_fmt',
      'yuv420p',
      '-c:v',
      'libaom-av1',
      '-usage',
      'realtime',
      '-cpu-used',
      '8',
      '-f',
      'obu',
      '-',
    ],
    { encoding: 'buffer' },
  );
  const page = await browser.newPage();
  const shown = await page.evaluate(`(async () => {
    const image = new Image();
    image.src = 'data:image/avif;base64,${avifFile(av1.canonicalize(stdout)).toString('base64')}';
    await image.decode();
    const context = document.createElement('canvas').getContext('2d');
    context.drawImage(image, 0, 0);
    return [image.naturalWidth, image.naturalHeight, ...context.getImageData(20, 20, 1, 1).data];
  })()`);
  const [width, height, red, green, blue] = shown as [number, number, number, number, number];
  t.deepEqual([width, height], [64, 48]);
  t.true(red > 245 && green < 10 && blue < 10, `${red} ${green} ${blue}`);
});
