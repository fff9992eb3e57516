import test from 'ava';
import { parseAc3Frame } from '../../../src/codecs/ac3.ts';
import { BitstreamError } from '../../../src/codecs/bits.ts';

const hex = (text: string) => Buffer.from(text, 'hex');

test('headers that ffmpeg writes', (t) => {
  const headers = ['0b773e71104043e1', '0b77a8e6504043e1', '0b7728191e40ebf8', '0b7700bf3287c000'].map((bytes) =>
    parseAc3Frame(hex(bytes)),
  );
  const samplesPerFrame = 1536;
  t.deepEqual(headers, [
    { codec: 'AC3', samplerate: 48_000, channels: 2, samplesPerFrame, bytes: 512 },
    { codec: 'AC3', samplerate: 44_100, channels: 2, samplesPerFrame, bytes: 556 },
    { codec: 'AC3', samplerate: 48_000, channels: 6, samplesPerFrame, bytes: 1792 },
    { codec: 'EAC3', samplerate: 48_000, channels: 1, samplesPerFrame, bytes: 384 },
  ]);
});

test('bytes that are no AC-3 frame are refused', (t) => {
  const cases = [
    '',
    '0b773e71104043',
    '0c773e71104043e1',
    '0b773e71d04043e1',
    '0b773e71264043e1',
    '0b773e71c04043e1',
    '0b7700bff287c000',
    '0b773e71108843e1',
  ];
  const refused = cases.filter((bytes) => {
    try {
      parseAc3Frame(hex(bytes));
      return false;
    } catch (error) {
      return error instanceof BitstreamError;
    }
  });
  t.deepEqual(refused, cases);
});
