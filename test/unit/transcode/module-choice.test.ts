import test from 'ava';
import { chooseDecoder, chooseEncoder, type Offer } from '../../../src/transcode/module-choice.ts';
import type { Device } from '../../../src/transcode/hardware.ts';

const ENCODERS = ['libopenh264', 'libx264', 'libvpx', 'aac', 'libopus', 'mjpeg', 'libsvtav1', 'h264_nvenc'];
const card = (id: number): Device => ({
  module: 'nv',
  id,
  displayName: `Card ${id}`,
  busId: `0${id}`,
  encoderSuffix: 'nvenc',
  decoderSuffix: 'cuvid',
  encodeWith: [],
  filter: 'format=nv12',
  encoderOptions: ['-gpu', String(id)],
  decodeWith: [],
  decodeFilter: [],
});

const OFFER: Offer = {
  capabilities: {
    path: 'ffmpeg',
    encoders: new Set(ENCODERS),
    decoders: new Set(['h264', 'aac', 'libdav1d']),
    filters: new Set<string>(),
  },
  devices: [
    { device: card(0), encodes: ['H265'], decodes: [] },
    { device: card(1), encodes: ['H264'], decodes: ['H264'] },
  ],
};
const SOFTWARE: Offer = { ...OFFER, devices: [] };

const chosen = (codec: Parameters<typeof chooseEncoder>[0], modules?: string, offer = OFFER) => {
  const result = chooseEncoder(codec, modules, offer);
  return 'reason' in result ? result.reason : [result.choice.name, result.choice.ffmpegName, ...result.passedOver];
};

test('the first available module is taken where none is named', (t) => {
  t.deepEqual(chosen('H264'), ['openh264:0', 'libopenh264']);
  t.deepEqual(chosen('AAC'), ['aac:0', 'aac']);
  t.deepEqual(chosen('AV1'), ['svtav1:0', 'libsvtav1']);
  t.deepEqual(chosen('JPEG'), ['image:0', 'mjpeg']);
  t.deepEqual(chosen('AVIF'), ['image:0', 'libsvtav1']);
  t.is(chosen('H265', undefined, SOFTWARE), 'this ffmpeg has no encoder for H265');
  t.is(chosen('MP3'), 'this ffmpeg has no encoder for MP3');
});

test('the first usable module is taken, and those before it are reported', (t) => {
  t.deepEqual(chosen('H264', 'x264'), ['x264:0', 'libx264']);
  t.deepEqual(chosen('H264', ' X264 , openh264'), ['x264:0', 'libx264']);
  t.deepEqual(chosen('H264', 'xma:0,nv:7,libvpx,x264:0'), ['x264:0', 'libx264', 'xma:0', 'nv:7', 'libvpx']);
  t.deepEqual(chosen('H264', 'default'), ['openh264:0', 'libopenh264']);
  t.deepEqual(chosen('H264', 'libx264'), ['x264:0', 'libx264']);
});

test('a module with a device is the named one, or any that encodes the codec', (t) => {
  t.deepEqual(chosen('H264', 'nv'), ['nv:1', 'h264_nvenc']);
  t.deepEqual(chosen('H264', 'nvenc:1,x264'), ['nv:1', 'h264_nvenc']);
  t.deepEqual(chosen('H264', 'nv:0,x264'), ['x264:0', 'libx264', 'nv:0']);
  t.deepEqual(chosen('H264', 'nv,x264', SOFTWARE), ['x264:0', 'libx264', 'nv']);
});

test('the default module is taken where none of those named is usable', (t) => {
  t.deepEqual(chosen('H264', 'nv', SOFTWARE), ['openh264:0', 'libopenh264', 'nv']);
  t.deepEqual(chosen('H264', '__proto__,x264:x,:,x264:0:1'), [
    'openh264:0',
    'libopenh264',
    '__proto__',
    'x264:x',
    ':',
    'x264:0:1',
  ]);
});

test('decoders are those of ffmpeg', (t) => {
  const decoder = (codec: Parameters<typeof chooseDecoder>[0]) => {
    const result = chooseDecoder(codec, OFFER);
    return 'reason' in result ? result.reason : [result.choice.name, result.choice.ffmpegName];
  };
  t.deepEqual(decoder('H264'), ['default:0', 'h264']);
  t.deepEqual(decoder('AV1'), ['default:0', 'libdav1d']);
  t.is(decoder('OPUS'), 'this ffmpeg has no decoder for OPUS');
});
