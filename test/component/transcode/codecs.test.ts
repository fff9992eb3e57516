import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { writeScript } from '../../support/programs/script.ts';

function logged() {
  const lines: Record<string, unknown>[] = [];
  return { lines, log: pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) }) };
}

/** A folder with a program that answers as ffmpeg: `encodes` is what it does when it is to encode or decode. */
async function fakeFfmpeg(t: ExecutionContext, shape: { encoders: string[]; decoders?: string[]; encodes?: string }) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-codecs-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const list = (names: readonly string[]) => names.map((name) => ` V....D ${name}   a codec (codec x)`).join('\n');
  const path = writeScript(
    join(folder, 'ffmpeg'),
    `echo "$*" >> ${folder}/calls
case "$*" in
  -version) echo 'ffmpeg version 9.9' ;;
  *-encoders) cat <<'END'
Encoders:
 V..... = Video
 ------
${list(shape.encoders)}
END
    ;;
  *-filters) ;;
  *-decoders) cat <<'END'
Decoders:
 ------
${list(shape.decoders ?? [])}
END
    ;;
  *) ${shape.encodes ?? 'exit 1'} ;;
esac`,
  );
  const { lines, log } = logged();
  const calls = async () => (await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n');
  return { folder, lines, calls, inventory: new CodecInventory({ log, env: { KILN_FFMPEG: path }, root: folder }) };
}

async function addRenderNode(folder: string): Promise<void> {
  await mkdir(join(folder, 'dev/dri'), { recursive: true });
  for (const name of ['card0', 'renderD128']) await writeFile(join(folder, 'dev/dri', name), '');
  await mkdir(join(folder, 'sys/class/drm/renderD128'), { recursive: true });
  await symlink('../../../devices/0000:00:02.0', join(folder, 'sys/class/drm/renderD128/device'));
}

const ACTIVE_NONE = { active: { decoder: 0, encoder: 0 } };

test('the codec inventory lists what this ffmpeg was built with; the first module of a codec is the default', async (t) => {
  const { inventory } = await fakeFfmpeg(t, {
    encoders: ['libx264', 'libopenh264', 'libsvtav1', 'png', 'h264_nvenc', 'h264_vaapi'],
    decoders: ['h264', 'libdav1d', 'av1', 'mp3float'],
  });
  const software = { busId: '-', id: 0, isHwAccel: false, metrics: ACTIVE_NONE };
  const video = { ...software, mediaType: 'Video' } as const;
  t.deepEqual(await inventory.read(), [
    {
      ...video,
      displayName: 'FFmpeg video decoders',
      isDecoder: true,
      isEncoder: false,
      isDefault: true,
      module: 'default',
      name: 'default:0',
      supportedCodecs: ['H264', 'AV1'],
    },
    {
      ...video,
      displayName: 'OpenH264',
      isDecoder: false,
      isEncoder: true,
      isDefault: true,
      module: 'openh264',
      name: 'openh264:0',
      supportedCodecs: ['H264'],
    },
    {
      ...video,
      displayName: 'x264',
      isDecoder: false,
      isEncoder: true,
      isDefault: false,
      module: 'x264',
      name: 'x264:0',
      supportedCodecs: ['H264'],
    },
    {
      ...video,
      displayName: 'SVT-AV1',
      isDecoder: false,
      isEncoder: true,
      isDefault: true,
      module: 'svtav1',
      name: 'svtav1:0',
      supportedCodecs: ['AV1'],
    },
    {
      ...video,
      displayName: 'FFmpeg image encoders',
      isDecoder: false,
      isEncoder: true,
      isDefault: true,
      module: 'image',
      name: 'image:0',
      supportedCodecs: ['PNG', 'AVIF'],
    },
    {
      ...software,
      mediaType: 'Audio',
      displayName: 'FFmpeg audio decoders',
      isDecoder: true,
      isEncoder: false,
      isDefault: true,
      module: 'default',
      name: 'default:0',
      supportedCodecs: ['MP3'],
    },
  ]);
});

test('the machine is asked once, however many ask at once', async (t) => {
  const { inventory, calls } = await fakeFfmpeg(t, { encoders: ['libx264'] });
  const [first, second] = await Promise.all([inventory.read(), inventory.read()]);
  t.deepEqual(first, second);
  await inventory.read();
  t.deepEqual((await calls()).sort(), [
    '-hide_banner -decoders',
    '-hide_banner -encoders',
    '-hide_banner -filters',
    '-version',
  ]);
});

