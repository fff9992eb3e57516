import test from 'ava';
import { buildAdtsHeader } from '../../../../src/codecs/aac.ts';
import { AudioFrames } from '../../../../src/containers/mpegts/audio-frames.ts';
import { audioSyntax, type AudioForm, type AudioFrame } from '../../../../src/containers/mpegts/audio-syntax.ts';
import { opusControlHeader, opusHeadOf, readOpusUnit } from '../../../../src/containers/mpegts/opus.ts';
import { parseOpusHead } from '../../../../src/codecs/opus.ts';

function setUp(form: AudioForm, header?: Buffer) {
  const frames: { frame: AudioFrame; time: number }[] = [];
  const faults: string[] = [];
  const cutter = new AudioFrames(audioSyntax(form, header), {
    frame: (frame, time) => frames.push({ frame, time }),
    fault: (reason) => faults.push(reason),
  });
  return { cutter, frames, faults, times: () => frames.map(({ time }) => Math.round(time)) };
}

const FORMAT = { objectType: 2, samplerate: 48_000, channelConfiguration: 2 };
const adts = (fill: number, bytes = 50) => Buffer.concat([buildAdtsHeader(FORMAT, bytes), Buffer.alloc(bytes, fill)]);

test('several audio frames in a PES packet have times of their own', (t) => {
  const { cutter, frames, times } = setUp('ADTS');
  cutter.push(Buffer.concat([adts(1), adts(2), adts(3)]), 90_000);
  t.deepEqual(times(), [90_000, 91_920, 93_840]);
  t.deepEqual(
    frames.map(({ frame }) => frame.data),
    [1, 2, 3].map((fill) => Buffer.alloc(50, fill)),
  );
  t.is(frames[0]?.frame.header?.toString('hex'), '1190');
  t.is(frames[2]?.frame.header, frames[0]?.frame.header);
});

test('a frame that ends in the next packet; the time there is that of the frame behind it', (t) => {
  const all = Buffer.concat([adts(1), adts(2), adts(3), adts(4)]);
  for (let cut = 58; cut < 57 * 3; cut++) {
    const { cutter, frames, faults, times } = setUp('ADTS');
    cutter.push(all.subarray(0, cut), 0);
    cutter.push(all.subarray(cut), 500_000);
    const begun = Math.ceil(cut / 57);
    t.deepEqual(
      times(),
      [0, 1, 2, 3].map((i) => (i < begun ? i * 1920 : 500_000 + (i - begun) * 1920)),
      `${cut}`,
    );
    t.is(frames.length, 4);
    t.deepEqual(faults, []);
  }
});

test('packets without a time go on; before the first time there is nothing', (t) => {
  const { cutter, times } = setUp('ADTS');
  cutter.push(adts(1), undefined);
  cutter.push(adts(2), 100);
  cutter.push(adts(3), undefined);
  t.deepEqual(times(), [100, 2020]);
});

test('frames are found behind other bytes, and behind a loss', (t) => {
  const { cutter, frames, faults } = setUp('ADTS');
  cutter.push(Buffer.concat([Buffer.from('00ff00fff1', 'hex'), adts(1), adts(2)]), 0);
  t.deepEqual(
    frames.map(({ frame }) => frame.data[0]),
    [1, 2],
  );
  cutter.push(adts(3).subarray(0, 30), 3840);
  cutter.lost();
  cutter.push(Buffer.concat([adts(3).subarray(40), adts(4), adts(5)]), 90_000);
  t.deepEqual(
    frames.map(({ frame, time }) => [frame.data[0], time]),
    [
      [1, 0],
      [2, 1920],
      [4, 90_000],
      [5, 91_920],
    ],
  );
  t.true(faults.length > 0);
});

test('MPEG audio declares its layer, AC-3 its kind', (t) => {
  const layer3 = Buffer.concat([Buffer.from('fffb9064', 'hex'), Buffer.alloc(413)]);
  const layer2 = Buffer.concat([Buffer.from('fffda404', 'hex'), Buffer.alloc(572)]);
  const mpeg = setUp('MPEG audio');
  mpeg.cutter.push(Buffer.concat([layer3, layer3]), 0);
  mpeg.cutter.push(layer2, 9000);
  t.deepEqual(
    mpeg.frames.map(({ frame }) => [frame.codec, frame.data.length]),
    [
      ['MP3', 417],
      ['MP3', 417],
      ['MP2', 576],
    ],
  );
  const plain = Buffer.concat([Buffer.from('0b773e71104043e1', 'hex'), Buffer.alloc(504)]);
  const enhanced = Buffer.concat([Buffer.from('0b7700bf3287c000', 'hex'), Buffer.alloc(376)]);
  // the same with more channels: strmtyp 1
  const dependent = Buffer.concat([Buffer.from('0b7740bf3287c000', 'hex'), Buffer.alloc(376)]);
  const ac3 = setUp('AC-3');
  ac3.cutter.push(Buffer.concat([plain, plain]), 0);
  ac3.cutter.push(Buffer.concat([enhanced, dependent, enhanced, dependent]), 90_000);
  t.deepEqual(
    ac3.frames.map(({ frame, time }) => [frame.codec, frame.data.length, time]),
    [
      ['AC3', 512, 0],
      ['AC3', 512, 2880],
      ['EAC3', 768, 90_000],
      ['EAC3', 768, 92_880],
    ],
  );
});

test('Opus behind its control headers, both ways', (t) => {
  const packet = (bytes: number) => Buffer.concat([Buffer.of(0xfc), Buffer.alloc(bytes - 1, bytes & 0xff)]);
  for (const bytes of [1, 254, 255, 256, 510, 1275]) {
    const unit = Buffer.concat([opusControlHeader(bytes), packet(bytes)]);
    t.deepEqual(readOpusUnit(unit, 0), { packet: packet(bytes), end: unit.length });
    t.is(readOpusUnit(unit.subarray(0, -1), 0), undefined);
  }
  t.is(opusControlHeader(439).toString('hex'), '7fe0ffb8');
  // with trims and an extension
  const trimmed = Buffer.concat([Buffer.from('7ffc0301000001020909', 'hex'), packet(3)]);
  t.like(readOpusUnit(trimmed, 0), { packet: packet(3) });
  t.is(readOpusUnit(trimmed, 1), 'none');
  const header = opusHeadOf(2);
  const { cutter, frames, times } = setUp('Opus', header);
  cutter.push(Buffer.concat([opusControlHeader(100), packet(100), opusControlHeader(300), packet(300)]), 90_000);
  t.deepEqual(times(), [90_000, 91_800]);
  t.is(frames[0]?.frame.header, header);
});

test('Opus in a PMT has its channels', (t) => {
  const told = [1, 2, 6, 8, 0].map((code) => parseOpusHead(opusHeadOf(code) as Buffer));
  t.deepEqual(
    told.map(({ channels, mappingFamily, mapping }) => [channels, mappingFamily, mapping?.streams]),
    [
      [1, 0, undefined],
      [2, 0, undefined],
      [6, 1, 4],
      [8, 1, 5],
      [2, 255, 2],
    ],
  );
  t.is(opusHeadOf(9), undefined);
  t.is(opusHeadOf(0x81), undefined);
});
