import test from 'ava';
import { createDepacketizer } from '../../../../../src/protocols/rtp/receive/create.ts';
import { RtpError } from '../../../../../src/protocols/rtp/receive/error.ts';
import { packet, take } from './support.ts';

const HBR = { mode: 'AAC-hbr', sizelength: '13', indexlength: '3', indexdeltalength: '3', config: '1190' };
const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');

test('Opus, G.711 and MPEG-TS: a packet is a frame; empty ones are none', (t) => {
  for (const encoding of ['opus', 'PCMA', 'PCMU', 'MP2T']) {
    const { depacketizer, out } = take(encoding, {}, 48_000);
    depacketizer.push(packet('fc0102', { timestamp: 960, marker: true }));
    depacketizer.push(packet('', { timestamp: 1920 }));
    depacketizer.lose();
    depacketizer.push(packet('fc03', { timestamp: 2880 }));
    t.deepEqual(out, [[bytes('fc0102'), 960], 'packets were lost', [bytes('fc03'), 2880]]);
  }
});

test('AAC: several units of a packet, each at its time (RFC 3640 section 3.3.6)', (t) => {
  const { depacketizer, out } = take('mpeg4-generic', HBR, 48_000);
  depacketizer.push(packet('0020 0018 0010 aabbcc ddee', { timestamp: 2 ** 32 - 24, marker: true }));
  t.deepEqual(out, [
    [bytes('aabbcc'), 2 ** 32 - 24],
    [bytes('ddee'), 1000],
  ]);
});

test('AAC without any description: packets show whether their units have headers', (t) => {
  const { depacketizer, out } = take('mpeg4-generic', {}, 48_000);
  depacketizer.push(packet('2101 0203 0405', { marker: true }));
  t.is(typeof out[0], 'string');
  // cut off, of another index, and longer than what follows
  for (const odd of ['0010', '0010 0018', '0010 0011 aabb', '0018 0018 aabbcc', '0010 0020 aabbcc', '0000'])
    depacketizer.push(packet(odd, { marker: true }));
  t.true(out.every((one) => typeof one === 'string'));
  depacketizer.push(packet('0020 0018 0010 aabbcc ddee', { timestamp: 1024, marker: true }));
  depacketizer.push(packet('0010 0020 aabb', { timestamp: 4096 }));
  depacketizer.push(packet('0010 0020 ccdd', { timestamp: 4096, marker: true }));
  t.deepEqual(out.slice(-3), [
    [bytes('aabbcc'), 1024],
    [bytes('ddee'), 2048],
    [bytes('aabbccdd'), 4096],
  ]);
});

test('AAC with a configuration alone: packets have headers, or not', (t) => {
  const bare = take('mpeg4-generic', { config: '1190' }, 48_000);
  bare.depacketizer.push(packet('2101 0203', { marker: true }));
  const headed = take('mpeg4-generic', { config: '1190' }, 48_000);
  headed.depacketizer.push(packet('0010 0020 2101 0203', { marker: true }));
  headed.depacketizer.push(packet('0010 0010 2101', { timestamp: 1024, marker: true }));
  t.deepEqual(
    [...bare.out, ...headed.out],
    [
      [bytes('21010203'), 0],
      [bytes('21010203'), 0],
      [bytes('2101'), 1024],
    ],
  );
  // a mode without headers has none
  const generic = take('mpeg4-generic', { mode: 'generic', config: '1190' }, 48_000);
  generic.depacketizer.push(packet('0010 0010 2101', { marker: true }));
  t.deepEqual(generic.out, [[bytes('001000102101'), 0]]);
});

test('AAC: a packet of too many units is dropped', (t) => {
  const { depacketizer, out, frames } = take('mpeg4-generic', HBR, 48_000);
  const units = (count: number) =>
    `${(16 * count).toString(16).padStart(4, '0')}${'0008'.repeat(count)}${'aa'.repeat(count)}`;
  depacketizer.push(packet(units(128)));
  t.is(frames().length, 128);
  depacketizer.push(packet(units(129)));
  t.is(frames().length, 128);
  t.is(typeof out.at(-1), 'string');
});

