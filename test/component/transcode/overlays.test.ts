import { execFile, spawn } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { VideoTrack } from '../../../src/core/track.ts';
import type { VideoEncoding } from '../../../src/transcode/encoding.ts';
import { overlayFilters } from '../../../src/transcode/overlay-filter.ts';
import { Overlays } from '../../../src/transcode/overlays.ts';
import { FFMPEG7 } from '../../support/media/ffmpeg.ts';
import { freePorts } from '../../support/network/ports.ts';
import { until } from '../../support/time/until.ts';
import { VIDEO } from '../../unit/core/support.ts';
import { recordNut, runWork } from '../../unit/transcode/run-command.ts';

const run = promisify(execFile);
const PICTURE = { width: 160, height: 90 };

/** A folder whose name is trouble for whoever does not escape it. */
async function workFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "kiln-overlay-test-[a,b];it's:"));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

/** Makes an image of one colour. */
async function image(file: string, colour: string, size: string): Promise<void> {
  const options = [
    '-loglevel',
    'error',
    '-f',
    'lavfi',
    '-i',
    `color=${colour}:size=${size},format=rgba`,
    '-frames:v',
    '1',
  ];
  await run('ffmpeg', [...options, ...(file.endsWith('.png') ? ['-pix_fmt', 'rgba'] : ['-pix_fmt', 'yuvj420p']), file]);
}

/** An overlay file with these contents, read for an output stream `live`. */
async function load(t: ExecutionContext, folder: string, xml: string) {
  const path = join(folder, 'OverlayInfo.xml');
  await writeFile(path, xml);
  const lines: string[] = [];
  const log = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const overlays = await Overlays.load(path, ['live', 'live_low'], log);
  t.teardown(() => overlays.close());
  return { overlays, lines };
}

