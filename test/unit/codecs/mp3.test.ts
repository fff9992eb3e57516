import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { parseMp3Frame } from '../../../src/codecs/mp3.ts';

const hex = (text: string) => Buffer.from(text, 'hex');

test('frame headers of all three versions', (t) => {
  t.deepEqual(parseMp3Frame(hex('fffb9064')), { samplerate: 44_100, channels: 2, samplesPerFrame: 1152 });
  t.deepEqual(parseMp3Frame(hex('fffb94c4')), { samplerate: 48_000, channels: 1, samplesPerFrame: 1152 });
  t.deepEqual(parseMp3Frame(hex('fff39864')), { samplerate: 16_000, channels: 2, samplesPerFrame: 576 });
  t.deepEqual(parseMp3Frame(hex('ffe318c4')), { samplerate: 8_000, channels: 1, samplesPerFrame: 576 });
});

test('what is no such frame is refused', (t) => {
  for (const bytes of ['', 'fffb90', '00fb9064', 'fffd9064', 'fffb9c64', 'ffeb9064']) {
    t.throws(() => parseMp3Frame(hex(bytes)), { instanceOf: BitstreamError }, bytes);
  }
});
