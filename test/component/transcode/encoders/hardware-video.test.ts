import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import type { Choice } from '../../../../src/transcode/module-choice.ts';
import { ffmpegArguments } from '../../../../src/transcode/command.ts';
import type { Device } from '../../../../src/transcode/hardware.ts';
import { FFMPEGS } from '../../../support/media/ffmpeg.ts';
import { PICTURE, videoJob } from '../command-support.ts';

// No machine of the tests has such a device: that commands are right is known as far as ffmpeg reads their options.

const run = promisify(execFile);
const UPLOAD = 'format=nv12,hwupload';
const VAAPI_DEVICE = ['-init_hw_device', 'vaapi=d:/dev/dri/renderD128', '-filter_hw_device', 'd'];

function choice(module: Device['module'], ffmpegName: string, more: Partial<Device> = {}): Choice {
  const device: Device = {
    module,
    id: 0,
    displayName: 'a card',
    busId: '0000:01:00.0',
    encoderSuffix: '',
    decoderSuffix: undefined,
    encodeWith: [],
    filter: 'format=nv12',
    encoderOptions: [],
    decodeWith: [],
    decodeFilter: [],
    ...more,
  };
  return { module, name: `${module}:0`, ffmpegName, device };
}

const DECODER: Choice = { module: 'default', name: 'default:0', ffmpegName: 'h264' };
const NVENC = choice('nv', 'h264_nvenc', { encoderOptions: ['-gpu', '0'] });

function argumentsFor(chosen: Choice, encoding: Parameters<typeof videoJob>[0]): string[] {
  const jobs = [{ job: videoJob(encoding), choice: chosen }];
  return ffmpegArguments({
    tracks: [PICTURE],
    decoders: [DECODER],
    jobs,
    decodes: { threadCount: 2, onlyKeyframes: false },
  });
}

/** The options from that of the encoder on, without those of the container. */
const encoderOptions = (args: readonly string[]) => args.slice(args.indexOf('-c:v'), args.indexOf('-strict'));
const RATE = ['-b:v', '100000', '-maxrate', '100000', '-bufsize', '100000', '-g', '9999'];

test('arguments of NVENC encoders', (t) => {
  const args = argumentsFor(NVENC, { preset: 'slow', profile: 'main', bFrames: 2, lookahead: 8 });
  t.true(args.includes('scale=160:92,format=nv12'));
  t.deepEqual(encoderOptions(args), [
    '-c:v',
    'h264_nvenc',
    '-gpu',
    '0',
    '-preset',
    'p6',
    '-tune',
    'll',
    '-rc',
    'cbr',
    '-profile:v',
    'main',
    '-bf',
    '2',
    ...RATE,
    '-delay',
    '0',
    '-forced-idr',
    '1',
    '-rc-lookahead',
    '8',
    '-no-scenecut',
    '1',
  ]);
});

test('VAAPI gets its frames on the device', (t) => {
  const args = argumentsFor(choice('vaapi', 'hevc_vaapi', { encodeWith: VAAPI_DEVICE, filter: UPLOAD }), {
    codec: 'H265',
    profile: 'main',
  });
  t.true(args.join(' ').includes(VAAPI_DEVICE.join(' ')));
  t.true(args.indexOf('-init_hw_device') < args.indexOf('-i'));
  t.true(args.includes(`scale=160:92,${UPLOAD}`));
  t.deepEqual(encoderOptions(args), [
    '-c:v',
    'hevc_vaapi',
    '-compression_level',
    '7',
    '-rc_mode',
    'CBR',
    '-bf',
    '0',
    ...RATE,
    '-async_depth',
    '1',
  ]);
});

test('arguments of Quick Sync encoders', (t) => {
  const qsv = choice('qsv', 'h264_qsv', { encodeWith: ['-init_hw_device', 'qsv=d'], filter: UPLOAD });
  t.deepEqual(
    encoderOptions(argumentsFor(qsv, { preset: 'medium', profile: 'baseline', extraOptions: 'rdo=1:look_ahead=1' })),
    [
      '-c:v',
      'h264_qsv',
      '-preset',
      'medium',
      '-profile:v',
      'baseline',
      '-bf',
      '0',
      ...RATE,
      '-async_depth',
      '1',
      '-forced_idr',
      '1',
      '-rdo:v',
      '1',
    ],
  );
});

test("ffmpeg gives an encoder of a device the source's frame rate: its bitrate is for as many frames", (t) => {
  const args = argumentsFor(NVENC, { framerate: 10 });
  t.is(args[args.indexOf('-b:v') + 1], '300000');
});

for (const [name, ffmpeg] of FFMPEGS) {
  test(`${name} reads the options of NVENC, and ends for want of a card`, async (t) => {
    const args = argumentsFor(NVENC, {
      preset: 'slow',
      profile: 'main',
      bFrames: 2,
      lookahead: 8,
      extraOptions: 'spatial-aq=1',
    });
    const input = ['-f', 'lavfi', '-i', 'color=size=160x92:rate=30:duration=1'];
    const filter = args.indexOf('-map');
    const output = args.slice(filter).map((arg) => (arg === 'pipe:3' ? '/dev/null' : arg));
    const failure = await t.throwsAsync(run(ffmpeg, ['-hide_banner', '-loglevel', 'error', '-y', ...input, ...output]));
    t.regex(String(failure), /cuda|nvenc/i);
    t.notRegex(String(failure), /Unrecognized|not found|has not been used|Unable to parse|Undefined constant/i);
  });
}
