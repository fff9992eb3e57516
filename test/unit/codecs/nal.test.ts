import test from 'ava';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import {
  annexBToLengths,
  bareNals,
  canonicalizeNals,
  joinNals,
  nalUnits,
  splitAnnexB,
  unescapeNal,
  type NalRole,
} from '../../../src/codecs/nal.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const texts = (nals: Iterable<Buffer>) => [...nals].map((nal) => nal.toString('hex'));

test('length-prefixed units are slices, empty ones left out', (t) => {
  const data = hex('00000002 6501 00000000 00000001 41');
  t.deepEqual(texts(nalUnits(data)), ['6501', '41']);
  t.is([...nalUnits(data)][0]?.buffer, data.buffer);
  t.deepEqual(texts(nalUnits(hex('02 6501 01 41'), 1)), ['6501', '41']);
  t.deepEqual(texts(nalUnits(hex('0002 6501'), 2)), ['6501']);
  t.deepEqual(texts(nalUnits(Buffer.alloc(0))), []);
});

test('access units with too many NAL units are refused', (t) => {
  const lengths = (count: number) => Buffer.alloc(5 * count, hex('0000000141'));
  const codes = (count: number) => Buffer.alloc(5 * count, hex('0000000141'));
  t.is(canonicalizeNals(lengths(8192), 4, () => 'media').data.length, 5 * 8192);
  t.throws(() => canonicalizeNals(lengths(8193), 4, () => 'media'), { instanceOf: BitstreamError });
  t.is(splitAnnexB(codes(8192)).length, 8192);
  t.throws(() => splitAnnexB(codes(8193)), { instanceOf: BitstreamError });
});

test('NAL units of byte streams are counted together, also empty ones', (t) => {
  const codes = (count: number) => Buffer.alloc(3 * count, hex('000001'));
  t.deepEqual(
    bareNals(joinNals([codes(4000), codes(4000), hex('65 000001 41')])).map((nal) => nal[0]),
    [0x65, 0x41],
  );
  t.deepEqual(bareNals(Buffer.alloc(4 * 8192)), []);
  const most = Array.from({ length: 8191 }, (_, i) => (i < 8190 ? hex('000001 41') : hex('41 00000001 42')));
  t.is(bareNals(joinNals(most)).length, 8192);
  for (const many of [
    [codes(4000), codes(4000), codes(193)],
    [codes(8192), hex('65')],
    Array<Buffer>(8193).fill(hex('')),
    [...most, hex('41')],
    [...most, hex('000001 41')],
  ])
    t.throws(() => bareNals(joinNals(many)), { instanceOf: BitstreamError });
  t.throws(() => canonicalizeNals(joinNals([codes(8000), codes(8000)]), 4, () => 'media'), {
    instanceOf: BitstreamError,
  });
});

test('a length past the end is refused', (t) => {
  for (const data of ['00000003 6501', '000000', '00000001 41 00', 'ffffffff 41']) {
    t.throws(() => [...nalUnits(hex(data))], { instanceOf: BitstreamError }, data);
  }
});

test('Annex B with start codes of three and four bytes and zeros around', (t) => {
  t.deepEqual(texts(splitAnnexB(hex('0000 000001 6701 00000001 6802 0000 000001 6503 04 0000'))), [
    '6701',
    '6802',
    '650304',
  ]);
  t.deepEqual(texts(splitAnnexB(hex('aabb 000001 6701'))), ['6701']);
  t.deepEqual(texts(splitAnnexB(hex('000001 000001 00000001'))), []);
  t.deepEqual(texts(splitAnnexB(hex('6701'))), []);
  t.deepEqual(texts(splitAnnexB(hex('000001 65 000003 00'))), ['65000003']);
});

