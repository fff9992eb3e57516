import test from 'ava';
import { isKlv } from '../../../src/codecs/klv.ts';
import { seeded } from './vectors.ts';

/** UAS datalink local set (MISB ST 0601): its key, and the items 2 (time), 65 (version) and 1 (checksum). */
const SET = Buffer.from('060e2b34020b01010e010301010000001102080004cdb8a5d2a0004101060102abcd', 'hex');

const key = SET.subarray(0, 16);
const long = (length: number[], value: number): Buffer =>
  Buffer.concat([key, Buffer.from([0x80 + length.length, ...length]), Buffer.alloc(value)]);

test('items of KLV with short and long lengths, one or several', (t) => {
  t.true(isKlv(SET));
  t.true(isKlv(Buffer.concat([SET, SET])));
  t.true(isKlv(Buffer.concat([key, Buffer.of(0)])), 'an empty value');
  t.true(isKlv(long([0x81], 0x81)));
  t.true(isKlv(long([0x01, 0x02], 0x102)));
  t.true(isKlv(long([0, 0, 0, 5], 5)));
});

test('what is cut off, too long, or has another key is no KLV', (t) => {
  for (let length = 0; length < SET.length; length++) t.false(isKlv(SET.subarray(0, length)), `${length} bytes`);
  t.false(isKlv(Buffer.concat([SET, Buffer.of(0)])));
  t.false(isKlv(Buffer.concat([SET, SET.subarray(0, 20)])));
  t.false(isKlv(Buffer.concat([key, Buffer.of(0x80)])), 'an indefinite length');
  t.false(isKlv(long([0, 0, 0, 0, 5], 5)), 'a length of five bytes');
  t.false(isKlv(long([0xff, 0xff, 0xff, 0xff], 5)));
  t.false(isKlv(Buffer.concat([Buffer.of(7), SET.subarray(1)])));
});

test('random bytes behind a universal label end the check', (t) => {
  const random = seeded(336);
  let whole = 0;
  for (let i = 0; i < 5000; i++) {
    const rest = Buffer.from(Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256)));
    if (isKlv(Buffer.concat([key, rest]))) whole++;
  }
  t.true(whole < 5000);
});