test('AAC: one unit of several packets, each with the size of the whole', (t) => {
  const { depacketizer, out } = take('MPEG4-GENERIC', HBR, 48_000);
  depacketizer.push(packet('0010 0028 aabbcc', { timestamp: 7 }));
  depacketizer.push(packet('0010 0028 ddee', { timestamp: 7, marker: true }));
  t.deepEqual(out, [[bytes('aabbccddee'), 7]]);
  out.length = 0;
  depacketizer.push(packet('0010 0028 aabbcc', { timestamp: 8 }));
  depacketizer.lose();
  depacketizer.push(packet('0010 0010 1122', { timestamp: 9, marker: true }));
  t.deepEqual(out, ['packets were lost', [bytes('1122'), 9]]);
});

test('AAC: low bit rates, fields of other headers, auxiliary data, no headers', (t) => {
  const low = take(
    'mpeg4-generic',
    { ...HBR, mode: 'AAC-lbr', sizelength: '6', indexlength: '2', indexdeltalength: '2' },
    48_000,
  );
  low.depacketizer.push(packet('0010 0c08 aabbcc ddee', { timestamp: 0 }));
  t.deepEqual(low.frames(), [bytes('aabbcc'), bytes('ddee')]);

  const implied = take('mpeg4-generic', { mode: 'AAC-hbr', config: '1190' }, 48_000);
  implied.depacketizer.push(packet('0010 0010 aabb'));
  t.deepEqual(implied.frames(), [bytes('aabb')]);

  // 13 bits of size, 3 of index, a flag and 8 bits of CTS, a flag of DTS, one of random access: 27 bits
  const full = take(
    'mpeg4-generic',
    { ...HBR, ctsdeltalength: '8', dtsdeltalength: '8', randomaccessindication: '1' },
    48_000,
  );
  full.depacketizer.push(packet('001b 0010 80a0 aabb'.replace('80a0', '80 20')));
  t.deepEqual(full.frames(), [bytes('aabb')]);

  const auxiliary = take('mpeg4-generic', { ...HBR, auxiliarydatasizelength: '8' }, 48_000);
  auxiliary.depacketizer.push(packet('0010 0010 08 ff aabb'));
  t.deepEqual(auxiliary.frames(), [bytes('aabb')]);

  const none = take('mpeg4-generic', { config: '1190' }, 48_000);
  none.depacketizer.push(packet('aabbcc'));
  t.deepEqual(none.frames(), [bytes('aabbcc')]);
});

test('AAC: how far units are apart follows the configuration', (t) => {
  for (const [config, clockRate, parameters, step] of [
    ['1190', 48_000, {}, 1024],
    ['1194', 48_000, {}, 960],
    ['2b11880800', 48_000, {}, 2048],
    ['1190', 48_000, { constantduration: '512' }, 512],
    ['1190', 90_000, {}, 1920],
    ['', 48_000, {}, 1024],
  ] as const) {
    const { depacketizer, out } = take('mpeg4-generic', { ...HBR, config, ...parameters }, clockRate);
    depacketizer.push(packet('0020 0008 0008 aabb'));
    t.deepEqual(
      out.map((one) => one[1]),
      [0, step],
      config,
    );
  }
});

test('AAC: interleaved and malformed packets are left out', (t) => {
  const { depacketizer, out } = take('mpeg4-generic', HBR, 48_000);
  for (const bad of ['00', '0010', '0000 aa', '0010 0011 aabb', '0020 0010 0011 aabb ccdd', '0010 0010', 'ffff 0010']) {
    out.length = 0;
    depacketizer.push(packet(bad, { timestamp: 1, marker: true }));
    depacketizer.push(packet('0010 0010 1122', { timestamp: 2, marker: true }));
    t.deepEqual([typeof out[0], out[1], out.length], ['string', [bytes('1122'), 2], 2], bad);
  }
  const sink = { frame: () => t.fail(), damaged: () => t.fail(), configuration: () => t.fail() };
  for (const parameters of [{ ...HBR, maxdisplacement: '3' }, { mode: 'CELP-vbr' }, { ...HBR, sizelength: '64' }]) {
    t.throws(() => createDepacketizer({ encoding: 'mpeg4-generic', clockRate: 48_000, parameters }, sink), {
      instanceOf: RtpError,
    });
  }
});

