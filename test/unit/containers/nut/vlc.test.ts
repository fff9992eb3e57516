import test from 'ava';
import { crc32 } from '../../../../src/containers/crc32.ts';
import { NutError } from '../../../../src/containers/nut/error.ts';
import { v, vb, VlcReader } from '../../../../src/containers/nut/vlc.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const over = (data: Buffer) => new VlcReader().open(data, 0, data.length);

const NUMBERS: readonly [number, string][] = [
  [0, '00'],
  [127, '7f'],
  [128, '8100'],
  [16_383, 'ff7f'],
  [65_536, '848000'],
  [2 ** 32, '9080808000'],
  [Number.MAX_SAFE_INTEGER, '8fffffffffffff7f'],
];

test('numbers are written and read', (t) => {
  for (const [value, bytes] of NUMBERS) {
    t.is(v(value).toString('hex'), bytes);
    t.is(over(hex(bytes)).v(), value);
  }
  t.is(v(1, 128, 2).toString('hex'), '01810002');
});

test('signed numbers are read', (t) => {
  for (const [value, bytes] of [
    [0, '00'],
    [1, '01'],
    [-1, '02'],
    [2, '03'],
    [-64, '8100'],
    [64, '7f'],
  ] as const) {
    t.is(over(hex(bytes)).s(), value, bytes);
  }
});

test('bytes stand behind their count', (t) => {
  const data = vb(Buffer.from('abc'));
  t.is(data.toString('hex'), '03616263');
  t.is(over(data).vb(3, 'a name').toString(), 'abc');
  t.throws(() => over(data).vb(2, 'a name'), { instanceOf: NutError, message: /a name is 3, more than 2/ });
});

test('a field of a NUT header that ends too early is empty, and the reader reports it', (t) => {
  for (const [data, field] of [
    ['', 'v'],
    ['80', 'v'],
    ['81', 's'],
    ['000000', 'u32'],
  ] as const) {
    const reader = over(hex(data));
    t.is(reader[field](), 0);
    t.true(reader.short, `${data} as ${field}`);
  }
  const cut = over(hex('0361'));
  t.is(cut.vb(10, 'a name').length, 0);
  t.true(cut.short);
  const whole = over(hex('036162638100'));
  t.is(whole.vb(10, 'a name').length, 3);
  t.is(whole.v(), 128);
  t.false(whole.short);
});

test('a number without an end is refused', (t) => {
  t.throws(() => over(Buffer.alloc(20, 0xff)).v(), { instanceOf: NutError });
});

test('the checksum is that of the standard', (t) => {
  t.is(crc32(Buffer.from([1])), 0x04c11db7);
  // the check value of CRC-32/POSIX without its final inversion
  t.is(crc32(Buffer.from('123456789')), ~0x765e7680 >>> 0);
  t.is(crc32(Buffer.from('x123456789y'), 1, 10), ~0x765e7680 >>> 0);
});