const map = (...infos: string[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?><OverlayMap>${infos.map((info) => `<OverlayInfo>${info}</OverlayInfo>`).join('')}</OverlayMap>`;
const overlay = (url: string, rest = ''): string => `<Overlay><Url>${url}</Url>${rest}</Overlay>`;

/** Luma of the last of some frames that begin late, as an encoder's source does. */
async function lastFrame(ffmpeg: string, filters: string): Promise<Buffer> {
  const { stdout } = await run(
    ffmpeg,
    [
      '-loglevel',
      'error',
      '-f',
      'lavfi',
      '-i',
      'color=black:size=320x180:rate=5,setpts=PTS+5000/TB',
      '-frames:v',
      '5',
      '-copyts',
      '-vf',
      `${filters},format=gray`,
      '-f',
      'rawvideo',
      '-',
    ],
    { encoding: 'buffer', maxBuffer: 1e7 },
  );
  return stdout.subarray(-PICTURE.width * PICTURE.height);
}

/** Luma of the last frame of some H.264. */
async function decoded(h264: Buffer): Promise<Buffer> {
  const child = spawn('ffmpeg', [
    '-loglevel',
    'error',
    '-f',
    'h264',
    '-i',
    '-',
    '-f',
    'rawvideo',
    '-pix_fmt',
    'gray',
    '-',
  ]);
  child.stdin.end(h264);
  const pictures = await buffer(child.stdout);
  return pictures.subarray(-PICTURE.width * PICTURE.height);
}

for (const ffmpeg of ['ffmpeg', FFMPEG7]) {
  test(`images are drawn where they belong, by ${ffmpeg === FFMPEG7 ? 'ffmpeg 7' : 'the ffmpeg on PATH'}`, async (t) => {
    const folder = await workFolder(t);
    await image(join(folder, 'logo.png'), 'white', '64x32');
    await image(join(folder, 'half.jpg'), 'white', '32x32');
    const place = '<Left>MAIN_W-20</Left><Top>10</Top><Width>20</Width>';
    const { overlays, lines } = await load(
      t,
      folder,
      map(
        `<OutputStreamName>live</OutputStreamName>${overlay('logo.png', place)}` +
          overlay(
            'half.jpg',
            '<Left>8</Left><Top>MAIN_H / 2</Top><Width>16</Width><Height>8</Height><Opacity>50</Opacity>',
          ),
      ),
    );
    const drawn = overlays.of('live', 'video', PICTURE);
    t.like(drawn, [
      { format: 'png', left: 140, top: 10, width: 20, height: 10, opacity: 100 },
      { format: 'jpeg', left: 8, top: 45, width: 16, height: 8, opacity: 50 },
    ]);
    t.deepEqual(lines, []);
    // the copies in a folder whose name has to be escaped
    const placed = drawn.map((one) => ({ ...one, file: join(folder, one.format === 'png' ? 'logo.png' : 'half.jpg') }));
    const frame = await lastFrame(ffmpeg, overlayFilters('scale=160:90', placed, 'o0'));
    const luma = (x: number, y: number): number => frame[y * PICTURE.width + x] as number;
    t.true(luma(150, 15) > 225);
    for (const [x, y] of [
      [136, 15],
      [150, 7],
      [150, 22],
      [20, 15],
    ] as const)
      t.true(luma(x, y) < 30, `${x},${y}`);
    const half = luma(16, 49);
    t.true(half > 90 && half < 160, `half is ${half}`);
    for (const [x, y] of [
      [4, 49],
      [27, 49],
      [16, 42],
      [16, 56],
    ] as const)
      t.true(luma(x, y) < 30, `${x},${y}`);
  });
}

for (const ffmpeg of ['ffmpeg', FFMPEG7]) {
  test(`encodes of one source have overlays of their own, by ${ffmpeg === FFMPEG7 ? 'ffmpeg 7' : 'the ffmpeg on PATH'}`, async (t) => {
    const folder = await workFolder(t);
    await image(join(folder, 'a.png'), 'white', '20x20');
    const { overlays } = await load(
      t,
      folder,
      map(
        `<OutputStreamName>live</OutputStreamName>${overlay('a.png')}${overlay('a.png', '<Left>MAIN_W-20</Left>')}`,
        `<OutputStreamName>live_low</OutputStreamName>${overlay('a.png', '<Top>MAIN_H-20</Top>')}`,
      ),
    );
    const source = [
      '-f',
      'lavfi',
      '-i',
      'color=black:size=320x180:rate=10',
      '-t',
      '2',
      '-c:v',
      'libx264',
      '-g',
      '10',
      '-pix_fmt',
      'yuv420p',
    ];
    const from: VideoTrack = { ...VIDEO, width: 320, height: 180, framerate: 10 };
    const encoding: VideoEncoding = {
      type: 'video',
      codec: 'H264',
      ...PICTURE,
      bitrate: 200_000,
      framerate: 0,
      skipFrames: undefined,
      expectedFramerate: 10,
      keyFrames: 1,
      keyFrameInterval: 0,
      preset: 'faster',
      profile: undefined,
      bFrames: 0,
      lookahead: -1,
      threads: 1,
      modules: 'x264,openh264',
      extraOptions: undefined,
    };
    const drawn = [overlays.of('live', 'v', PICTURE), undefined, overlays.of('live_low', 'v', PICTURE)];
    const jobs = drawn.map((one) => ({
      from,
      encoding: one === undefined ? encoding : { ...encoding, overlays: one },
    }));
    const { outputs, stderr, code } = await runWork(ffmpeg, await recordNut(source), { tracks: [from], jobs });
    t.is(code, 0);
    t.is(stderr, '');
    const corners = await Promise.all(
      outputs.map(async ({ stream, frames }) => {
        const picture = await decoded(
          Buffer.concat([stream?.extradata ?? Buffer.alloc(0), ...frames.map(({ data }) => data)]),
        );
        t.is(picture.length, PICTURE.width * PICTURE.height);
        return [
          [8, 8],
          [152, 8],
          [8, 82],
          [152, 82],
        ].map(([x = 0, y = 0]) => (picture[y * PICTURE.width + x] as number) > 128);
      }),
    );
    t.deepEqual(corners, [
      [true, true, false, false],
      [false, false, false, false],
      [false, false, true, false],
    ]);
  });
}

test('rules choose output streams and variants by wildcards; images keep their size and proportions', async (t) => {
  const folder = await workFolder(t);
  await image(join(folder, 'a.png'), 'red', '40x20');
  const { overlays, lines } = await load(
    t,
    folder,
    map(
      `<OutputStreamName>live*</OutputStreamName><VariantNames>*_1080p, *_720p</VariantNames>${overlay('a.png')}`,
      `<OutputStreamName>live_low</OutputStreamName>${overlay('a.png', '<Height>10</Height>')}${overlay('./a.png', '<Width>10</Width>')}`,
      `<Enable>false</Enable><OutputStreamName>*</OutputStreamName>${overlay('a.png')}`,
      `<OutputStreamName>other</OutputStreamName>${overlay('not-there.png')}`,
    ),
  );
  const sizes = (output: string, variant: string) =>
    overlays.of(output, variant, PICTURE).map(({ width, height }) => `${width}x${height}`);
  t.deepEqual(sizes('live', 'h264_720p'), ['40x20']);
  t.deepEqual(sizes('live', 'H264_720P'), ['40x20']);
  t.deepEqual(sizes('live', 'h264_720p_more'), []);
  t.deepEqual(sizes('live_low', 'x_1080p'), ['40x20', '20x10', '10x5']);
  t.deepEqual(sizes('live_low', 'small'), ['20x10', '10x5']);
  t.deepEqual(sizes('other', 'small'), []);
  t.deepEqual(lines, [], 'what only other streams need is not looked for');
});

test('images come from URLs, are copied, and go when the stream does', async (t) => {
  const folder = await workFolder(t);
  const file = join(folder, 'a.png');
  await image(file, 'red', '4x4');
  const server = createServer((request, response) => {
    if (request.url === '/a.png') createReadStream(file).pipe(response);
    else if (request.url === '/moved.png') response.writeHead(302, { location: '/a.png' }).end();
    else if (request.url === '/huge.png') response.end(Buffer.alloc(9 * 1024 * 1024));
    else response.writeHead(404).end();
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => void server.close());
  const home = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [nobody = 0] = freePorts(1);
  const urls = [
    `${home}/a.png`,
    `${home}/moved.png`,
    pathToFileURL(file).href,
    `${home}/huge.png`,
    `${home}/none.png`,
    `http://127.0.0.1:${nobody}/a.png`,
  ];
  const { overlays, lines } = await load(
    t,
    folder,
    map(`<OutputStreamName>*</OutputStreamName>${urls.map((url) => overlay(url)).join('')}`),
  );
  const files = overlays.of('live', 'v', PICTURE).map((one) => one.file);
  t.is(files.length, 3);
  t.true(files.every((one) => existsSync(one)));
  t.deepEqual([...lines].sort(), [
    `an overlay image is not drawn: connect ECONNREFUSED 127.0.0.1:${nobody}`,
    'an overlay image is not drawn: larger than 8388608 bytes',
    'an overlay image is not drawn: status 404',
  ]);
  overlays.close();
  overlays.close();
  await until('the copies are gone', () => !files.some((one) => existsSync(one)));
});

