import test from 'ava';
import { SectionReader } from '../../../../src/containers/mpegts/section-reader.ts';
import { section } from '../../../support/mpegts/ts-build.ts';

function setUp() {
  const sections: Buffer[] = [];
  const faults: string[] = [];
  const reader = new SectionReader({
    section: (data) => sections.push(Buffer.from(data)),
    fault: (reason) => faults.push(reason),
  });
  /** @param pointer bytes before the section that starts; undefined where none does */
  const take = (data: Buffer, pointer?: number) => {
    const payload = pointer === undefined ? data : Buffer.concat([Buffer.of(pointer), data]);
    reader.payload(
      Buffer.concat([Buffer.alloc(4), payload, Buffer.alloc(3)]),
      4,
      4 + payload.length,
      pointer !== undefined,
    );
  };
  return { reader, sections, faults, take };
}

const small = section(0, 1, Buffer.alloc(20, 1));
const large = section(2, 1, Buffer.alloc(1000, 2));
const FILL = Buffer.alloc(30, 0xff);

test('a section in one packet, several in one, one in several', (t) => {
  const { sections, faults, take } = setUp();
  take(Buffer.concat([small, FILL]), 0);
  take(Buffer.concat([small, small, FILL]), 0);
  for (let at = 0; at < large.length; at += 183) take(large.subarray(at, at + 183), at === 0 ? 0 : undefined);
  t.deepEqual(sections, [small, small, small, large]);
  t.deepEqual(faults, []);
});

test('the end of one and the beginning of the next in a packet, wherever it is cut', (t) => {
  for (let cut = 1; cut < small.length; cut++) {
    const { sections, take } = setUp();
    take(Buffer.concat([large, small.subarray(0, cut)]), 0);
    const rest = small.subarray(cut);
    take(Buffer.concat([rest, small, FILL]), rest.length);
    t.deepEqual(sections, [large, small, small], `${cut}`);
  }
});

test('damaged or incomplete sections are left out', (t) => {
  const { reader, sections, faults, take } = setUp();
  const wrong = Buffer.from(small);
  wrong[10]! ^= 1;
  take(wrong, 0);
  take(large.subarray(0, 183), 0);
  reader.lost();
  take(large.subarray(366));
  take(small, 200);
  take(small, 0);
  t.deepEqual(sections, [small]);
  t.deepEqual(faults, ['a section with a wrong checksum', 'a section that starts after the end of its packet']);
});

test('the largest section, and the smallest', (t) => {
  const { sections, faults, take } = setUp();
  const largest = section(0x80, 1, Buffer.alloc(4095 - 9, 7));
  take(largest, 0);
  take(Buffer.of(0x80, 0, 0), 0);
  t.deepEqual(sections, [largest]);
  t.is(faults.length, 1);
});