test('LATM: configuration apart (RFC 6416 section 6.1), whole elements and pieces', (t) => {
  const { depacketizer, out } = take('MP4A-LATM', { cpresent: '0', config: '400023203fc0' }, 48_000);
  depacketizer.push(packet('03 aabbcc', { timestamp: 1024, marker: true }));
  depacketizer.push(packet('04 aabb', { timestamp: 2048 }));
  depacketizer.push(packet('ccdd', { timestamp: 2048, marker: true }));
  // without a marker an element ends when the timestamp changes
  depacketizer.push(packet('01 ee', { timestamp: 3072 }));
  depacketizer.push(packet('01 ff', { timestamp: 4096, marker: true }));
  t.deepEqual(out, [
    'config 1190',
    [bytes('aabbcc'), 1024],
    [bytes('aabbccdd'), 2048],
    [bytes('ee'), 3072],
    [bytes('ff'), 4096],
  ]);
  out.length = 0;
  depacketizer.push(packet('04 aabb', { timestamp: 5120 }));
  depacketizer.lose();
  depacketizer.push(packet('ccdd', { timestamp: 5120, marker: true }));
  depacketizer.push(packet('01 11', { timestamp: 6144, marker: true }));
  t.deepEqual(out, ['packets were lost', [bytes('11'), 6144]]);
});

test('LATM: a configuration with extensions, as GStreamer sends it', (t) => {
  const { depacketizer, out } = take('MP4A-LATM', { cpresent: '0', config: '40002320adca00' }, 48_000);
  depacketizer.push(packet('01 ee', { timestamp: 0, marker: true }));
  depacketizer.push(packet('01 ff', { timestamp: 1024, marker: true }));
  t.deepEqual(out.slice(1), [
    [bytes('ee'), 0],
    [bytes('ff'), 1024],
  ]);
  t.regex(String(out[0]), /^config 119056e500/);
});

test('LATM: configuration in the elements', (t) => {
  const { depacketizer, out } = take('MP4A-LATM', {}, 48_000);
  depacketizer.push(packet('80 80', { timestamp: 0, marker: true }));
  // useSameStreamMux 0, StreamMuxConfig, a frame of two bytes: all moved by one bit
  const muxConfig = BigInt('0x400023203fc0') >> 4n;
  const bits =
    `0${muxConfig.toString(2).padStart(44, '0')}${(2).toString(2).padStart(8, '0')}${(0xaabb).toString(2)}`.padEnd(
      72,
      '0',
    );
  const element = BigInt(`0b${bits}`).toString(16).padStart(18, '0');
  depacketizer.push(packet(element, { timestamp: 1024, marker: true }));
  t.deepEqual(out.slice(-2), ['config 1190', [bytes('aabb'), 1024]]);
  const sink = { frame: () => t.fail(), damaged: () => t.fail(), configuration: () => t.fail() };
  for (const parameters of [
    { cpresent: '0', config: '' },
    { cpresent: '0', config: 'ff' },
  ]) {
    t.throws(() => createDepacketizer({ encoding: 'MP4A-LATM', clockRate: 48_000, parameters }, sink), {
      instanceOf: RtpError,
    });
  }
});

/** A frame of layer III at 48 kHz and 32 kbit/s: 96 bytes. */
function mp3(fill: number): Buffer {
  const frame = Buffer.alloc(96, fill);
  frame.writeUInt32BE(0xfffb1404);
  return frame;
}

test('MPEG audio: several frames in a packet, one in several (RFC 2250 section 3.5)', (t) => {
  const { depacketizer, out } = take('MPA');
  const [one, other] = [mp3(1), mp3(2)];
  depacketizer.push(packet(`00000000${one.toString('hex')}${other.toString('hex')}`, { timestamp: 90 }));
  t.deepEqual(out, [
    [one, 90],
    [other, 90 + 2160],
  ]);
  out.length = 0;
  depacketizer.push(packet(`00000000${one.toString('hex', 0, 50)}`, { timestamp: 5000 }));
  depacketizer.push(packet(`00000032${one.toString('hex', 50)}`, { timestamp: 5000 }));
  t.deepEqual(out, [[one, 5000]]);
  for (const bad of [
    '0000',
    '00000000',
    '00000000 1122',
    `00000032${one.toString('hex', 50)}`,
    `00000000${one.toString('hex')}ffff`,
  ]) {
    out.length = 0;
    depacketizer.push(packet(bad, { timestamp: 6000 }));
    t.is(typeof out.at(-1), 'string', bad);
  }
  out.length = 0;
  depacketizer.push(packet(`00000000${one.toString('hex', 0, 50)}`, { timestamp: 7000 }));
  depacketizer.lose();
  depacketizer.push(packet(`00000000${other.toString('hex')}`, { timestamp: 9160 }));
  t.deepEqual(out, ['packets were lost', [other, 9160]]);
});
