import test from 'ava';
import { sectionCrc } from '../../../../src/containers/mpegts/crc.ts';
import { id3Of } from '../../../../src/containers/mpegts/metadata.ts';
import { isSplice, spliceInsert, spliceTime, withSpliceTime } from '../../../../src/containers/mpegts/splice.ts';

const base64 = (text: string) => Buffer.from(text, 'base64');

test('splices of the examples in SCTE 35 (14.1, 14.2)', (t) => {
  const timeSignal = base64('/DA0AAAAAAAA///wBQb+cr0AUAAeAhxDVUVJSAAAjn/PAAGlmbAICAAAAAAsoKGKNAIAmsnRfg==');
  const insert = base64('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=');
  for (const section of [timeSignal, insert]) {
    t.true(isSplice(section));
    t.is(sectionCrc(section), 0);
  }
  t.is(spliceTime(timeSignal), 0x072bd0050);
  t.is(spliceTime(insert), 0x07369c02e);
});

test('times are adjusted, and wrap', (t) => {
  const section = base64('/DA0AAAAAAAA///wBQb+cr0AUAAeAhxDVUVJSAAAjn/PAAGlmbAICAAAAAAsoKGKNAIAmsnRfg==');
  section[8] = 2;
  t.is(spliceTime(section), 0x072bd0052);
  section.fill(0xff, 5, 9);
  section[4] = 0x01;
  t.is(spliceTime(section), 0x072bd0050 - 1);
});

test('a splice with an adjusted time stays whole, across the wrap', (t) => {
  const insert = base64('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=');
  for (const time of [0, 1, 0x07369c02e, 2 ** 33 - 1, 2 ** 32]) {
    const once = withSpliceTime(insert, time);
    const twice = withSpliceTime(withSpliceTime(insert, 12_345), time);
    for (const section of [once, twice]) {
      t.is(spliceTime(section), time);
      t.is(sectionCrc(section), 0);
    }
    t.deepEqual(once, twice);
  }
  t.is(withSpliceTime(insert.subarray(0, 18), 5).length, 18);
});

test('immediate, empty, encrypted and incomplete splices have no time', (t) => {
  const section = base64('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=');
  for (let length = 0; length < 25; length++) t.is(spliceTime(section.subarray(0, length)), undefined);
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(section);
    copy[at] = value;
    return copy;
  };
  t.is(spliceTime(changed(4, 0x80)), undefined, 'encrypted');
  t.is(spliceTime(changed(13, 0)), undefined, 'splice_null');
  t.is(spliceTime(changed(18, 0xff)), undefined, 'cancelled');
  t.is(spliceTime(changed(19, 0xff)), undefined, 'at once');
});

const TAG = Buffer.concat([Buffer.from('494433040000000000014242', 'hex')]);

test('ID3 tags as they are, and in cells', (t) => {
  t.deepEqual(id3Of(0xbd, TAG), TAG);
  const cell = (data: Buffer) => Buffer.concat([Buffer.of(0, 0, 0xcf, 0, data.length), data]);
  t.deepEqual(id3Of(0xfc, cell(TAG)), TAG);
  t.deepEqual(id3Of(0xfc, Buffer.concat([cell(TAG), cell(TAG)])), Buffer.concat([TAG, TAG]));
  t.is(id3Of(0xbd, cell(TAG)), undefined);
  t.is(id3Of(0xbd, TAG.subarray(0, 9)), undefined);
  t.is(id3Of(0xfc, Buffer.alloc(0)), undefined);
});

test('a splice at once, bit for bit', (t) => {
  for (const [splice, expected] of [
    [
      { id: 1_207_959_695, out: true, duration: 5_426_421, autoReturn: true },
      'fc302000000000000000fff00f054800008f7ffffe0052ccf5000000000000ea99931f',
    ],
    [
      { id: 0xffff_ffff, out: false, autoReturn: false },
      'fc301b00000000000000fff00a05ffffffff7f5f00000000000023361754',
    ],
    [
      { id: 7, out: true, duration: 2 ** 33 - 257, autoReturn: false },
      'fc302000000000000000fff00f05000000077fff7ffffffeff000000000000ded3a413',
    ],
  ] as const) {
    const section = spliceInsert(splice);
    t.is(section.toString('hex'), expected);
    t.is(sectionCrc(section), 0);
    t.true(isSplice(section));
    t.is(spliceTime(section), undefined);
  }
});