test('encoders and decoders at work are counted by module, direction and kind of media', async (t) => {
  const { inventory } = await fakeFfmpeg(t, { encoders: ['libx264'], decoders: ['h264', 'mp3'] });
  const active = async () =>
    (await inventory.read()).map(({ metrics }) => [metrics.active.encoder, metrics.active.decoder]);
  t.deepEqual(await active(), [
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
  const x264 = { mediaType: 'Video', name: 'x264:0' } as const;
  const ended = inventory.started(x264, 'encoder');
  inventory.started(x264, 'encoder');
  inventory.started({ mediaType: 'Video', name: 'default:0' }, 'decoder');
  t.deepEqual(await active(), [
    [0, 1],
    [2, 0],
    [0, 0],
  ]);
  ended();
  ended();
  t.deepEqual(await active(), [
    [0, 1],
    [1, 0],
    [0, 0],
  ]);
});

test('a device is listed by what it really encoded and decoded', async (t) => {
  const { inventory, folder, calls } = await fakeFfmpeg(t, {
    encoders: ['h264_vaapi', 'hevc_vaapi', 'vp9_vaapi', 'h264_qsv', 'libx264'],
    encodes: `case "$*" in
      *h264_vaapi*) echo nut ;;
      *hwdownload*) grep -q nut ;;
      *vp9_vaapi*) echo other ;;
      *) exit 1 ;;
    esac`,
  });
  await addRenderNode(folder);
  const devices = (await inventory.read()).filter(({ isHwAccel }) => isHwAccel);
  t.deepEqual(devices, [
    {
      busId: '0000:00:02.0',
      displayName: 'VAAPI (renderD128)',
      id: 0,
      isDecoder: true,
      isDefault: false,
      isEncoder: true,
      isHwAccel: true,
      mediaType: 'Video',
      metrics: ACTIVE_NONE,
      module: 'vaapi',
      name: 'vaapi:0',
      supportedCodecs: ['H264', 'VP9'],
    },
  ]);
  t.true(
    (await calls()).some((line) => line.includes('h264_qsv')),
    'Quick Sync was tried, and failed',
  );
});

test('NVIDIA devices are told apart by minor number, and decode where ffmpeg has a decoder for them', async (t) => {
  const { inventory, folder } = await fakeFfmpeg(t, {
    encoders: ['h264_nvenc', 'hevc_nvenc'],
    decoders: ['h264_cuvid'],
    encodes: 'case "$*" in *"-gpu 1"*) echo nut ;; *) exit 1 ;; esac',
  });
  for (const [minor, busId] of [
    [0, '0000:01:00.0'],
    [1, '0000:41:00.0'],
  ] as const) {
    const card = join(folder, 'proc/driver/nvidia/gpus', busId);
    await mkdir(card, { recursive: true });
    await writeFile(join(card, 'information'), `Model: \t\t Some Card ${minor}\nDevice Minor: \t ${minor}\n`);
  }
  const [device, ...others] = await inventory.read();
  t.deepEqual(others, []);
  t.like(device, {
    busId: '0000:41:00.0',
    displayName: 'Some Card 1',
    id: 1,
    module: 'nv',
    name: 'nv:1',
    isDecoder: true,
    isEncoder: true,
    supportedCodecs: ['H264', 'H265'],
  });
});

test('a device that hangs is given up in time, and left out', async (t) => {
  const { inventory, folder, lines, calls } = await fakeFfmpeg(t, {
    encoders: ['h264_vaapi', 'hevc_vaapi', 'libx264'],
    encodes: 'exec sleep 60',
  });
  await addRenderNode(folder);
  t.deepEqual(
    (await inventory.read()).map(({ name }) => name),
    ['x264:0'],
  );
  t.like(lines[0], {
    module: 'vaapi',
    encoder: 'h264_vaapi',
    msg: 'a hardware encoder did not answer in time and is not used',
  });
  t.false(
    (await calls()).some((line) => line.includes('hevc_vaapi')),
    'it is not asked for more',
  );
});

test('without an ffmpeg the inventory is empty, and the log says so once', async (t) => {
  const { lines, log } = logged();
  const inventory = new CodecInventory({ log, env: { KILN_FFMPEG: '/nowhere/ffmpeg' } });
  t.deepEqual(await inventory.read(), []);
  t.deepEqual(await inventory.read(), []);
  t.is(lines.length, 1);
  t.regex(JSON.stringify(lines[0]), /KILN_FFMPEG/);
});

test('an ffmpeg that was not there at first is asked when it is', async (t) => {
  const { folder } = await fakeFfmpeg(t, { encoders: ['libx264'] });
  const { log } = logged();
  const later = join(folder, 'later');
  const inventory = new CodecInventory({ log, env: { KILN_FFMPEG: later } });
  t.deepEqual(await inventory.read(), []);
  await symlink(join(folder, 'ffmpeg'), later);
  t.deepEqual(
    (await inventory.read()).map(({ name }) => name),
    ['x264:0'],
  );
});

test('the ffmpeg of this machine', async (t) => {
  const { log } = logged();
  const rows = await new CodecInventory({ log }).read();
  const row = (module: string, mediaType: string) =>
    rows.find((one) => one.module === module && one.mediaType === mediaType);
  t.deepEqual(row('x264', 'Video')?.supportedCodecs, ['H264']);
  t.like(row('default', 'Video'), { isDecoder: true, isEncoder: false, busId: '-' });
  t.deepEqual(row('default', 'Audio')?.supportedCodecs, [
    'AAC',
    'MP2',
    'MP3',
    'OPUS',
    'AC3',
    'EAC3',
    'FLAC',
    'PCMA',
    'PCMU',
    'G722',
  ]);
  for (const { module, id, name, isDecoder, isEncoder, supportedCodecs } of rows) {
    t.is(name, `${module}:${id}`);
    t.true(isDecoder || isEncoder);
    t.true(supportedCodecs.length > 0);
  }
  t.deepEqual(new Set(rows.map(({ mediaType, name }) => `${mediaType} ${name}`)).size, rows.length);
});
