import test from 'ava';
import { BitReader, BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import { seeded } from './vectors.ts';

test('reads numbers of up to 32 bits across bytes', (t) => {
  const reader = new BitReader(Buffer.from('a5ffffffff12345678', 'hex'));
  t.is(reader.read(0), 0);
  t.is(reader.read(4), 0xa);
  t.is(reader.read(1), 0);
  t.is(reader.read(3), 5);
  t.is(reader.read(32), 0xffffffff);
  reader.skip(4);
  t.is(reader.read(16), 0x2345);
  t.is(reader.position, 60);
  reader.align();
  t.is(reader.bitsLeft, 8);
  t.true(new BitReader(Buffer.of(0x80)).flag());
});

test('reads the Exp-Golomb codes of H.264 table 9-2', (t) => {
  const reader = new BitReader(Buffer.from('a6429', 'hex'));
  t.deepEqual([reader.ue(), reader.ue(), reader.ue(), reader.ue()], [0, 1, 2, 3]);
  const signed = new BitWriter();
  for (const value of [0, 1, -1, 2, -2, 1000, -1000]) signed.se(value);
  const back = new BitReader(signed.finish());
  t.deepEqual(
    Array.from({ length: 7 }, () => back.se()),
    [0, 1, -1, 2, -2, 1000, -1000],
  );
});

test('bits that were written are read again', (t) => {
  const random = seeded(1);
  const values = Array.from({ length: 500 }, () => {
    const bits = 1 + Math.floor(random() * 32);
    return { bits, value: Math.floor(random() * 2 ** bits) };
  });
  const writer = new BitWriter();
  for (const { bits, value } of values) writer.write(value, bits).ue(value === 0xffffffff ? 0 : value);
  const reader = new BitReader(writer.finish());
  for (const { bits, value } of values) {
    t.is(reader.read(bits), value);
    t.is(reader.ue(), value === 0xffffffff ? 0 : value);
  }
  t.true(reader.bitsLeft < 8);
});

test('the largest Exp-Golomb codes', (t) => {
  const writer = new BitWriter().write(0, 31).write(0xffffffff, 32);
  t.is(new BitReader(writer.finish()).ue(), 2 ** 32 - 2);
  t.throws(() => new BitReader(Buffer.alloc(64)).ue(), { instanceOf: BitstreamError });
  t.throws(() => new BitReader(Buffer.of(0x10)).ueMax(6, 'x'), { instanceOf: BitstreamError, message: /^x is 7/ });
});

test('every method stops at the end', (t) => {
  const at = () => new BitReader(Buffer.of(0));
  for (const read of [() => at().read(9), () => at().skip(9), () => at().ue(), () => at().se()]) {
    t.throws(read, { instanceOf: BitstreamError });
  }
  t.throws(() => new BitReader(Buffer.alloc(0)).flag(), { instanceOf: BitstreamError });
});
