import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import { buildFlacHeader, flacSamples, parseStreamInfo, streamInfoOf } from '../../../src/codecs/flac.ts';
import { seeded } from './vectors.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
/** What ffmpeg 5.1 writes for a second of stereo at 48 kHz. */
const INFO = '1200120000025800051b0bb802f00000bb80a316b305f13b13fe767b3d0d068f95bc';
const STEREO = { samplerate: 48_000, channels: 2, bitsPerSample: 16, maxBlock: 4608 };

test('the stream information of FLAC is found alone, as a block, and behind the marker with further blocks', (t) => {
  const headers = [INFO, `00000022${INFO}`, `80000022${INFO}`, `664c614300000022${INFO}8400002e0d000000`];
  for (const header of headers) {
    t.is(streamInfoOf(hex(header)).toString('hex'), INFO, header);
    t.deepEqual(parseStreamInfo(streamInfoOf(hex(header))), STEREO);
  }
  t.is(buildFlacHeader(hex(INFO)).toString('hex'), `664c614380000022${INFO}`);
});

test('the stream information of FLAC with 24 bits at 96 kHz in one channel', (t) => {
  const info = '1000100000049c0008941770017000007080a60464d9430a1a0eee6bc12a36220000';
  t.deepEqual(parseStreamInfo(hex(info)), { samplerate: 96_000, channels: 1, bitsPerSample: 24, maxBlock: 4096 });
});

test('what is no FLAC header is refused', (t) => {
  const cases = [
    '',
    '664c6143',
    '664c614384000022',
    INFO.slice(2),
    `04000022${INFO}`,
    `00000023${INFO}00`,
    `664c614300000022${INFO.slice(2)}`,
  ];
  for (const header of cases) t.throws(() => streamInfoOf(hex(header)), { instanceOf: BitstreamError }, header);
  // no sample rate, and blocks of fewer samples than there may be
  for (const info of [INFO.replace('0bb802', '000002'), INFO.replace('12001200', '00000000')])
    t.throws(() => parseStreamInfo(hex(info)), { instanceOf: BitstreamError }, info);
});

test('the samples of a FLAC frame are in its header: a usual size, or one that is stored in one or two bytes', (t) => {
  const frames: readonly (readonly [string, number])[] = [
    ['fff85a8800374e00', 4608],
    ['fff87a880a077f60', 1920],
    ['fff8698800bf', 192],
    ['fff9198800', 192],
    ['fff8298800', 576],
    ['fff8898800', 256],
    ['fff8f98800', 32_768],
    // numbers of two, three and seven bytes
    ['fff87988c280000f', 16],
    ['fff87988e28080ffff', 65_536],
    ['fff96988fe82808080808007', 8],
  ];
  for (const [frame, samples] of frames) t.is(flacSamples(hex(frame)), samples, frame);
});

test('bytes that are no FLAC frame are refused', (t) => {
  const cases = [
    '',
    'fff85a88',
    'fff05a8800',
    'fffc5a8800',
    'fff80a8800',
    'fff8798880077f',
    'fff87988ff077f',
    'fff8798800',
    'fff8798800ff',
  ];
  for (const frame of cases) t.throws(() => flacSamples(hex(frame)), { instanceOf: BitstreamError }, frame);
});

test('random headers and frames of FLAC are read or refused, without any other error', (t) => {
  const random = seeded(11);
  for (let round = 0; round < 20_000; round++) {
    const data = Buffer.from(Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256)));
    if (round % 2 === 0) data.set(hex(round % 4 === 0 ? '664c614300000022' : 'fff87a88').subarray(0, data.length));
    for (const read of [() => parseStreamInfo(streamInfoOf(data)), () => flacSamples(data)]) {
      try {
        t.truthy(read());
      } catch (error) {
        t.true(error instanceof BitstreamError, String(error));
      }
    }
  }
});