test('start codes become lengths, in place where each has four bytes and nothing lies between', (t) => {
  const inPlace = hex('00000001 6701 00000001 6802 00000001 650304');
  t.is(annexBToLengths(inPlace), inPlace);
  t.is(inPlace.toString('hex'), '00000002670100000002680200000003650304');
  for (const other of [
    '000001 6701 00000001 68',
    '00000001 6701 000001 68',
    '00000001 6701 0000000001 68',
    '00000001 6701 00000001 6800',
    '00 00000001 6701 00000001 68',
  ]) {
    const data = hex(other);
    const before = Buffer.from(data);
    t.is(annexBToLengths(data).toString('hex'), '0000000267010000000168', other);
    t.deepEqual(data, before);
  }
  t.is(annexBToLengths(Buffer.alloc(0)).length, 0);
  t.is(annexBToLengths(hex('6501')).length, 0);
});

test('joined units are those that went in', (t) => {
  const nals = [hex('6501'), hex('41020304')];
  t.is(joinNals(nals).toString('hex'), '0000000265010000000441020304');
  t.deepEqual(texts(nalUnits(joinNals(nals))), texts(nals));
  t.is(joinNals([]).length, 0);
});

test('emulation prevention goes, and nothing is copied where there is none', (t) => {
  const plain = hex('6700000102');
  t.is(unescapeNal(plain), plain);
  t.is(unescapeNal(hex('67 000003 00 000003 01 000003')).toString('hex'), '670000000000010000');
  t.is(unescapeNal(hex('000003 000003')).toString('hex'), '00000000');
  t.is(unescapeNal(hex('00 00 00 03 01')).toString('hex'), '00000001');
});

// first byte: 7 parameter set, 9 disposable, the rest media
const role = (nal: Buffer): NalRole => (nal[0] === 7 ? 'parameterSet' : nal[0] === 9 ? 'disposable' : 'media');

test('a unit that is canonical already is the same buffer', (t) => {
  const data = hex('00000001 01 00000002 0102');
  t.is(canonicalizeNals(data, 4, role).data, data);
  const delimited = hex('00000001 01 00000001 09 00000001 02');
  t.is(canonicalizeNals(delimited, 4, role).data, delimited, 'dropping a delimiter in the middle is no reason to copy');
});

test('NAL units removed at the ends cost no copy', (t) => {
  const data = hex('00000001 09 00000002 0701 00000001 01 00000001 02 00000001 09 00000001 07');
  const unit = canonicalizeNals(data, 4, role);
  t.is(unit.data.toString('hex'), '00000001010000000102');
  t.is(unit.data.buffer, data.buffer);
  t.is(unit.data.byteOffset, data.byteOffset + 11);
  t.deepEqual(texts(unit.parameterSets), ['0701', '07']);
});

test('a parameter set or an empty unit in the middle makes a copy without disposables', (t) => {
  const data = hex('00000001 01 00000001 09 00000002 0701 00000001 02');
  t.is(canonicalizeNals(data, 4, role).data.toString('hex'), '00000001010000000102');
  t.is(canonicalizeNals(hex('00000001 01 00000000 00000001 02'), 4, role).data.toString('hex'), '00000001010000000102');
});

test('short lengths become lengths of four bytes', (t) => {
  t.is(canonicalizeNals(hex('01 09 02 0701 01 01'), 1, role).data.toString('hex'), '0000000101');
  t.is(canonicalizeNals(hex('0001 01 0002 0202'), 2, role).data.toString('hex'), '0000000101000000020202');
});

test('a unit of nothing but parameter sets is empty', (t) => {
  const unit = canonicalizeNals(hex('00000002 0701 00000001 09'), 4, role);
  t.is(unit.data.length, 0);
  t.is(unit.parameterSets.length, 1);
  t.is(canonicalizeNals(Buffer.alloc(0), 4, role).data.length, 0);
});

test('a malformed unit is refused', (t) => {
  for (const lengthSize of [1, 2, 4] as const) {
    const cut = Buffer.alloc(lengthSize + 1, 0x10);
    t.throws(() => canonicalizeNals(cut, lengthSize, role), { instanceOf: BitstreamError });
  }
});
