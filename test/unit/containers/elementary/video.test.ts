import test from 'ava';
import { annexBToLengths } from '../../../../src/codecs/nal.ts';
import { videoState } from '../../../../src/containers/elementary/video.ts';
import type { VideoCodec } from '../../../../src/core/track.ts';
import { box, ivfFrames, samples, vector, withRenderSize } from '../../codecs/vectors.ts';

/** The format of what a stream begins with. */
function formatOf(codec: VideoCodec, first: Buffer, record?: Buffer) {
  const state = videoState(codec);
  if (record !== undefined) state.configure(record);
  state.frame(first);
  return state.format;
}

test('the shape of samples is that of the SPS, in a record and among the frames', (t) => {
  const mp4 = vector('h264-baseline.mp4');
  const [first] = samples(mp4) as [Buffer];
  t.like(formatOf('H264', first, box(mp4, 'avcC')), { width: 66, height: 50, sar: { num: 12, den: 11 } });
  const inBand = annexBToLengths(Buffer.from(vector('h264-baseline.h264')));
  t.like(formatOf('H264', inBand), { sar: { num: 12, den: 11 } });
  const wide = annexBToLengths(Buffer.from(vector('h265-422-hrd.h265')));
  t.like(formatOf('H265', wide), { sar: { num: 16, den: 11 } });
});

test('square samples and undeclared colour are absent', (t) => {
  const plain = formatOf('H265', annexBToLengths(Buffer.from(vector('h265-main.h265'))));
  t.deepEqual(Object.keys(plain ?? {}), ['config', 'width', 'height', 'framerate']);
  const [frame] = ivfFrames(vector('vp9-profile0.ivf')) as [Buffer];
  t.deepEqual(Object.keys(formatOf('VP9', frame) ?? {}), ['config', 'width', 'height', 'framerate']);
});

test('colour is that of the bitstream of each codec, and of the record of VP9', (t) => {
  const hdr = formatOf('H265', annexBToLengths(Buffer.from(vector('h265-main10-hdr.h265'))));
  t.deepEqual(hdr?.colour, { primaries: 9, transfer: 16, matrix: 9, fullRange: true });
  const usual = formatOf('H264', annexBToLengths(Buffer.from(vector('h264-high-bframes.h264'))));
  t.deepEqual(usual?.colour, { primaries: 1, transfer: 1, matrix: 1, fullRange: false });
  const [unit] = samples(vector('av1-aom-444.mp4')) as [Buffer];
  t.deepEqual(formatOf('AV1', unit)?.colour, { primaries: 9, transfer: 16, matrix: 9, fullRange: false });
  const [frame] = ivfFrames(vector('vp9-profile0.ivf')) as [Buffer];
  const record = Buffer.from('020a a3 09 10 09 0000'.replaceAll(' ', ''), 'hex');
  const colour = { primaries: 9, transfer: 16, matrix: 9, fullRange: true };
  t.deepEqual(formatOf('VP9', frame, record)?.colour, colour);
});

test('key frames of VP9 with another shape are another format', (t) => {
  const [key, inter, next] = ivfFrames(vector('vp9-profile0.ivf')) as [Buffer, Buffer, Buffer];
  const state = videoState('VP9');
  state.frame(key);
  const square = state.format;
  state.frame(inter);
  t.is(state.format, square);
  const narrow = withRenderSize(next, 68, 240, 180);
  state.frame(narrow);
  t.deepEqual(state.format, { ...square, sar: { num: 3, den: 4 } } as typeof state.format);
  const told = state.format;
  state.frame(narrow);
  t.is(state.format, told);
  state.frame(key);
  t.deepEqual(state.format, square);
});
