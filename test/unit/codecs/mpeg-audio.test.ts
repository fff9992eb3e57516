import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { parseMpegAudioFrame } from '../../../src/codecs/mpeg-audio.ts';

const hex = (text: string) => Buffer.from(text, 'hex');

test('frame headers of all three versions of layer III', (t) => {
  const headers = ['fffb9064', 'fffb94c4', 'fff39864', 'ffe318c4'].map((bytes) => parseMpegAudioFrame(hex(bytes)));
  t.deepEqual(headers, [
    { layer: 3, samplerate: 44_100, channels: 2, samplesPerFrame: 1152, bytes: 417 },
    { layer: 3, samplerate: 48_000, channels: 1, samplesPerFrame: 1152, bytes: 384 },
    { layer: 3, samplerate: 16_000, channels: 2, samplesPerFrame: 576, bytes: 360 },
    { layer: 3, samplerate: 8000, channels: 1, samplesPerFrame: 576, bytes: 72 },
  ]);
});

test('frame headers of layer II, with and without padding', (t) => {
  const frame = { layer: 2, channels: 2, samplesPerFrame: 1152 } as const;
  t.deepEqual(parseMpegAudioFrame(hex('fffde404')), { ...frame, samplerate: 48_000, bytes: 1152 });
  t.deepEqual(parseMpegAudioFrame(hex('fffde004')), { ...frame, samplerate: 44_100, bytes: 1253 });
  t.deepEqual(parseMpegAudioFrame(hex('fffde204')), { ...frame, samplerate: 44_100, bytes: 1254 });
});

test('bytes that are no MPEG audio frame are refused', (t) => {
  for (const bytes of ['', 'fffb90', '00fb9064', 'ffff9064', 'fffb9c64', 'ffeb9064', 'fffb0064', 'fffbf064']) {
    t.throws(() => parseMpegAudioFrame(hex(bytes)), { instanceOf: BitstreamError }, bytes);
  }
});
