import test from 'ava';
import { configOfAdts } from '../../../src/codecs/aac-program.ts';
import { LatmReader, loasBytes } from '../../../src/codecs/aac-latm.ts';
import { adtsFrames, parseAudioSpecificConfig } from '../../../src/codecs/aac.ts';
import { BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import { encode } from '../../support/media/ffmpeg-bytes.ts';

const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=44100', '-t', '1', '-c:a', 'aac'];

function readLoas(loas: Buffer): { frames: Buffer[]; config: Buffer | undefined } {
  const reader = new LatmReader();
  const frames: Buffer[] = [];
  for (let at = 0; at < loas.length;) {
    const end = at + (loasBytes(loas, at) as number);
    frames.push(...reader.frames(loas.subarray(at, end)));
    at = end;
  }
  return { frames, config: reader.config };
}

test('frames out of LOAS are those that ADTS holds', async (t) => {
  for (const format of [
    ['-ac', '2'],
    ['-ar', '24000', '-ac', '1'],
    ['-af', 'pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0'],
  ]) {
    const loas = await encode([...TONE, ...format, '-flags', '+bitexact', '-f', 'latm', '-smc-interval', '5']);
    const adts = await encode([...TONE, ...format, '-flags', '+bitexact', '-f', 'adts']);
    const expected = [...adtsFrames(adts)];
    const { frames, config } = readLoas(loas);
    t.deepEqual(
      frames,
      expected.map(({ payload }) => payload),
    );
    t.like(parseAudioSpecificConfig(config as Buffer), {
      samplerate: expected[0]?.header.samplerate,
      channels: expected[0]?.header.channels,
    });
  }
});

test('a stream that is joined has no frames before its configuration', async (t) => {
  const loas = await encode([...TONE, '-f', 'latm', '-smc-interval', '5']);
  const second = loasBytes(loas, 0) as number;
  const reader = new LatmReader();
  t.deepEqual(reader.frames(loas.subarray(second, second + (loasBytes(loas, second) as number))), []);
  t.is(loasBytes(loas, loas.length - 2), undefined);
  t.is(loasBytes(loas, 1), 0);
});

/** AudioMuxElement of version 1, several frames in one, with other data and a checksum. */
function versionOne(frames: readonly Buffer[]): Buffer {
  const writer = new BitWriter();
  writer.flag(false).flag(true).flag(false);
  writer.write(0, 2).write(0xff, 8);
  writer
    .flag(true)
    .write(frames.length - 1, 6)
    .write(0, 4)
    .write(0, 3);
  writer.write(0, 2).write(16, 8).write(0x1190, 16);
  writer.write(0, 3).write(0xff, 8).flag(true).write(0, 2).write(5, 8).flag(true).write(0xaa, 8);
  for (const frame of frames) {
    let left = frame.length;
    for (; left >= 255; left -= 255) writer.write(255, 8);
    writer.write(left, 8);
    for (const byte of frame) writer.write(byte, 8);
  }
  const element = writer.align().finish();
  return Buffer.concat([Buffer.of(0x56, 0xe0 | (element.length >> 8), element.length & 0xff), element]);
}

test('version 1 of LATM, with several frames in one', (t) => {
  const frames = [Buffer.alloc(300, 0x5a), Buffer.alloc(255, 0xc3), Buffer.alloc(1, 0x81)];
  const { frames: read, config } = readLoas(versionOne(frames));
  t.deepEqual(read, frames);
  t.is(config?.toString('hex'), '1190');
});

test('LATM that is cut off, or of several programs, is refused', (t) => {
  const loas = versionOne([Buffer.alloc(20, 1)]);
  for (let length = 4; length < loas.length; length++) {
    t.throws(() => new LatmReader().frames(loas.subarray(0, length)), { instanceOf: BitstreamError }, `${length}`);
  }
});

test('AAC channels of a program config element are read', async (t) => {
  const adts = await encode([...TONE, '-af', 'pan=6.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0|c6=c0', '-f', 'adts']);
  const [first] = adtsFrames(adts);
  t.is(first?.header.channelConfiguration, 0);
  const config = configOfAdts(first!.header, first!.payload);
  t.like(parseAudioSpecificConfig(config), { channels: 7, samplerate: 44_100, channelConfiguration: 0 });
  t.throws(() => configOfAdts(first!.header, Buffer.alloc(20)), { instanceOf: BitstreamError });
});