test('overlay files that are no images are not drawn', async (t) => {
  const folder = await workFolder(t);
  await writeFile(join(folder, 'list.png'), 'ffconcat version 1.0\nfile /etc/passwd\n');
  await writeFile(join(folder, 'empty.png'), '');
  const bomb = Buffer.concat([
    Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
    Buffer.from([0, 1, 0, 0, 0, 0, 0, 1, 8, 6, 0, 0, 0]),
  ]);
  await writeFile(join(folder, 'bomb.png'), bomb);
  await writeFile(join(folder, 'cut.jpg'), Buffer.from('ffd8ffe000', 'hex'));
  await mkdir(join(folder, 'folder.png'));
  await run('mkfifo', [join(folder, 'pipe.png')]);
  const names = ['list.png', 'empty.png', 'bomb.png', 'cut.jpg', 'folder.png', 'pipe.png', 'none.png', 'file:///%00'];
  const { overlays, lines } = await load(
    t,
    folder,
    map(`<OutputStreamName>*</OutputStreamName>${names.map((name) => overlay(name)).join('')}`),
  );
  t.deepEqual(overlays.of('live', 'v', PICTURE), []);
  t.is(lines.length, names.length);
  const told = lines.map((line) => line.replace('an overlay image is not drawn: ', '')).join('\n');
  for (const part of [/neither PNG nor JPEG/, /65536x1 is not within/, /not a regular file/, /ENOENT/])
    t.regex(told, part);
});

const WRONG: Record<string, [xml: string, message: RegExp]> = {
  'no XML': ['<OverlayMap>', /OverlayInfo.xml:1: /],
  'another root': ['<Server/>', /the root element must be OverlayMap/],
  'entities of its own': ['<!DOCTYPE x [<!ENTITY a "b">]><OverlayMap/>', /a document type is not allowed/],
  'no output stream': [map(overlay('a.png')), /OverlayMap\/OverlayInfo\[1\]\/OutputStreamName: is missing/],
  'a length that is none': [
    map(`<OutputStreamName>*</OutputStreamName>${overlay('a.png', '<Left>10:y=5</Left>')}`),
    /OverlayInfo\[1\]\/Overlay\[1\]\/Left: "10:y=5" is not a length/,
  ],
  'too much opacity': [
    map(`<OutputStreamName>*</OutputStreamName>${overlay('a.png', '<Opacity>101</Opacity>')}`),
    /Opacity: 101 is not an integer \(0..100\)/,
  ],
};

for (const [name, [xml, message]] of Object.entries(WRONG)) {
  test(`a wrong overlay file draws nothing and is reported: ${name}`, async (t) => {
    const { overlays, lines } = await load(t, await workFolder(t), xml);
    t.deepEqual(overlays.of('live', 'v', PICTURE), []);
    t.is(lines.length, 1);
    t.regex(lines[0] ?? '', message);
  });
}

test('an overlay file that is not there', async (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  t.deepEqual((await Overlays.load('/nowhere/at/all.xml', ['live'], log)).of('live', 'v', PICTURE), []);
  t.regex(lines.join(), /ENOENT/);
});

test.serial('a machine without room for images draws none', async (t) => {
  const folder = await workFolder(t);
  await image(join(folder, 'logo.png'), 'white', '64x32');
  const { TMPDIR } = process.env;
  process.env.TMPDIR = join(folder, 'nowhere');
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  const { overlays, lines } = await load(
    t,
    folder,
    map(`<OutputStreamName>*</OutputStreamName>${overlay('logo.png')}`),
  );
  t.deepEqual(overlays.of('live', 'v', PICTURE), []);
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /^no overlays are drawn: ENOENT/);
});
